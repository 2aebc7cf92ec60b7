"""Unbiased pass@k against all subsets, and bootstrap intervals against scipy."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import stats

from code_a1_recipe.stats.estimates import bootstrap, mean_over_questions, pass_at_k, ratio_of_sums


@example((32, 31, 2))  # two samples cannot both be the only wrong one
@given(st.integers(1, 10).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_subsets_that_hold_a_right_sample(numbers):
    num_samples, num_right, k = numbers
    first_of_subsets = [min(subset) for subset in itertools.combinations(range(num_samples), k)]
    share = statistics.fmean(first < num_right for first in first_of_subsets)
    assert pass_at_k(*numbers) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(("num_samples", "num_right", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_pass_at_k_refuses_impossible_numbers(num_samples, num_right, k):
    with pytest.raises(ValueError, match="needs 1 <= k <= n and 0 <= c <= n"):
        pass_at_k(num_samples, num_right, k)


def test_the_interval_is_that_of_scipys_percentile_bootstrap():
    values = np.random.default_rng(3).normal(0.4, 0.2, size=120)
    ours = bootstrap(list(values))
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2))
    low, high = theirs.confidence_interval
    assert ours.value == pytest.approx(values.mean())
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.003)


def test_a_ratio_of_sums_weighs_large_functions_more_than_a_mean_does():
    covered, total = [9.0, 1.0], [10.0, 2.0]
    assert bootstrap(covered, total, statistic=ratio_of_sums).value == pytest.approx(10 / 12)
    assert mean_over_questions(np.array([0.9, 0.5])) == pytest.approx(0.7)


def test_a_ratio_that_many_resamples_do_not_have_gets_no_interval():
    few = bootstrap([1.0, 0.0], [1.0, 0.0], statistic=ratio_of_sums)
    assert few.value == 1.0
    assert math.isnan(few.low)
    assert few.text() == "100.0 [?]"
    assert not few.excludes_zero
    enough = bootstrap([1.0] * 10, [1.0] * 9 + [0.0], statistic=ratio_of_sums)
    assert not math.isnan(enough.low)


def test_the_same_input_gives_the_same_interval_and_no_question_gives_nan():
    values = [0.0, 1.0, 1.0, 0.5]
    assert bootstrap(values) == bootstrap(values)
    empty = bootstrap([])
    assert math.isnan(empty.value)
    assert empty.num_values == 0
    assert empty.text() == "–"


def test_pairing_settles_a_difference_that_unpaired_intervals_hide():
    before = [place / 40 for place in range(40)]
    after = [value + 0.02 for value in before]
    difference = bootstrap([new - old for new, old in zip(after, before, strict=True)])
    assert difference.value == pytest.approx(0.02)
    assert difference.excludes_zero
    assert bootstrap(after).low < bootstrap(before).high


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="longer"):
        bootstrap([1.0], [1.0, 2.0], statistic=ratio_of_sums)
