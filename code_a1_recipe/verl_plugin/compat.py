"""The supported version of verl, and names whose meaning verl may change.

``tests/unit/verl_plugin/test_verl_contract.py`` compares all of this with the installed verl. So an upgrade fails there
with a reason, and not in the middle of a run.
"""

from importlib.metadata import version
from typing import Any

VERL_VERSION = "0.9.1"
"""The release that this recipe was checked with. REQUIRED_VERL.txt names it too."""

SYNC_MODE = "sync"
"""The only ``trainer_mode`` for which verl's base class trains on-policy. The class compares with this text in several
places, so a trainer that is registered under another name must set its attribute to it."""

TRAINER_NAME = "code_a1"
"""The recipe's name in verl's trainer registry; the value of ``trainer.v1.trainer_mode``."""

CPUS_PER_DEVICE = 3
"""CPUs that verl's resource pools reserve for each device (their ``max_colocate_count``)."""
CPUS_PER_QUEUE_ACTOR = 1
"""CPUs of TransferQueue's controller, and of each of its storage units."""

_TRAINING_PREFIX = "training/"
_NOT_A_POLICYS = frozenset({"global_step", "epoch", "timing_s/gen", "timing_per_token_ms/gen"})


def installed_verl() -> str:
    """Return the version of the installed verl."""
    return version("verl")


def rename_training_metrics(metrics: dict[str, float]) -> dict[str, float]:
    """Remove verl's group ``training/`` from names of metrics, since the recipe groups metrics by policy.

    ``training/rollout_probs_diff_mean`` becomes ``rollout_probs_diff_mean``. Step counters and the time of generation
    are left out, since they belong to the step and not to one policy.
    """
    renamed = {name.removeprefix(_TRAINING_PREFIX): value for name, value in metrics.items()}
    return {name: value for name, value in renamed.items() if name not in _NOT_A_POLICYS}


def ray_runtime_env(config: Any) -> dict[str, Any]:
    """Return Ray's ``runtime_env`` that verl itself would use; ``config`` is verl's."""
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env  # imports all of verl

    environment: dict[str, Any] = get_ppo_ray_runtime_env(config)  # type: ignore[no-untyped-call]
    return environment
