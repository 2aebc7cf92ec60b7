"""Spans of time against a count of whole seconds, one by one."""

import random
import time
from itertools import pairwise

from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.spans import seconds_of, union

LAST = 16
times = st.integers(0, LAST)
spans_lists = st.lists(st.tuples(times, times), max_size=8)  # empty and reversed ones included


def seconds_under(spans):
    """The whole seconds, each by its start, that at least one span covers."""
    return {second for start, end in spans for second in range(start, end)}


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


def test_a_span_inside_the_last_one_does_not_shorten_it():
    assert union([(0, 1), (5, 10), (6, 7)]) == ((0, 1), (5, 10))


def test_spans_that_touch_are_one():
    assert union([(0, 1), (1, 2)]) == ((0, 2),)


def test_nothing_covers_nothing():
    assert union([]) == ()
    assert seconds_of([(3, 2)]) == 0


def test_a_step_of_the_largest_size_takes_no_time_to_speak_of():
    # A thousand questions, 8 programs, 8 suites: pairwise comparisons would take many minutes.
    draw = random.Random(0)
    spans = [(start, start + draw.random()) for start in (100 * draw.random() for _ in range(64_000))]
    started = time.process_time()
    union(spans)
    assert time.process_time() - started < 10
