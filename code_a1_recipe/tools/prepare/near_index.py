"""Texts that are nearly the same: MinHash finds candidates, the exact Jaccard similarity of their n-grams decides.

MinHash and locality-sensitive hashing after Broder 1997 and Leskovec, Rajaraman, Ullman, *Mining of Massive Datasets*,
sections 3.3 and 3.4; the tables are those of ``datasketch``.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.8
"""Jaccard similarity from which two texts are nearly the same."""
_BANDS, _ROWS = 18, 5
"""A pair of similarity s is looked at with probability 1 - (1 - s**5)**18: 0.999 at the threshold (section 3.4.2)."""
_SEED = 1

Hashes = NDArray[np.uint64]


def ngrams(words: Sequence[str], size: int) -> list[str]:
    """All runs of ``size`` words in order, joined by spaces; the whole where there are fewer; empty for none."""
    num_runs = max(len(words) - size, 0) + 1 if words else 0
    return [" ".join(words[start : start + size]) for start in range(num_runs)]


def hashes_of(words: Sequence[str], size: int) -> Hashes:
    """The distinct n-grams as sorted 64-bit digests, the same in every process. Eight bytes each bound the memory."""
    texts = [ngram.encode("utf-8", "surrogatepass") for ngram in ngrams(words, size)]
    digests = {blake2b(text, digest_size=8).digest() for text in texts}
    return np.sort(np.frombuffer(b"".join(digests), dtype="<u8")).astype(np.uint64)


def jaccard(hashes: Hashes, others: Hashes) -> float:
    """``|A & B| / |A | B|`` of two sets, in [0, 1]; 0 for two empty ones."""
    num_common = np.intersect1d(hashes, others, assume_unique=True).size
    num_all = hashes.size + others.size - num_common
    return float(num_common / num_all) if num_all else 0.0


class NearIndex:
    """Texts in order, asked for those that are similar to another one.

    Args:
        size: words of an n-gram.
        threshold: least Jaccard similarity, in [0.8, 1].
    """

    def __init__(
        self,
        size: int,
        threshold: float = THRESHOLD,
    ) -> None:
        from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]  # here: loads scipy

        self._size, self._threshold = size, threshold
        self._blank = MinHash(
            num_perm=_BANDS * _ROWS,
            seed=_SEED,
            hashfunc=int,
        )
        self._tables = MinHashLSH(num_perm=_BANDS * _ROWS, params=(_BANDS, _ROWS))
        self._kept: list[Hashes] = []

    def add(self, words: Sequence[str]) -> None:
        """Keep a text; an empty one too, which is similar to nothing."""
        hashes = hashes_of(words, self._size)
        if hashes.size:
            self._tables.insert(len(self._kept), self._sketch(hashes))
        self._kept.append(hashes)

    def similar_to(self, words: Sequence[str]) -> dict[int, float]:
        """Place -> Jaccard similarity of the kept texts at or above the threshold, in order of their places."""
        hashes = hashes_of(words, self._size)
        similar = {}
        for place in sorted(self._tables.query(self._sketch(hashes))):
            similarity = jaccard(self._kept[place], hashes)
            if similarity >= self._threshold:
                similar[place] = similarity
        return similar

    def _sketch(self, hashes: Hashes) -> Any:
        sketch = self._blank.copy()
        sketch.update_batch((hashes & np.uint64(0xFFFFFFFF)).tolist())
        return sketch
