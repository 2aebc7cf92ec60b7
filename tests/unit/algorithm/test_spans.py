"""Spans of time against a count of whole seconds, one by one."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.spans import outside, seconds_of, union
from examples.timeline.busy_spans import BusySeconds, busy_seconds, inside, mean_running, running

LAST = 16
times = st.integers(0, LAST)
spans_lists = st.lists(st.tuples(times, times), max_size=8)  # empty and reversed ones included


def seconds_under(spans):
    """The whole seconds, each by its start, that at least one span covers."""
    return {second for start, end in spans for second in range(start, end)}


def number_at(spans, second):
    return sum(start <= second < end for start, end in spans)


def assert_is_normal(spans):
    """Sorted, disjoint, none empty, with a gap between neighbours."""
    assert all(start < end for start, end in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))


@given(spans=spans_lists)
def test_a_union_covers_what_its_spans_cover(spans):
    found = union(spans)
    assert seconds_under(found) == seconds_under(spans)
    assert_is_normal(found)
    assert seconds_of(spans) == len(seconds_under(spans))


@given(spans=spans_lists, seed=st.integers(0, 99))
def test_a_union_does_not_depend_on_the_order_and_changes_nothing_twice(spans, seed):
    shuffled = random.Random(seed).sample(spans, len(spans))
    assert union(shuffled) == union(spans) == union(union(spans))


@given(spans=spans_lists, others=spans_lists)
def test_what_lies_outside_is_what_the_others_leave(spans, others):
    found = outside(spans, others)
    assert seconds_under(found) == seconds_under(spans) - seconds_under(others)
    assert_is_normal(found)


@given(spans=spans_lists)
def test_the_number_that_runs_changes_where_it_says(spans):
    points = running(spans)
    assert [time for time, _ in points] == sorted({time for time, _ in points})
    assert all(one != other for (_, one), (_, other) in pairwise([(0, 0), *points]))
    assert not points or points[-1][1] == 0
    for second in range(LAST):
        number = next((number for start, number in reversed(points) if start <= second), 0)
        assert number == number_at(spans, second)


@given(spans=spans_lists, start=times, length=st.integers(1, LAST))
def test_the_mean_is_the_mean_of_the_numbers(spans, start, length):
    seconds = range(start, start + length)
    expected = sum(number_at(spans, second) for second in seconds) / length
    assert mean_running(spans, start=start, end=start + length) == pytest.approx(expected)


@given(spans=spans_lists, start=times, end=times)
def test_what_lies_inside_is_cut_at_both_ends(spans, start, end):
    found = inside(spans, start=start, end=end)
    assert all(one < other for one, other in found)
    for second in range(LAST):
        assert number_at(found, second) == (number_at(spans, second) if start <= second < end else 0)


@given(code=spans_lists, test=spans_lists, judge=spans_lists, start=times, length=times)
def test_every_second_belongs_to_one_kind_of_work(code, test, judge, start, length):
    kinds = {"only_code": 0, "only_test": 0, "both": 0, "only_judge": 0, "nothing": 0}
    for second in range(start, start + length):
        in_code, in_test, in_judge = (bool(number_at(spans, second)) for spans in (code, test, judge))
        if in_code or in_test:
            kinds["both" if in_code and in_test else "only_code" if in_code else "only_test"] += 1
        else:
            kinds["only_judge" if in_judge else "nothing"] += 1
    found = busy_seconds(code=code, test=test, judge=judge, start=start, end=start + length)
    assert found == BusySeconds(**kinds)


def test_an_end_before_the_start_is_refused():
    with pytest.raises(ValueError, match="end must not lie before start, got start=2 and end=1"):
        busy_seconds(code=[], test=[], judge=[], start=2, end=1)
    assert mean_running([(0, 5)], start=2, end=2) == 0.0
    assert mean_running([(0, 5)], start=4, end=2) == 0.0


def test_a_span_inside_the_last_one_does_not_shorten_it():
    assert union([(0, 1), (5, 10), (6, 7)]) == ((0, 1), (5, 10))


def test_nothing_covers_nothing():
    assert union([]) == ()
    assert outside([], [(0, 1)]) == ()
    assert running([(1, 1), (3, 2)]) == []
    assert seconds_of([(3, 2)]) == 0


def test_a_step_of_the_largest_size_takes_no_time_to_speak_of():
    # A thousand questions, 8 programs, 8 suites: pairwise comparisons would take many minutes.
    draw = random.Random(0)
    spans = [(start, start + draw.random()) for start in (100 * draw.random() for _ in range(64_000))]
    started = time.process_time()
    union(spans), running(spans), outside(spans, spans[::2])
    assert time.process_time() - started < 10
