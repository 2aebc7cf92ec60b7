"""Two policies in the shape of Qwen2.5-Coder train on one card: what to run first where there is one."""

import math

import pytest
from e2e.proofs import order_problems

from code_a1_recipe.training.plan.needs import Place

from .card import GIB
from .runs import CANDIDATES, IN_BFLOAT16, POLICIES, QUESTIONS, STEPS, SUITES

# "e2e" and "alone" keep them out of the quick parts of tests/run.sh, also where there is a card.
pytestmark = [pytest.mark.gpu, pytest.mark.e2e, pytest.mark.alone]

MIN_FREED = 0.6
# Servers without the weights sample nearly uniformly: a small difference, and no correlation (bfloat16: about 0.995).
MIN_CORRELATION = 0.9


@pytest.fixture(params=STEPS)
def measured(request, measured_run):
    return measured_run(request.param)


@pytest.fixture
def card(stage):
    if stage.card is None:
        pytest.skip("a rehearsal has no card whose memory could be measured")
    return stage.card


def test_a_run_ends_with_0_and_has_all_its_steps(measured):
    assert measured.run.returncode == 0, measured.run.output[-6000:]
    assert [row["step"] for row in measured.rows] == [*range(1, STEPS[measured.name] + 1)]


def test_both_policies_learn_and_every_figure_is_finite(measured):
    assert measured.rows
    for row in measured.rows:
        assert [name for name, value in row.items() if not math.isfinite(value)] == []
        assert all(row[f"{policy}/actor/grad_norm"] > 0 for policy in POLICIES)


def test_every_program_has_a_verdict_and_its_suites(measured):
    assert measured.rows
    for row in measured.rows:
        records = measured.run.rollouts(row["step"])
        assert len(records) == QUESTIONS * CANDIDATES
        assert [record.outage for record in records if record.outage or record.verdict is None] == []
        assert sum(record.source is not None for record in records) > len(records) / 2
        assert {len(record.suites) for record in records if record.source is not None} == {SUITES}


def test_servers_sample_with_the_trained_weights_after_each_sync(measured, stage):
    assert measured.rows
    # The policies of "lora" compute in bfloat16 in a rehearsal too.
    most = IN_BFLOAT16 if measured.name == "lora" else stage.max_mean_diff
    for row in measured.rows:
        for policy in POLICIES:
            assert row[f"{policy}/rollout_probs_diff_valid"] == 1
            assert row[f"{policy}/rollout_actor_probs_pearson_corr"] > MIN_CORRELATION
            assert row[f"{policy}/rollout_probs_diff_mean"] < most
            assert row[f"{policy}/rollout_log_probs_diff_worst"] < measured.config.episode.max_log_probs_diff


def test_servers_sleep_while_policies_train_and_wake_with_new_weights(measured):
    trained = 1 if measured.name == "resumed" else STEPS[measured.name]
    for policy in POLICIES:
        calls = [row["what"] for row in measured.sleeps if row["policy"] == policy]
        assert calls == ["sleep", "wake"] * (1 + trained)


def test_nothing_is_left_of_a_run(measured):
    assert measured.processes_left == []
    assert measured.memory_left == 0


def test_sleep_hands_back_memory_and_wake_takes_it_again(measured, card):
    if measured.name == "separate":
        pytest.skip("one card is watched, and each policy has one")
    held = measured.config.policy("code").rollout.gpu_memory_utilization * card.total
    for row in measured.sleeps:
        change = row["before"] - row["after"] if row["what"] == "sleep" else row["after"] - row["before"]
        assert change > MIN_FREED * held, f"{row}: less than {MIN_FREED:.0%} of {held / GIB:.1f} GiB"


def test_peak_memory_stays_on_the_card(measured, card):
    print(f"{measured.name}: {measured.peak / GIB:.1f} GiB at most, {measured.planned / GIB:.1f} GiB planned")
    assert 0 < measured.peak <= card.total


def test_a_resumed_run_goes_on_with_the_questions_that_come_next(measured_run):
    run = measured_run("resumed").run
    assert f"resumed from {run.folder}/checkpoints/global_step_2" in run.output
    assert order_problems(run.folder, steps=3, steps_an_epoch=3) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_checkpoint_has_the_planned_size(measured_run, policy):
    colocated = measured_run("colocated")
    folder = colocated.run.folder / "checkpoints" / "global_step_2" / policy / "actor"
    planned = [one for one in colocated.plan.needs if one.place == Place.DISK and one.process == f"{policy} checkpoint"]
    size = sum(path.stat().st_size for path in folder.glob("*.pt"))
    assert size == pytest.approx(sum(one.amount for one in planned), rel=0.1)


def test_deterministic_runs_are_equal_to_the_last_digit(measured_run, stage):
    """On a card up to the first update, since flash attention's backward pass sums in no fixed order."""
    one, other = measured_run("deterministic"), measured_run("repeated")
    assert one.rows
    claimed = "step 1, program" if stage.card else "step "
    facts = {name: fact for name, fact in one.facts.items() if name.startswith(claimed)}
    assert facts
    assert [name for name, fact in facts.items() if other.facts.get(name) != fact] == []
    assert one.digest != measured_run("lora").digest


def test_a_cut_weight_sync_is_seen(measured_run, stage):
    cut = measured_run("cut")
    assert cut.run.returncode == 0, cut.run.output[-6000:]
    first, second = cut.rows
    for policy in POLICIES:
        assert first[f"{policy}/rollout_probs_diff_mean"] < stage.max_mean_diff
        assert second[f"{policy}/rollout_probs_diff_mean"] > stage.max_mean_diff
