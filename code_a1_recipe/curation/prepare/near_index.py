"""Sets of n-grams that are nearly the same: MinHash finds candidates, the exact Jaccard similarity decides.

MinHash and locality-sensitive hashing after Broder 1997 and Leskovec, Rajaraman, Ullman, *Mining of Massive Datasets*,
sections 3.3 and 3.4; the tables are those of ``datasketch``.
"""

import math
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

RECALL = 0.999
"""Chance that a pair right at the threshold is looked at; a pair above it is less often missed."""
MOST_PERMUTATIONS = 128
_SEED = 1

Hashes = npt.NDArray[np.uint64]


def hashes_of(ngrams: Iterable[str]) -> Hashes:
    """The distinct n-grams as sorted 64-bit digests, the same in every process."""
    digests = {blake2b(ngram.encode("utf-8", "surrogatepass"), digest_size=8).digest() for ngram in ngrams}
    return np.sort(np.frombuffer(b"".join(digests), dtype="<u8")).astype(np.uint64)


def jaccard(one: Hashes, other: Hashes) -> float:
    """``|A & B| / |A | B|`` of two sets, in [0, 1]; 0 for two empty ones."""
    if not (one.size and other.size):
        return 0.0
    num_common = np.intersect1d(one, other, assume_unique=True).size
    return float(num_common / (one.size + other.size - num_common))


def bands_and_rows(threshold: float) -> tuple[int, int]:
    """Bands ``b`` and rows ``r`` such that a pair of similarity ``s = threshold`` is a candidate almost surely.

    A pair is a candidate with probability ``1 - (1 - s**r)**b`` (*Mining of Massive Datasets*, section 3.4.2). Of all
    settings that reach ``RECALL`` with at most ``MOST_PERMUTATIONS`` hashes, the one with the most rows gives the
    fewest false candidates.

    Args:
        threshold: in (0, 1].
    """
    best = (MOST_PERMUTATIONS, 1)
    for rows in range(1, MOST_PERMUTATIONS + 1):
        chance = min(threshold**rows, 1 - 1e-12)
        bands = max(2, math.ceil(math.log(1 - RECALL) / math.log(1 - chance)))  # the tables need two of them
        if bands * rows > MOST_PERMUTATIONS:
            break
        best = (bands, rows)
    return best


class NearIndex:
    """Sets of hashed n-grams, asked for those that are similar to another.

    Args:
        threshold: least Jaccard similarity, in (0, 1].
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]  # here: loads scipy

        self._threshold = threshold
        bands, rows = bands_and_rows(threshold)
        self._blank = MinHash(num_perm=bands * rows, seed=_SEED, hashfunc=int)
        self._tables = MinHashLSH(num_perm=bands * rows, params=(bands, rows))
        self._sets: list[Hashes] = []

    def add(self, hashes: Hashes) -> int:
        """Keep a set, an empty one too; its place."""
        place = len(self._sets)
        self._sets.append(hashes)
        if hashes.size:  # an empty set is similar to nothing
            self._tables.insert(place, self._sketch(hashes))
        return place

    def similar_to(self, hashes: Hashes) -> dict[int, float]:
        """Place -> Jaccard similarity of the kept sets at or above the threshold, in order of their places."""
        places = sorted(self._tables.query(self._sketch(hashes))) if hashes.size else []
        found = {place: jaccard(self._sets[place], hashes) for place in places}
        return {place: similarity for place, similarity in found.items() if similarity >= self._threshold}

    def _sketch(self, hashes: Hashes) -> Any:
        sketch = self._blank.copy()
        sketch.update_batch((hashes & np.uint64(0xFFFFFFFF)).tolist())
        return sketch
