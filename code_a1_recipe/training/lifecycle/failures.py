"""What ended a run, in one line for the user: a process that was lost, a full disk, a judge or server that stalls."""

import errno
from collections.abc import Iterator

from ...errors import CodeA1Error

_SHOWN_CHARS = 300
# The last two are torch's, of weights that it could not write to their end.
_DISK_FULL_TEXTS = ("No space left on device", "Disk quota exceeded", "inline_container", "PytorchStreamWriter")
_ENGINE_TEXTS = ("EngineDeadError", "CUDA error")
_AT_ITS_START = "creation task"
"""Ray's words for an actor whose own constructor failed."""


def explain(error: BaseException, *, run_dir: str) -> str | None:
    """Rule, value, place and cure of a failure that is no mistake in the program; None for any other error.

    Args:
        error: what ended the run; errors of Ray's workers carry their own as a cause.
        run_dir: where the run writes.
    """
    for one in _chain(error):
        if isinstance(one, CodeA1Error):
            return _own_words(one)
        is_full_disk = isinstance(one, OSError) and one.errno in (errno.ENOSPC, errno.EDQUOT)
        if is_full_disk or any(text in str(one) for text in _DISK_FULL_TEXTS):
            return (
                f"no room to write, probably in {run_dir} or in Ray's folder for temporary files ({_short(one)}); "
                "make room there"
            )
    return _lost_process(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and what Ray's wrappers carry."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [_carried(one), one.__cause__]


def _carried(error: BaseException) -> BaseException | None:
    """What one of Ray's wrappers was raised for."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else None


def _own_words(error: BaseException) -> str:
    """Without the traceback of the worker, which Ray puts into the text of what it raises again."""
    return str(_carried(error) or error)


def _lost_process(error: BaseException) -> str | None:
    from ray.exceptions import ActorDiedError, ActorUnavailableError, NodeDiedError, RayError, WorkerCrashedError

    lost = (ActorDiedError, ActorUnavailableError, NodeDiedError, WorkerCrashedError)
    if any("OutOfMemory" in f"{type(one).__name__} {one}" for one in _chain(error)):  # Ray's or torch's, at a start too
        return (
            "a machine ran out of memory, and Ray or CUDA ended what used most; nothing was made up for what was not "
            "finished. Run fewer things beside it, or lower data.train_batch_size, max_num_seqs or "
            "gpu_memory_utilization of the rollout"
        )
    for one in _chain(error):
        if text := next((text for text in _ENGINE_TEXTS if text in f"{type(one).__name__} {one}"), None):
            return f"an engine of vLLM, or CUDA under it, failed ({text}): {_last_line(one)}. The worker logs say more"
        if not isinstance(one, lost):
            continue
        if _AT_ITS_START in str(one):
            return f"a process of the run could not start: {_last_line(one)}"
        return f"a process of the run was lost ({_short(one)}). Nothing was made up for what it had not finished"
    # A worker whose own Python code failed is a fault to be read in full, not a lost process.
    is_remote_traceback = any(type(one).__name__.startswith("RayTaskError") for one in _chain(error))
    if isinstance(error, RayError) and not is_remote_traceback:
        return f"Ray failed ({_short(error)}). Nothing was made up for what was not finished"
    return None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _last_line(error: BaseException) -> str:
    return (_lines(str(error)) or [type(error).__name__])[-1][:_SHOWN_CHARS]


def _short(error: BaseException) -> str:
    lines = _lines(_own_words(error))
    told = [line for line in lines if line.startswith(("class_name:", "The actor died", "The actor is dead"))]
    text = "; ".join(told or lines[-1:])
    return f"{type(error).__name__}: {text[:_SHOWN_CHARS]}"
