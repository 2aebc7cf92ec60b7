"""Similar sets: the exact decision, and how rarely one is missed."""

import math

import numpy as np
import pytest

from code_a1_recipe.curation.prepare.near_index import (
    MOST_PERMUTATIONS,
    RECALL,
    NearIndex,
    bands_and_rows,
    hashes_of,
    jaccard,
)


def test_jaccard_of_sets_counted_by_hand():
    one, other = hashes_of({"a", "b", "c"}), hashes_of({"b", "c", "d", "e"})
    assert jaccard(one, other) == 2 / 5
    assert jaccard(one, one) == 1.0
    assert jaccard(one, hashes_of({"x"})) == 0.0
    assert jaccard(hashes_of(()), hashes_of(())) == 0.0


def test_hashes_are_distinct_sorted_and_the_same_in_every_process():
    hashes = hashes_of(["b", "a", "b", "\ud800"])
    assert hashes.dtype == np.uint64
    assert list(hashes) == sorted(set(hashes.tolist()))
    assert hashes.size == 3
    assert hashes_of(["a"]).tolist() == [3405396810240292928]


def test_bands_and_rows_for_the_default_threshold():
    # 1 - (1 - 0.8**5)**18 = 0.99921; a sixth row would need 23 bands, 138 hashes.
    assert bands_and_rows(0.8) == (18, 5)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 0.95, 1.0])
def test_a_pair_at_the_threshold_is_looked_at_almost_surely(threshold):
    bands, rows = bands_and_rows(threshold)
    assert bands * rows <= MOST_PERMUTATIONS
    assert 1 - (1 - threshold**rows) ** bands >= RECALL
    further = rows + 1  # with one row more it would not be
    most_bands = MOST_PERMUTATIONS // further
    assert threshold == 1.0 or most_bands < 2 or 1 - (1 - threshold**further) ** most_bands < RECALL


def test_the_index_gives_places_and_exact_similarities_at_or_above_the_threshold():
    index = NearIndex(0.5)
    base = [f"n{number}" for number in range(40)]
    for kept in (base, base[:30], base[:20], base[:19], ["other"]):
        index.add(hashes_of(kept))
    found = index.similar_to(hashes_of(base))
    assert list(found.items()) == [(0, 1.0), (1, 0.75), (2, 0.5)]


def test_an_empty_set_is_similar_to_nothing_and_keeps_its_place():
    index = NearIndex(0.8)
    assert [index.add(hashes_of(())), index.add(hashes_of({"a"}))] == [0, 1]
    assert index.similar_to(hashes_of(())) == {}
    assert index.similar_to(hashes_of({"a"})) == {1: 1.0}


def test_the_bound_on_recall_is_not_far_off():
    """Of 300 pairs right at the threshold, about 0.08 % may be missed."""
    index = NearIndex(0.8)
    pairs = []
    for pair in range(300):
        shared = [f"{pair}-{number}" for number in range(80)]
        place = index.add(hashes_of([*shared, *(f"{pair}-l{number}" for number in range(10))]))
        pairs.append((place, hashes_of([*shared, *(f"{pair}-r{number}" for number in range(10))])))
    missed = sum(place not in index.similar_to(hashes) for place, hashes in pairs)
    assert missed <= math.ceil(300 * (1 - RECALL)) + 2
