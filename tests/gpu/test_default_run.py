"""What a newcomer starts: a training without a preset, of the tiny models, as long as two steps take."""

import sys

import pytest
from e2e.conftest import start

from code_a1_recipe.cli.train import REAL_MODELS
from code_a1_recipe.tools.report.measures import MEASURES

from .card import read_card
from .conftest import REHEARSAL
from .runs import IN_BFLOAT16, POLICIES

pytestmark = [pytest.mark.gpu, pytest.mark.e2e, pytest.mark.alone]


@pytest.fixture(scope="module")
def preset():
    if not REHEARSAL and read_card() is None:
        pytest.skip("no NVIDIA GPU here (CODE_A1_GPU_REHEARSAL=1 rehearses these tests on a CPU)")
    return "cpu" if REHEARSAL else "tiny-1gpu"


@pytest.fixture(scope="module")
def run(preset, repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("default") / "run"
    words = (f"run_dir={folder}", "trainer.total_training_steps=2", "data.val_max_samples=16")
    return start([sys.executable, "-m", "code_a1_recipe", "train", *words], folder, repository)


def test_it_ends_with_the_table_and_the_command_for_a_real_model(run, preset):
    assert run.returncode == 0, run.output[-6000:]
    end = run.output.partition(f"\ntrained: {preset}\n")[2]
    table = end.partition("\nheld-out questions (16), step 0 -> step 2, ")[2]
    assert [label for label in MEASURES.values() if f"\n  {label} " not in table] == []
    assert f"\n  code-a1 {REAL_MODELS[preset]}\n" in table


def test_both_policies_learn_from_what_their_servers_sampled(run, preset):
    assert len(run.metrics) == 2
    for row in run.metrics:
        for policy in POLICIES:
            assert row[f"{policy}/actor/grad_norm"] > 0
            assert row[f"{policy}/rollout_probs_diff_mean"] < (1e-5 if preset == "cpu" else IN_BFLOAT16)
