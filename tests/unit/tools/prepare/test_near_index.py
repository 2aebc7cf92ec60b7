"""Similar texts: the exact decision, and how rarely one is missed."""

import numpy as np

from code_a1_recipe.tools.prepare.near_index import NearIndex, hashes_of, jaccard, ngrams


def test_ngrams_of_a_short_text_are_the_whole_of_it():
    assert ngrams(["a", "b", "c", "d"], 3) == ["a b c", "b c d"]
    assert ngrams(["a", "b", "c"], 3) == ngrams(["a b c"], 3) == ["a b c"]
    assert ngrams([], 3) == []


def test_hashes_are_distinct_sorted_and_the_same_in_every_process():
    hashes = hashes_of(["b", "a", "b", "\ud800"], 1)
    assert hashes.dtype == np.uint64
    assert list(hashes) == sorted(set(hashes.tolist()))
    assert hashes.size == 3
    assert hashes_of(["a"], 1).tolist() == [3405396810240292928]


def test_the_similarity_is_that_of_the_sets():
    assert jaccard(hashes_of("abc", 1), hashes_of("bcd", 1)) == 2 / 4
    assert jaccard(hashes_of("", 1), hashes_of("", 1)) == 0.0


def test_the_index_gives_places_and_exact_similarities_at_or_above_the_threshold():
    index = NearIndex(1)
    base = [f"n{number}" for number in range(40)]
    for kept in (base, base[:36], base[:32], base[:31], ["other"]):
        index.add(kept)
    assert list(index.similar_to(base).items()) == [(0, 1.0), (1, 0.9), (2, 0.8)]


def test_a_pair_right_at_the_threshold_is_almost_never_missed():
    """The chance to miss one is 1 - (1 - (1 - 0.8**5)**18) = 0.0008."""
    index = NearIndex(1)
    others = []
    for pair in range(300):
        shared = [f"{pair}-{number}" for number in range(80)]
        index.add([*shared, *(f"{pair}-l{number}" for number in range(10))])
        others.append([*shared, *(f"{pair}-r{number}" for number in range(10))])
    assert sum(place not in index.similar_to(words) for place, words in enumerate(others)) <= 3
