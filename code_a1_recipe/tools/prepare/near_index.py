"""Finds nearly equal texts: MinHash proposes pairs, and the exact Jaccard similarity of their n-grams decides.

MinHash and locality-sensitive hashing follow Broder 1997 and Leskovec, Rajaraman, Ullman, *Mining of Massive
Datasets*, sections 3.3 and 3.4. The hash tables come from ``datasketch``.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.8
"""Least Jaccard similarity of two texts that count as nearly equal."""
_BANDS = 18
_ROWS = 5
"""A pair of similarity s is proposed with probability 1 - (1 - s**5)**18. A pair with the similarity ``THRESHOLD`` is
proposed with probability 0.999 (section 3.4.2)."""
_SEED = 1

Hashes = NDArray[np.uint64]


def ngrams(words: Sequence[str], size: int) -> list[str]:
    """List the n-grams of a text: all runs of ``size`` words, joined by spaces. A text of fewer words is one n-gram."""
    if not words:
        return []
    runs = []
    for start in range(max(len(words) - size, 0) + 1):
        runs.append(" ".join(words[start : start + size]))
    return runs


def hashes_of(words: Sequence[str], size: int) -> Hashes:
    """Hash the distinct n-grams to sorted 64-bit digests, which are smaller than texts and equal in every process."""
    texts = [ngram.encode("utf-8", "surrogatepass") for ngram in ngrams(words, size)]
    digests = {blake2b(text, digest_size=8).digest() for text in texts}
    hashes = np.frombuffer(b"".join(digests), dtype="<u8")
    return np.sort(hashes).astype(np.uint64)


def jaccard(hashes: Hashes, others: Hashes) -> float:
    """The similarity ``|A & B| / |A | B|`` of two sets, in [0, 1]; 0 for two empty sets."""
    num_common = np.intersect1d(hashes, others, assume_unique=True).size
    num_all = hashes.size + others.size - num_common
    return float(num_common / num_all) if num_all else 0.0


class NearIndex:
    """An index of texts. It finds the added texts that are similar to a new text.

    Args:
        size: number of words of an n-gram.
        threshold: least Jaccard similarity, in [0.8, 1].
    """

    def __init__(
        self,
        size: int,
        threshold: float = THRESHOLD,
    ) -> None:
        # imported here, because datasketch loads scipy
        from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]

        self._size = size
        self._threshold = threshold
        num_hashes = _BANDS * _ROWS
        # The n-grams are digests already, so they are not hashed again: `int` returns them unchanged.
        self._blank = MinHash(num_perm=num_hashes, seed=_SEED, hashfunc=int)
        self._tables = MinHashLSH(num_perm=num_hashes, params=(_BANDS, _ROWS))
        self._kept: list[Hashes] = []

    def add(self, words: Sequence[str]) -> None:
        """Add a text. The place of a text is the number of texts before it. An empty text is never found as similar."""
        hashes = hashes_of(words, self._size)
        if hashes.size:
            self._tables.insert(len(self._kept), self._sketch(hashes))
        self._kept.append(hashes)

    def similar_to(self, words: Sequence[str]) -> dict[int, float]:
        """Find the added texts whose similarity reaches the threshold: place -> Jaccard similarity, in order."""
        hashes = hashes_of(words, self._size)
        similar = {}
        for place in sorted(self._tables.query(self._sketch(hashes))):
            similarity = jaccard(self._kept[place], hashes)
            if similarity >= self._threshold:
                similar[place] = similarity
        return similar

    def _sketch(self, hashes: Hashes) -> Any:
        """Make the MinHash of a text in the form of ``datasketch``."""
        sketch = self._blank.copy()
        low_halves = hashes & np.uint64(0xFFFFFFFF)  # datasketch computes with hash values of 32 bits
        sketch.update_batch(low_halves.tolist())
        return sketch
