"""Two policies train for real: verl's trainer, vLLM servers, FSDP2 updates, confined processes, files."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM

from code_a1_recipe.algorithm.mistake_book import MistakeBook

from .conftest import SETTINGS
from .proofs import replayed_book, state_differences, weights

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("trained")]

POLICIES = ("code", "test")


def test_the_run_ends_well_and_says_where_everything_is(trained):
    assert trained.returncode == 0, trained.output[-4000:]
    written = ("resolved_config.yaml", "metrics.jsonl", "rollouts", "mistake_book.json", "checkpoints", "tensorboard")
    for name in written:
        assert (trained.folder / name).exists()
    assert f"run folder   {trained.folder}\n" in trained.output
    assert "step 4/4 | code " in trained.output


def test_servers_sample_with_the_trainers_weights_at_every_step(trained):
    for row in trained.metrics[:3]:  # the fourth is the negative control
        for policy in POLICIES:
            assert row[f"{policy}/rollout_probs_diff_mean"] <= 1e-5
            assert row[f"{policy}/rollout_probs_diff_valid"] == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_the_second_optimizer_step_of_a_batch_meets_a_policy_that_has_moved(trained, policy):
    """So its ratios are not 1. Each of the two ranks has its part of the checkpoint."""
    for row in trained.metrics[:3]:
        figures = [row[f"{policy}/actor/{name}"] for name in ("ppo_kl", "pg_clipfrac", "grad_norm")]
        assert all(math.isfinite(figure) for figure in figures)
        assert figures[0] != 0
        assert row[f"{policy}/rollout_log_probs_diff_worst"] < 1e-5
    folder = trained.folder / "checkpoints" / "global_step_2" / policy / "actor"
    assert len(list(folder.glob("optim_world_size_2_rank_*.pt"))) == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policys_weights_change_from_step_to_step(trained, policy):
    first, second = weights(trained.folder, 2, policy), weights(trained.folder, 3, policy)
    assert first.keys() == second.keys()
    assert any(not torch.equal(first[name], second[name]) for name in first)


def test_the_two_policies_are_two_models_with_two_tokenizers(trained):
    config = yaml.safe_load((trained.folder / "resolved_config.yaml").read_text())
    folders = [Path(config["policies"][policy]["model"]["path"]) for policy in POLICIES]
    sizes = [sum(tensor.numel() for tensor in weights(trained.folder, 2, policy).values()) for policy in POLICIES]
    vocabularies = [json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"] for folder in folders]
    assert sizes[0] != sizes[1]
    assert len(vocabularies[0]) != len(vocabularies[1])


@pytest.mark.parametrize("step", [1, 2])
def test_every_candidate_suite_and_verdict_is_recorded(trained, step):
    records = trained.rollouts(step)
    assert len(records) == 8 * 4
    for record in records:
        assert record.outage == ""
        assert record.verdict is not None
        assert record.reward.total == pytest.approx(sum(record.reward.parts.values()), abs=1e-6)
        assert len(record.suites) == (8 if record.source is not None else 0)
        for suite in record.suites:
            assert suite.verdict is not None
            assert 0.0 <= suite.reward.total <= 1.0
    copy = Path(f"{trained.folder}_copies") / f"{step}.jsonl"  # trainer.rollout_data_dir
    assert copy.read_bytes() == (trained.folder / "rollouts" / f"train_{step:06}.jsonl").read_bytes()


def test_one_candidate_of_a_question_trains_the_test_llm(trained):
    for step in (1, 2):
        chosen = {record.index: 0 for record in trained.rollouts(step)}
        for record in trained.rollouts(step):
            chosen[record.index] += record.selected
        assert set(chosen.values()) <= {0, 1}
        assert sum(chosen.values()) >= 7


def test_the_book_is_what_the_verdicts_say(trained):
    expected = replayed_book([trained.rollouts(step) for step in (1, 2, 3, 4)])
    assert expected.num_cases > 0
    assert MistakeBook.load(trained.folder / "mistake_book.json") == expected
    checkpoint = trained.folder / "checkpoints" / "global_step_4" / "mistake_book.json"
    assert MistakeBook.load(checkpoint) == expected


def test_validation_judges_both_policies_on_held_out_questions(trained):
    row = trained.metrics[-1]
    for name in (
        "code/pass@1",
        "code/greedy_pass@1",
        "test/valid",
        "test/buggy_programs_valid",
        "test/buggy_programs_kill",
    ):
        assert 0.0 <= row[f"val/{name}"] <= 1.0
    assert len(trained.rollouts(4, "val")) == 4 * 8
    greedy, buggy_programs = (trained.rollouts(4, "val", kind=kind) for kind in ("greedy", "buggy_program"))
    assert [record.suites for record in greedy] == [()] * 8
    assert row["val/code/greedy_pass@1"] == sum(record.is_solved for record in greedy) / 8
    # What the buggy_programs show is known to be wrong, so a hidden test breaks each of them.
    assert 8 <= len(buggy_programs) <= 2 * 8
    assert all(len(record.suites) == 1 for record in buggy_programs)
    trained_on = {record.question for step in (1, 2, 3, 4) for record in trained.rollouts(step)}
    assert trained_on.isdisjoint({record.question for record in trained.rollouts(4, "val")})


def test_the_run_ends_with_its_report(trained):
    assert f"report       {trained.folder}/report/index.html" in trained.output
    assert "Commands and versions" in (trained.folder / "report" / "index.html").read_text()
    assert f"run_dir={trained.folder}" in (trained.folder / "command.txt").read_text()


def test_full_reward_that_hidden_tests_deny_is_counted(trained):
    for step, row in enumerate(trained.metrics, 1):
        full = [record for record in trained.rollouts(step) if record.reward.total > 1 - 1e-6]
        denied = sum(not record.is_solved for record in full)
        assert row["code/reward_false_positive_rate"] == pytest.approx(denied / len(full))


def test_tensorboard_has_the_same_names(trained):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(trained.folder / "tensorboard"))
    events.Reload()
    assert set(trained.metrics[-1]) - {"step"} == set(events.Tags()["scalars"])


def test_a_run_resumes_with_the_questions_that_come_next(resumed, trained):
    resumed = resumed.run
    assert resumed.returncode == 0, resumed.output[-4000:]
    assert [row["step"] for row in resumed.metrics] == [1, 2, 3]
    assert f"resumed from {resumed.folder}/checkpoints/global_step_2" in resumed.output
    assert "changed since it was saved: trainer.test_freq: 2 -> -1" in resumed.output
    never_stopped, went_on = ([record.question for record in run.rollouts(3)] for run in (trained, resumed))
    assert never_stopped == went_on
    # The second epoch meets the mistakes of the first, also those that only the checkpoint remembers.
    assert {record.question for record in resumed.rollouts(3)} <= {
        record.question for step in (1, 2) for record in resumed.rollouts(step)
    }
    assert resumed.metrics[2]["book/replayed"] > 0
    expected = replayed_book([resumed.rollouts(step) for step in (1, 2, 3)])
    assert MistakeBook.load(resumed.folder / "mistake_book.json") == expected


def test_a_resumed_run_ends_in_the_state_of_one_that_never_stopped(resumed, trained):
    # Weights, optimizers, random states, data order and book, bit by bit; the resumed one lost processes on the way.
    folders = [run.folder / "checkpoints" / "global_step_3" for run in (trained, resumed.run)]
    assert state_differences(*folders) == []
    assert state_differences(folders[0].with_name("global_step_2"), folders[1]) != []


def test_the_best_step_by_validation_is_noted(trained):
    best = json.loads((trained.folder / "checkpoints" / "best.json").read_text())
    metric = "val/code/pass@1"
    validated = {row["step"]: row[metric] for row in trained.metrics if metric in row}
    assert list(validated) == [2, 4]
    assert best == {"step": best["step"], "metric": metric, "value": validated[best["step"]]}
    assert best["value"] == max(validated.values())


def test_an_exported_policy_is_the_trained_one(trained, repository, tmp_path):
    command = [sys.executable, "-m", "code_a1_recipe", "export", str(trained.folder), "--policy", "test"]
    subprocess.run([*command, "--output", str(tmp_path / "test")], cwd=repository, check=True, timeout=300)
    assert "Test LLM, validity " in (tmp_path / "test" / "README.md").read_text()
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "test").state_dict()
    for name, value in weights(trained.folder, 4, "test").items():
        assert torch.equal(exported[name], value.to(exported[name].dtype)), name


def test_where_a_steps_time_went_is_recorded(trained):
    for row in trained.metrics:
        assert 0.0 <= row["timing_s/exposed_judging"] <= row["timing_s/episodes"] <= row["timing_s/step"]
    for record in trained.rollouts(2):
        assert record.span[0] <= record.span[1] <= record.judge_span[0] <= record.judge_span[1]


@pytest.fixture(scope="module")
def repeated(train, tmp_path_factory):
    """One step with the seed of ``trained``."""
    return train(
        tmp_path_factory.mktemp("e2e") / "repeated",
        "trainer.total_training_steps=1",
        "trainer.save_freq=-1",
        "trainer.test_freq=-1",
        "data.val_max_samples=8",
        *SETTINGS,
    )


@pytest.mark.nightly
def test_a_second_run_with_the_same_seed_has_the_same_book_after_the_first_step(trained, repeated):
    books = [replayed_book([run.rollouts(1)]) for run in (trained, repeated)]
    assert books[0] == books[1]
    assert books[0].num_cases > 0


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sampled", "greedy", "buggy_program"])
def test_validating_the_same_weights_again_samples_the_same(trained, repeated, kind):
    def sampled(run):
        return [
            (record.question, record.response, [suite.response for suite in record.suites])
            for record in run.rollouts(0, "val", kind=kind)
        ]

    assert sampled(trained) == sampled(repeated)
    assert len(sampled(trained)) >= 8
