"""The preset of a real pretrained model trains both policies; skipped where the model can be had nowhere."""

import sys

import pytest

from code_a1_recipe.errors import OutageError
from code_a1_recipe.training.base_model import ensure_model

from .conftest import start

pytestmark = pytest.mark.e2e
SMALL = (
    "data.train_batch_size=2",
    "episode.num_candidates=2",
    "episode.num_suites=2",
    "policies.code.actor.ppo_mini_batch_size=2",
    "policies.test.actor.ppo_mini_batch_size=2",
    "data.max_response_length=64",
    "policies.test.rollout.response_length=64",
    "trainer.total_training_steps=2",
    "trainer.save_freq=-1",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
)


@pytest.fixture(scope="module")
def run(repository, tmp_path_factory):
    if sys.platform != "linux":
        pytest.skip("trains with confined processes, which need Linux")
    try:
        ensure_model("smollm2-135m")
    except OutageError as error:
        pytest.skip(f"SmolLM2-135M cannot be had: {error}")
    folder = tmp_path_factory.mktemp("real") / "run"
    command = [sys.executable, "-m", "code_a1_recipe", "smollm2-135m", f"run_dir={folder}", *SMALL]
    return start(command, folder, repository)


def test_two_steps_of_both_policies(run):
    assert run.returncode == 0, run.output[-3000:]
    assert [row["step"] for row in run.metrics] == [1, 2]
    for row in run.metrics:
        assert row["code/actor/grad_norm"] >= 0
        assert row["code/perf/total_num_tokens"] > 0


def test_servers_in_bfloat16_and_workers_agree_on_probabilities(run):
    """float32 weights with bfloat16 products, packed rows, chunked logits and synced weights: one model."""
    for row in run.metrics:
        assert row["code/rollout_probs_diff_mean"] < 0.02
        assert row["code/rollout_actor_probs_pearson_corr"] > 0.99
