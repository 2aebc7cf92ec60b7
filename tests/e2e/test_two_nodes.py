"""A Ray cluster of two nodes on this machine: ranks, servers and judges on both; a judge dies, a server
stops answering. Reward function and prompt template of the Test LLM are a user's, outside the package, named by key."""

import shutil
from collections import Counter
from itertools import groupby

import pytest
import torch

from code_a1_recipe.algorithm.mistake_book import MistakeBook

from .proofs import replayed_book

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.alone]  # as many processes as two runs

# A server's longest answer takes about a second; the run waits this long for the one that was stopped.
ANSWER_SECONDS = 25


@pytest.fixture(scope="module")
def two_nodes(drive, repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two_nodes")
    shutil.copy(repository / "examples" / "own_reward" / "crowding.py", folder / "mine.py")
    shipped = repository / "code_a1_recipe" / "algorithm" / "prompt_templates" / "micro_test.txt"
    shutil.copy(shipped, folder / "mine.txt")
    return drive(
        "two_nodes.py",
        folder / "run",
        f"rewards.test.path={folder / 'mine.py'}",
        "rewards.test.name=crowding",
        "rewards.test.kwargs={power: 0.5}",
        "rewards.alpha=0.25",
        f"prompts.test={folder / 'mine.txt'}",
        "trainer.nnodes=2",
        "trainer.total_training_steps=4",
        "trainer.save_freq=-1",
        "trainer.test_freq=-1",
        "trainer.val_before_train=false",
        f"episode.generation_timeout_seconds={ANSWER_SECONDS}",
    )


def test_both_nodes_train_and_serve(two_nodes):
    assert "workers on each node: [2, 2]" in two_nodes.output, two_nodes.output[-4000:]
    assert "servers on each node: [2, 2]" in two_nodes.output
    assert len(two_nodes.metrics) == 2
    for row in two_nodes.metrics:
        for policy in ("code", "test"):
            assert row[f"{policy}/rollout_probs_diff_mean"] <= 1e-5  # the weights reached both nodes


def test_the_loss_of_a_nodes_judge_costs_no_verdict(two_nodes):
    assert "judges on each node: [1, 1]" in two_nodes.output
    assert "killed a judge of the worker node" in two_nodes.output
    records = [two_nodes.rollouts(step) for step in (1, 2)]
    assert [len(of_step) for of_step in records] == [8 * 4, 8 * 4]
    assert all(record.verdict is not None for of_step in records for record in of_step)
    assert MistakeBook.load(two_nodes.folder / "mistake_book.json") == replayed_book(records)


def test_a_server_that_stops_answering_ends_the_run_with_the_finished_step_saved(two_nodes):
    assert "stopped a server of the worker node" in two_nodes.output
    assert two_nodes.returncode == 1, two_nodes.output[-4000:]
    assert f"episode.generation_timeout_seconds={ANSWER_SECONDS}" in two_nodes.output
    saved = two_nodes.folder / "checkpoints" / "global_step_2"
    assert f"step 2 is saved in {saved}" in two_nodes.output
    assert (saved.parent / "latest_checkpointed_iteration.txt").read_text() == "2"


def test_the_shards_of_two_ranks_are_resumed_from_on_one_node_with_two_devices(two_nodes, train, tmp_path):
    step = two_nodes.folder / "checkpoints" / "global_step_2"
    shards = sorted(path.name for path in (step / "test" / "actor").glob("model_*.pt"))
    assert shards == [f"model_world_size_2_rank_{rank}.pt" for rank in range(2)]
    again = train(
        tmp_path / "run",
        f"resume={step}",
        "trainer.n_gpus_per_node=2",
        "trainer.total_training_steps=3",
        "trainer.save_freq=3",
        "trainer.test_freq=-1",
        "trainer.val_before_train=false",
    )
    assert again.returncode == 0, again.output[-4000:]
    assert f"resumed from {step}" in again.output
    assert [row["step"] for row in again.metrics] == [2, 3]
    for policy in ("code", "test"):
        assert again.metrics[-1][f"{policy}/rollout_probs_diff_mean"] <= 1e-5
        saved = tmp_path / "run" / "checkpoints" / "global_step_3" / policy / "actor"
        for rank in range(2):  # Adam's moments went on from those of step 2
            steps = [
                {float(state["step"]) for state in torch.load(file, weights_only=False)["state"].values()}
                for folder in (step / policy / "actor", saved)
                for file in [folder / f"optim_world_size_2_rank_{rank}.pt"]
            ]
            assert max(steps[1]) > max(steps[0]) > 0


def test_the_suites_have_the_rewards_of_the_users_function(two_nodes):
    records = [record for record in two_nodes.rollouts(1) if record.verdict is not None and record.suites]
    by_question = {question: list(group) for question, group in groupby(records, key=lambda one: one.question)}
    assert by_question
    for programs in by_question.values():
        written = [(program, suite) for program in programs for suite in program.suites]
        times = Counter(name for _, suite in written for name in {case.id for case in suite.verdict.cases})
        for program, suite in written:
            failed = [case for case in suite.verdict.cases[:1] if case.outcome.failed]  # K of the preset is 1
            adv = sum(times[case.id] ** -0.5 for case in failed)
            assert suite.reward.parts["adversarial"] == pytest.approx(0.75 * adv * program.verdict.loaded)
    assert any(suite.reward.parts["adversarial"] > 0 for one in records for suite in one.suites)
