"""Trains three steps of a GPU preset as it is shipped, on random weights of its shape, and prints what users would see.

All GPU presets make two optimizer steps in a step, with a separate pass for old log-probabilities. The figures say what
that path takes on a card: seconds a phase, memory against ``code-a1 plan``, and KL and clip fraction.
"""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.stats.tables import Table, table_with_head
from code_a1_recipe.training.plan.check import plan_of
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.needs import Place
from code_a1_recipe.training.plan.sizes import with_sizes

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from gpu.card import GIB, read_card, watched_peak
from gpu.policies import SHAPES, make_world

NUM_STEPS, QUESTIONS, MINI_BATCH = 3, 32, 16
COMMENTS = 400
"""A response of 2,048 random tokens then holds about five programs."""
FIGURES = (
    "timing_s/step",
    "timing_s/episodes",
    "time_frac/exposed_judging",
    *(
        f"{policy}/{name}"
        for policy in ("code", "test")
        for name in (
            "timing_s/old_log_prob",
            "timing_s/ref",
            "timing_s/update_actor",
            "actor/ppo_kl",
            "actor/pg_clipfrac",
            "actor/grad_norm",
            "rollout_probs_diff_mean",
            "response_length/mean",
            "perf/max_memory_allocated_gb",
            "perf/max_memory_reserved_gb",
        )
    ),
    "timing_s/update_code",
    "timing_s/update_test",
    "timing_s/update_weights",
)
"""Metrics in the table, as far as a run has them."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is trained: a preset with the sizes that are not its own."""

    preset: str
    shape: str
    overrides: tuple[str, ...]


ON_A_CARD = Trial(
    preset="qwen2.5-coder-1.5b-1gpu",
    shape="Qwen2.5-Coder-1.5B",
    overrides=(
        f"data.train_batch_size={QUESTIONS}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={MINI_BATCH}",
        "ray_kwargs.ray_init.num_cpus=64",
    ),
)
REHEARSAL = Trial(
    preset="cpu",
    shape="small",
    overrides=(
        "micro=null",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "policies.test.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.rollout.max_model_len=null",
        "policies.test.rollout.prompt_length=1024",
    ),
)


def run_preset(trial: Trial, work: Path, output: Path) -> str:
    """Train, and write the table of all steps to ``output/preset.md``. Returns the table.

    Raises:
        CodeA1Error: the run ended with an error.
    """
    card = read_card()
    world = make_world(
        work / "world",
        SHAPES[trial.shape],
        device="cuda" if card else "cpu",
        num_questions=NUM_STEPS * QUESTIONS,
        num_positions=8192,
        num_comments=COMMENTS if card else 4,
    )
    models = {"code": world.code_model, "test": world.test_model}
    overrides = [
        *trial.overrides,
        "prompts.name=micro",
        *(f"policies.{policy}.model.path={path}" for policy, path in models.items()),
        f"data.train_files=[{world.questions}]",
        f"data.val_files=[{world.questions}]",
        f"trainer.total_training_steps={NUM_STEPS}",
        "trainer.val_before_train=false",
        "trainer.test_freq=-1",
        "trainer.save_freq=-1",
        f"run_dir={work / 'run'}",
    ]
    log = output / "preset.log"
    output.mkdir(parents=True, exist_ok=True)
    with watched_peak(card) if card else nullcontext() as peak, log.open("wb") as handle:
        command = [sys.executable, "-m", "code_a1_recipe", trial.preset, *overrides]
        done = subprocess.run(command, stdout=handle, stderr=subprocess.STDOUT, check=False)
    seen = f"{peak.used / GIB:.1f} GiB" if peak else "no card"
    table = _table(RunRecords.open(work / "run"), planned=_planned(trial.preset, overrides), seen=seen)
    write_whole(output / "preset.md", table.markdown())
    if done.returncode:
        raise CodeA1Error(f"the run of {trial.preset} ended with status {done.returncode}; see {log}")
    return table.markdown()


def _planned(preset: str, overrides: Sequence[str]) -> str:
    config = with_sizes(read_config(preset, overrides))
    rows = plan_of(config, Machine.here(config.run_dir, device=config.trainer.device)).rows
    return "; ".join(row.text() for row in rows if row.place.startswith(Place.CARD)) or "no card"


def _table(records: RunRecords, *, planned: str, seen: str) -> Table:
    steps = [row for row in records.metrics if row["step"] > 0]
    rows = [["figure", *(f"step {row['step']}" for row in steps)]]
    for name in FIGURES:
        if any(name in row for row in steps):
            rows.append([name, *(f"{row[name]:.4g}" if name in row else "" for row in steps)])
    return table_with_head(
        rows,
        title="The preset as shipped, on random weights",
        note=f"Planned: {planned}. Seen: {seen}. KL and clip fraction are means over a step's optimizer steps; "
        "the first of these has 0 by definition.",
    )
