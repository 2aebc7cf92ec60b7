import pytest

from code_a1_recipe.algorithm.schedule import UpdateSchedule
from code_a1_recipe.errors import SettingsError


def test_both_policies_update_at_every_step_by_default():
    assert [UpdateSchedule().policies_at(step) for step in (1, 2)] == [("code", "test"), ("code", "test")]


def test_a_slower_policy_updates_at_every_nth_step():
    schedule = UpdateSchedule(code_every=1, test_every=3)
    assert [schedule.policies_at(step) for step in (1, 2, 3, 6)] == [
        ("code",),
        ("code",),
        ("code", "test"),
        ("code", "test"),
    ]


def test_a_step_may_update_nobody():
    assert UpdateSchedule(code_every=2, test_every=3).policies_at(1) == ()


def test_zero_freezes_a_policy():
    assert UpdateSchedule(test_every=0).policies_at(6) == ("code",)


@pytest.mark.parametrize("name", ["code_every", "test_every"])
def test_a_schedule_that_cannot_work_is_refused(name):
    with pytest.raises(SettingsError, match=f"schedule.{name} must be at least 0, got -1"):
        UpdateSchedule.read({name: -1}, where="schedule")
