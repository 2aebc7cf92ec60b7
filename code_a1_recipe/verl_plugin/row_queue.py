"""The only module that imports TransferQueue, in which verl's V1 trainer keeps its rows.

This module renames the queue's functions, which keep their arguments. If verl takes another queue, only this file has
to change.
"""

from typing import Any

from transfer_queue import (
    KVBatchMeta,
    async_kv_batch_put as put_rows_async,
    close,
    init,
    interface,
    kv_batch_get as get_fields,
    kv_batch_put as put_rows,
    kv_clear as clear_rows,
)

__all__ = [
    "KVBatchMeta",
    "clear_rows",
    "close",
    "get_fields",
    "init",
    "put_rows",
    "put_rows_async",
    "queue_actors",
    "step_marker",
]

_MARKER_PARTITION = "steps"


def queue_actors() -> dict[str, Any]:
    """Return handles of the queue's processes that this process started. The queue has no public function for this."""
    storages = (getattr(interface, "_TQ_STORAGE", None) or {}).get("SimpleStorage", {})
    actors = {f"queue storage {name}": handle for name, handle in storages.items()}
    controller = getattr(interface, "_TQ_CONTROLLER", None)
    if controller is not None:
        actors["queue controller"] = controller
    return actors


def step_marker(step: int) -> KVBatchMeta:
    """Store a batch that ``step`` can return. verl's loop removes the returned batch from the queue."""
    marker: dict[str, Any] = {"keys": [f"step{step}"], "tags": [{"global_steps": step}]}
    put_rows(partition_id=_MARKER_PARTITION, **marker)
    return KVBatchMeta(partition_id=_MARKER_PARTITION, **marker)
