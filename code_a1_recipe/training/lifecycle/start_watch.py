"""Ends a stalled start and names the reason. Ray itself would wait for CPUs or GPUs for ever."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import ray
from ray._private import state
from ray.exceptions import RayError
from ray.util.placement_group import placement_group_table

NOTE_SECONDS = 60.0
"""After this time a message tells the user for which processes Ray has no CPUs or GPUs."""


@contextmanager
def start_watch(
    limit_seconds: float, *, note: Callable[[str], None], give_up: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """Watch a start until the block ends or the yielded function is called.

    Args:
        limit_seconds: time limit of the whole start, above 0.
        note: called with one line if Ray could not place some processes for ``NOTE_SECONDS``.
        give_up: must end the process. Another thread calls ``give_up`` with the reason, if the start has not ended in
            time.
    """
    is_over = threading.Event()

    def watch() -> None:
        first = min(NOTE_SECONDS, limit_seconds) / 2
        if is_over.wait(first):
            return
        before = _pending_actors()
        if is_over.wait(first):
            return
        if waiting := without_a_place(before):
            note(waiting)
        if not is_over.wait(min(limit_seconds - 2 * first, threading.TIMEOUT_MAX)):
            why = without_a_place() or "every process has its place; the worker logs say what each one does"
            give_up(f"not started after start_timeout_seconds={limit_seconds:g}: {why}")

    threading.Thread(target=watch, name="start-watch", daemon=True).start()
    try:
        yield is_over.set
    finally:
        is_over.set()


def _pending_actors() -> dict[str, str]:
    """Return the classes of actors that have no process yet, by the actors' ids. Return {} if Ray does not answer."""
    try:
        actors = state.actors()
    except RayError:
        return {}
    return {
        key: actor["ActorClassName"]
        for key, actor in actors.items()
        if actor["State"] == "PENDING_CREATION" and not actor["Pid"]
    }


def without_a_place(before: Collection[str] | None = None) -> str:
    """Describe the processes that Ray cannot place, the CPUs and GPUs that they need, and the free CPUs and GPUs.

    Args:
        before: ids of actors that had no process half a minute ago. Newer actors do not count, because they may be
            starting now. If ``before`` is None, all actors count.

    Returns:
        A sentence, or "" if Ray has placed everything.
    """
    try:
        pending = _pending_actors()
        counted = pending.keys() if before is None else pending.keys() & set(before)
        actors = Counter(pending[key] for key in counted)
        groups = [group for group in placement_group_table().values() if group["state"] == "PENDING"]
        free = ray.available_resources()
    except RayError as error:
        return f"Ray does not answer ({error})"
    if not actors and not groups:
        return ""
    waiting = [f"{number} {name}" for name, number in sorted(actors.items())]
    for group in groups:
        asked = ", ".join(_resources(bundle) for bundle in group["bundles"].values())
        waiting.append(f"a placement group ({group['strategy']}) of {asked}")
    return f"Ray has no place for {'; '.join(waiting)}. Free are {_resources(free)}"


def _resources(amounts: dict[str, float]) -> str:
    shown = [f"{amounts[name]:g} {name}" for name in ("CPU", "GPU") if name in amounts]
    return " and ".join(shown) or "no CPUs"
