"""What depends on verl's version: the version itself, and names whose meaning verl may change.

``tests/unit/verl_plugin/test_verl_contract.py`` holds each of these against the installed verl, so that an upgrade
fails there, with a reason, and not in the middle of a run.
"""

from importlib.metadata import version
from typing import Any

VERL_VERSION = "0.9.1"
"""The release this recipe was checked on; also in REQUIRED_VERL.txt."""

SYNC_MODE = "sync"
"""The only ``trainer_mode`` for which verl's base class keeps on-policy semantics. It tests for the literal string in
several places, so a trainer registered under another name has to set the attribute back to it."""

TRAINER_NAME = "code_a1"
"""Our name in verl's trainer registry; the value of ``trainer.v1.trainer_mode``."""

CPUS_PER_DEVICE = 3
"""CPUs that verl's resource pools set aside beside each device (their ``max_colocate_count``)."""
CPUS_PER_QUEUE_ACTOR = 1
"""CPUs of TransferQueue's controller, and of each of its storage units."""

_TRAINING_PREFIX = "training/"
_NOT_A_POLICYS = frozenset({"global_step", "epoch", "timing_s/gen", "timing_per_token_ms/gen"})


def installed_verl() -> str:
    """Version of the installed verl distribution."""
    return version("verl")


def rename_training_metrics(metrics: dict[str, float]) -> dict[str, float]:
    """verl's metric names without its ``training/`` group, since ours are grouped by policy.

    ``training/rollout_probs_diff_mean`` becomes ``rollout_probs_diff_mean``. Step counters and the time of generation
    are left out: they belong to the step, not to one policy.
    """
    renamed = {name.removeprefix(_TRAINING_PREFIX): value for name, value in metrics.items()}
    return {name: value for name, value in renamed.items() if name not in _NOT_A_POLICYS}


def ray_runtime_env(config: Any) -> dict[str, Any]:
    """What verl's processes need of Ray, by verl's own word; ``config`` is verl's."""
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env  # imports all of verl

    environment: dict[str, Any] = get_ppo_ray_runtime_env(config)  # type: ignore[no-untyped-call]
    return environment
