"""The supported version of verl, and names whose meaning verl may change.

``tests/unit/verl_plugin/test_verl_contract.py`` compares these names with the installed verl. If an upgrade of verl
changes such a name, this test fails before a run does.
"""

from importlib.metadata import version
from typing import Any

VERL_VERSION = "0.9.1"
"""The release of verl with which this recipe was checked. REQUIRED_VERL.txt names it too."""

SYNC_MODE = "sync"
"""verl's base class trains on-policy only if its attribute ``trainer_mode`` is "sync". A trainer that is registered
under another name must therefore set the attribute."""

TRAINER_NAME = "code_a1"
"""The recipe's name in verl's trainer registry; the value of ``trainer.v1.trainer_mode``."""

CPUS_PER_DEVICE = 3
"""CPUs that verl's resource pools reserve for each device (their ``max_colocate_count``)."""
CPUS_PER_QUEUE_ACTOR = 1
"""CPUs for TransferQueue's controller, and for each storage unit."""

_METRICS_OF_STEP = frozenset({"global_step", "epoch", "timing_s/gen", "timing_per_token_ms/gen"})


def installed_verl() -> str:
    """Return the version of the installed verl."""
    return version("verl")


def rename_training_metrics(metrics: dict[str, float]) -> dict[str, float]:
    """Remove verl's prefix ``training/`` from names of metrics, since the recipe groups metrics by policy.

    ``training/rollout_probs_diff_mean`` becomes ``rollout_probs_diff_mean``. Step counters and the time of generation
    are left out, since they belong to the step and not to one policy.
    """
    return {
        short: value
        for name, value in metrics.items()
        if (short := name.removeprefix("training/")) not in _METRICS_OF_STEP
    }


def ray_runtime_env(config: Any) -> dict[str, Any]:
    """Return the ``runtime_env`` that verl itself would give Ray; ``config`` is verl's configuration."""
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env  # imports all of verl

    environment: dict[str, Any] = get_ppo_ray_runtime_env(config)  # type: ignore[no-untyped-call]
    return environment
