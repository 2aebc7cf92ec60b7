import pickle

import pytest

from reward_fns import Breakdown


def test_the_total_is_the_sum_of_the_parts():
    assert Breakdown(parts={"validity": 0.5, "adversarial": 0.25}).total == 0.75


def test_the_total_is_a_float32_value():
    assert Breakdown(parts={"new": 0.1}).total == 0.10000000149011612


def test_parts_are_summed_exactly_before_the_rounding():
    assert Breakdown(parts={"a": 1e16, "b": 1.0, "c": -1e16}).total == 1.0


def test_no_parts_sum_to_zero():
    assert Breakdown(parts={}).total == 0.0


def test_a_part_that_is_not_finite_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'new': nan"):
        Breakdown(parts={"new": float("nan")})


def test_later_changes_of_the_callers_dictionary_do_not_reach_a_breakdown():
    parts = {"new": 0.5}
    reward = Breakdown(parts=parts)
    parts["new"] = 1.0
    assert reward.total == 0.5


def test_a_breakdown_survives_pickling():
    reward = Breakdown(parts={"new": 0.5}, terms={"num_valid": 3.0})
    assert pickle.loads(pickle.dumps(reward)) == reward
