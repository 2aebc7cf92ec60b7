"""Explains in one line why a run ended: a lost process, a full disk, a judge or server that stalls, ..."""

import errno
from collections.abc import Iterator

from ...errors import CodeA1Error

_SHOWN_CHARS = 300
# torch raises errors with the last two texts when it cannot write all of the weights.
_DISK_FULL_TEXTS = ("No space left on device", "Disk quota exceeded", "inline_container", "PytorchStreamWriter")
_ENGINE_TEXTS = ("EngineDeadError", "CUDA error")
_AT_ITS_START = "creation task"
"""Part of Ray's message about an actor whose constructor failed."""


def explain(error: BaseException, *, run_dir: str) -> str | None:
    """Explain an expected failure with rule, value, place and hint. Return None for any other error, which is a bug.

    Args:
        error: ended the run. Errors of Ray's workers carry the worker's own error as a cause.
        run_dir: the folder that the run writes to.
    """
    for cause in _chain(error):
        if isinstance(cause, CodeA1Error):
            return _own_words(cause)
        is_full_disk = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
        if is_full_disk or any(text in str(cause) for text in _DISK_FULL_TEXTS):
            return (
                f"no room to write, probably in {run_dir} or in Ray's folder for temporary files ({_short(cause)}); "
                "make room there"
            )
    return _lost_process(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its causes, and the errors that Ray's wrappers carry."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [_carried(cause), cause.__cause__]


def _carried(error: BaseException) -> BaseException | None:
    """Return the worker's error that one of Ray's wrappers holds."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else None


def _own_words(error: BaseException) -> str:
    """Return the text of an error without the worker's traceback that Ray's wrapper adds."""
    return str(_carried(error) or error)


def _lost_process(error: BaseException) -> str | None:
    from ray.exceptions import ActorDiedError, ActorUnavailableError, NodeDiedError, RayError, WorkerCrashedError

    lost = (ActorDiedError, ActorUnavailableError, NodeDiedError, WorkerCrashedError)
    causes = list(_chain(error))
    # Memory is checked first, since a process may run out of memory while it starts. Ray and torch have out-of-memory
    # errors.
    if any("OutOfMemory" in f"{type(cause).__name__} {cause}" for cause in causes):
        return (
            "a machine ran out of memory, and Ray or CUDA ended what used most; nothing was made up for what was not "
            "finished. Run fewer things beside it, or lower data.train_batch_size, max_num_seqs or "
            "gpu_memory_utilization of the rollout"
        )
    for cause in causes:
        for text in _ENGINE_TEXTS:
            if text in f"{type(cause).__name__} {cause}":
                words = f"an engine of vLLM, or CUDA under it, failed ({text}): {_last_line(cause)}"
                return f"{words}. The worker logs say more"
        if isinstance(cause, lost):
            if _AT_ITS_START in str(cause):
                return f"a process of the run could not start: {_last_line(cause)}"
            return f"a process of the run was lost ({_short(cause)}). Nothing was made up for what it had not finished"
    # An error in a worker's Python code is a bug: the user must see its traceback.
    is_remote_traceback = any(type(cause).__name__.startswith("RayTaskError") for cause in causes)
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
    text = "; ".join(told or lines[-1:])  # Ray's messages are long; these lines name the actor and the reason
    return f"{type(error).__name__}: {text[:_SHOWN_CHARS]}"
