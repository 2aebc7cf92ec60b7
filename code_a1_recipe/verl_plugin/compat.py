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

_MARKER_PARTITION = "steps"
_TRAINING_PREFIX = "training/"
_NOT_A_POLICYS = frozenset({"global_step", "epoch", "timing_s/gen", "timing_per_token_ms/gen"})


def installed_verl() -> str:
    """Version of the installed verl distribution."""
    return version("verl")


def queue_actors() -> dict[str, Any]:
    """Handles of TransferQueue's processes that this process started; it has no public way to them."""
    from transfer_queue import interface

    storages = (getattr(interface, "_TQ_STORAGE", None) or {}).get("SimpleStorage", {})
    found = {f"queue storage {name}": handle for name, handle in storages.items()}
    controller = getattr(interface, "_TQ_CONTROLLER", None)
    return found | ({"queue controller": controller} if controller is not None else {})


def rename_training_metrics(metrics: dict[str, float]) -> dict[str, float]:
    """verl's metric names without its ``training/`` group, since ours are grouped by policy.

    ``training/rollout_probs_diff_mean`` becomes ``rollout_probs_diff_mean``. Step counters and the time of generation
    are left out: they belong to the step, not to one policy.
    """
    renamed = {name.removeprefix(_TRAINING_PREFIX): value for name, value in metrics.items()}
    return {name: value for name, value in renamed.items() if name not in _NOT_A_POLICYS}


def step_marker(step: int) -> Any:
    """A ``KVBatchMeta`` for verl's loop, which removes the batch that a step hands it from the queue."""
    import transfer_queue as tq

    marker: dict[str, Any] = {"keys": [f"step{step}"], "tags": [{"global_steps": step}]}
    tq.kv_batch_put(partition_id=_MARKER_PARTITION, **marker)
    return tq.KVBatchMeta(partition_id=_MARKER_PARTITION, **marker)
