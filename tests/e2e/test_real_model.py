"""A real pretrained model trains both policies on real problems until a SIGTERM; its tests alone are skipped, and the
tiny models train, where the model can be had nowhere."""

import json
from pathlib import Path

import pytest

from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.errors import OutageError
from studies.real_model import make_model

from .proofs import replayed_book

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.xdist_group("others")]
SMALL = (
    "data.train_batch_size=2",
    "data.max_response_length=64",
    "policies.code.actor.ppo_mini_batch_size=2",
    "policies.test.actor.ppo_mini_batch_size=2",
    "policies.test.rollout.response_length=64",
    "episode.num_candidates=2",
    "episode.num_suites=2",
    "trainer.total_training_steps=50",
    "trainer.save_freq=-1",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("model") / "smollm2"


@pytest.fixture(scope="module")
def why_no_model(model) -> str:
    """Empty where the model is there."""
    try:
        make_model(model)
    except OutageError as error:
        return f"SmolLM2-135M cannot be had: {error}"
    return ""


@pytest.fixture(scope="module")
def run(interrupt, repository, model, why_no_model, tmp_path_factory):
    """Two steps, and a SIGTERM while the episodes of the third one run."""
    problems = repository.parent / "shared" / "data" / "mbpp.jsonl"
    data = (f"data.train_files={problems}",) if problems.is_file() else ()
    if not why_no_model:
        data += tuple(f"policies.{policy}.model.path={model}" for policy in ("code", "test"))
    preset = "cpu" if why_no_model else "smollm2-135m"
    return interrupt(tmp_path_factory.mktemp("real") / "run", "step 2/50 |", *SMALL, *data, preset=preset)


def test_both_policies_train_and_every_program_is_judged(run):
    assert [row["step"] for row in run.metrics] == [1, 2], run.output[-3000:]
    for row in run.metrics:
        assert row["code/actor/grad_norm"] >= 0
        assert row["code/perf/total_num_tokens"] > 0
    for step in (1, 2):
        records = run.rollouts(step)
        assert len(records) == 2 * 2
        assert all(record.outage == "" and record.verdict is not None for record in records)


def test_servers_in_bfloat16_and_workers_agree_on_probabilities(run, why_no_model):
    """float32 weights with bfloat16 products, packed rows, chunked logits and synced weights: one model."""
    if why_no_model:
        pytest.skip(why_no_model)
    for row in run.metrics:
        assert row["code/rollout_probs_diff_mean"] < 0.02
        assert row["code/rollout_actor_probs_pearson_corr"] > 0.99


def test_sigterm_saves_the_last_finished_step_and_leaves_in_time(run):
    assert run.returncode == 143, run.output[-4000:]
    assert run.seconds_to_leave < 120
    saved: Path = run.folder / "checkpoints" / "global_step_2"
    assert f"interrupted by SIGTERM: step 2 is saved in {saved}" in run.output
    assert (saved.parent / "latest_checkpointed_iteration.txt").read_text() == "2"
    assert MistakeBook.load(saved / "mistake_book.json") == replayed_book([run.rollouts(1), run.rollouts(2)])
    assert json.loads((saved / "metrics.json").read_text())["code/reward"] == run.metrics[-1]["code/reward"]
