"""Laws of the metrics of generated tests, whatever the results are."""

from hypothesis import assume, given, strategies as st

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


some_k = st.integers(1, 7)


@given(function_results(), some_k)
def test_every_metric_is_a_share(result, k):
    for name, (numerator, denominator) in parts_of(result, k).items():
        assert 0 <= numerator <= denominator, name


@given(function_results(), some_k)
def test_more_tests_cover_no_less(result, k):
    fewer, more = parts_of(result, k), parts_of(result, k + 1)
    for name in ("line_cov", "branch_cov"):
        assert fewer[name][0] <= more[name][0]
        assert fewer[name][1] == more[name][1]


@given(function_results(), some_k)
def test_mut_and_mut_all_kill_alike_and_mut_all_counts_no_fewer_functions(result, k):
    found = parts_of(result, k)
    assert found["mut"][0] == found["mut_all"][0]
    assert found["mut"][1] <= found["mut_all"][1]


@given(function_results(), some_k)
def test_a_right_test_among_the_first_raises_pass_by_one(result, k):
    assume(result.right)
    changed = FunctionResult(right=(True, *result.right[1:]))
    assert parts_of(changed, k)["pass"][0] == parts_of(result, k)["pass"][0] + (not result.right[0])
