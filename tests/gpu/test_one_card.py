"""Two policies in the shape of Qwen2.5-Coder train on one card: what to run first where there is one."""

import math

import pytest
from e2e.proofs import order_problems

from code_a1_recipe.training.plan.needs import Place

from .card import GIB, MIB
from .report import POLICIES

# "e2e" and "alone" keep them out of the quick parts of tests/run.sh, also where there is a card.
pytestmark = [pytest.mark.gpu, pytest.mark.e2e, pytest.mark.alone]

STEPS = {"colocated": 1, "resumed": 3, "lora": 2, "separate": 2, "deterministic": 2, "repeated": 2}
MAX_MEMORY_LEFT = 256 * MIB
MIN_FREED = 0.6


@pytest.fixture(params=STEPS)
def measured(request):
    """Each run in turn."""
    return request.getfixturevalue(request.param)


def test_a_run_ends_with_0_and_has_all_its_steps(measured):
    assert measured.run.returncode == 0, measured.run.output[-6000:]
    assert [row["step"] for row in measured.rows] == [*range(1, STEPS[measured.name] + 1)]


def test_both_policies_learn_and_every_figure_is_finite(measured):
    assert measured.rows
    for row in measured.rows:
        assert [name for name, value in row.items() if not math.isfinite(value)] == []
        for policy in POLICIES:
            assert row[f"{policy}/actor/grad_norm"] > 0


def test_every_program_has_a_verdict_and_its_suites(measured):
    for row in measured.rows:
        records = measured.run.rollouts(row["step"])
        assert len(records) == 8 * 4
        assert [record.outage for record in records if record.outage or record.verdict is None] == []
        assert sum(record.source is not None for record in records) > 8 * 4 / 2
        assert {len(record.suites) for record in records if record.source is not None} == {4}


def test_servers_sample_with_the_trained_weights_after_each_sync(measured, stage):
    for row in measured.rows:
        for policy in POLICIES:
            assert row[f"{policy}/rollout_probs_diff_valid"] == 1
            assert row[f"{policy}/rollout_probs_diff_mean"] < stage.report.max_mean_diff
            assert row[f"{policy}/rollout_probs_diff_max"] < measured.config.episode.max_probs_diff


def test_nothing_is_left_of_a_run(measured):
    assert measured.processes_left == []
    assert measured.memory_left <= MAX_MEMORY_LEFT


def test_servers_sleep_while_policies_train_and_wake_with_new_weights(measured):
    calls = [(row["policy"], row["what"]) for row in measured.sleeps]
    for policy in POLICIES:
        own = [what for name, what in calls if name == policy]
        assert own[:4] == ["sleep", "wake", "sleep", "wake"]


def test_sleep_hands_back_memory_and_wake_takes_it_again(measured, stage):
    if stage.card is None:
        pytest.skip("a rehearsal has no card whose memory could be measured")
    if measured.name == "separate":
        pytest.skip("one card is watched, and the policies have one each")
    held = measured.config.policy("code").rollout.gpu_memory_utilization * stage.card.total
    for row in measured.sleeps:
        change = row["before"] - row["after"] if row["what"] == "sleep" else row["after"] - row["before"]
        assert change > MIN_FREED * held, f"{row}: less than {MIN_FREED:.0%} of {held / GIB:.1f} GiB"


def test_peak_memory_stays_on_the_card(measured, stage):
    if stage.card is None:
        pytest.skip("a rehearsal has no card whose memory could be measured")
    print(f"{measured.name}: {measured.peak / GIB:.1f} GiB at most, {measured.planned / GIB:.1f} GiB planned")
    assert 0 < measured.peak <= stage.card.total


def test_a_resumed_run_goes_on_with_the_questions_that_come_next(resumed):
    assert f"resumed from {resumed.run.folder}/checkpoints/global_step_1" in resumed.run.output
    assert order_problems(resumed.run.folder, steps=3, steps_an_epoch=3) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_checkpoint_has_the_planned_size(colocated, policy):
    folder = colocated.run.folder / "checkpoints" / "global_step_1" / policy / "actor"
    size = sum(path.stat().st_size for path in folder.glob("*.pt"))
    planned = [one for one in colocated.plan.needs if one.place == Place.DISK and one.policy == policy]
    assert size == pytest.approx(sum(one.amount for one in planned), rel=0.1)


def test_deterministic_runs_are_equal_to_the_last_digit(deterministic, repeated, resumed):
    assert deterministic.digest == repeated.digest
    assert deterministic.digest != resumed.digest


def test_a_cut_weight_sync_is_seen_and_ends_the_run(cut, stage):
    first, second = cut.rows[:2]
    for policy in POLICIES:
        assert first[f"{policy}/rollout_probs_diff_mean"] < stage.report.max_mean_diff
        assert second[f"{policy}/rollout_probs_diff_mean"] > stage.report.max_mean_diff
    assert cut.run.returncode == 1
    assert "above episode.max_probs_diff" in cut.run.output
