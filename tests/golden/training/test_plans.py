"""Plans of all presets, as they were when somebody last looked at them.

Written again by ``python tests/golden/training/test_plans.py``; a difference must be meant.
"""

import json
from pathlib import Path

import pytest

from code_a1_recipe.config.compose import preset_names, read_config
from code_a1_recipe.training.plan.check import plan_of
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.memory import GIB, LABEL_LOSS
from code_a1_recipe.training.plan.sizes import with_sizes

PLANS = Path(__file__).with_name("plans.json")
MACHINES = ((1, 80), (2, 80), (4, 80), (8, 80), (1, 24))
"""GPUs, and GB of each. Beside 128 cores, 1 TiB of memory and 4 TiB of disk."""


def plans_of(preset: str) -> dict[str, list[str]]:
    """What each place needs, and the verdict, by machine."""
    found = {}
    for number, size in MACHINES:
        config = with_sizes(read_config(preset, [f"trainer.n_gpus_per_node={number}", "run_dir=/nowhere/x"]))
        machine = Machine(
            cores=128, memory=1024 * GIB, shared_memory=512 * GIB, disk=4096 * GIB,
            num_gpus=number, gpu_memory=int((size - LABEL_LOSS) * GIB),
        )  # fmt: skip
        rows = plan_of(config, machine).rows
        found[f"{number} x {size} GB"] = [f"{'fits' if row.fits else 'does not fit'}: {row.text()}" for row in rows]
        if config.trainer.device == "cpu":
            break
    return found


# The others have the same parts and come with `--all`.
ORDINARY = ("cpu", "smollm2-135m", "qwen2.5-coder-1.5b-1gpu")


@pytest.mark.parametrize(
    "preset", [name if name in ORDINARY else pytest.param(name, marks=pytest.mark.nightly) for name in preset_names()]
)
def test_a_presets_plan_is_the_recorded_one(preset):
    assert plans_of(preset) == json.loads(PLANS.read_text(encoding="utf-8"))[preset]


if __name__ == "__main__":
    plans = {preset: plans_of(preset) for preset in preset_names()}
    PLANS.write_text(json.dumps(plans, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
