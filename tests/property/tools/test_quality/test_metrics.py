"""Laws of the metrics of generated tests, whatever the results are."""

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.tools.test_quality.metrics import FunctionResult, parts_of


@st.composite
def function_results(draw):
    num_tests = draw(st.integers(0, 6))
    right = tuple(draw(st.lists(st.booleans(), min_size=num_tests, max_size=num_tests)))
    rows = st.tuples(*(st.booleans() if is_right else st.just(False) for is_right in right))
    kills = tuple(draw(st.lists(rows, max_size=5)))
    num_lines = draw(st.integers(1, 8))
    lines = st.frozensets(st.integers(1, num_lines))
    arcs = st.frozensets(st.tuples(st.just(1), st.integers(2, 5)))
    return FunctionResult(
        right=right,
        kills=kills,
        num_lines=num_lines,
        lines=tuple(draw(lines) for _ in right),
        num_branches=4,
        branches=tuple(draw(arcs) for _ in right),
    )


def metrics_of(results, k):
    """Percentages by name; None where no function counts."""
    metrics = {}
    for name, parts in parts_of_all(results, k).items():
        numerator, denominator = map(sum, zip(*parts, strict=True))
        metrics[name] = 100 * numerator / denominator if denominator else None
    return metrics


def parts_of_all(results, k):
    """The parts of each function, by name."""
    parts = [parts_of(result, k) for result in results]
    return {name: [one[name] for one in parts] for name in parts[0]} if parts else {}


some_results = st.lists(function_results(), max_size=6)
some_k = st.integers(1, 7)


@given(some_results, some_k)
def test_every_metric_is_a_percentage(results, k):
    for name, value in metrics_of(results, k).items():
        assert value is None or 0.0 <= value <= 100.0, name


@given(some_results, some_k)
def test_more_tests_cover_and_kill_no_less(results, k):
    fewer, more = metrics_of(results, k), metrics_of(results, k + 1)
    for name in fewer.keys() & {"line_cov", "branch_cov", "mut_right_only"}:
        small, large = fewer[name], more[name]
        assert (small is None) == (large is None)
        assert small is None or small <= large + 1e-9


@given(some_results, some_k)
def test_right_tests_alone_kill_no_less_than_a_baseline_that_may_fail(results, k):
    for result in results:
        found = parts_of(result, k)
        (strict, counted), (lenient, also_counted) = found["mut_all"], found["mut_right_only"]
        assert counted == also_counted
        assert strict <= lenient


@given(some_results, some_k)
def test_the_baseline_and_all_functions_kill_the_same_mutants(results, k):
    for result in results:
        found = parts_of(result, k)
        baseline, everything = found["mut"], found["mut_all"]
        assert baseline[0] == everything[0]
        assert baseline[1] <= everything[1]


@given(some_results, some_k)
def test_a_right_test_among_the_first_raises_pass_by_its_share(results, k):
    changed = [FunctionResult(right=(True, *result.right[1:])) for result in results if result.right]
    before = [FunctionResult(right=result.right) for result in results if result.right]
    gained = sum(not result.right[0] for result in before)
    if before:
        difference = metrics_of(changed, k)["pass"] - metrics_of(before, k)["pass"]
        assert difference == pytest.approx(100 * gained / (k * len(before)))
