"""Ends a start that stalls, and says what it waits for: Ray waits for ever for CPUs or GPUs that nobody gives back."""

import threading
from collections import Counter
from collections.abc import Callable

import ray
from ray._private import state
from ray.exceptions import RayError
from ray.util.placement_group import placement_group_table

NOTE_SECONDS = 60.0
"""Until a user hears of processes that do not start."""


class StartWatch:
    """Watches a start while the block runs.

    Args:
        limit_seconds: of the whole start, above 0.
        note: gets one line when processes have not started after ``NOTE_SECONDS``.
        give_up: gets the reason when the block has not ended in time, in a thread of its own; it ends the process.
    """

    def __init__(self, limit_seconds: float, *, note: Callable[[str], None], give_up: Callable[[str], None]) -> None:
        self._limit, self._note, self._give_up = limit_seconds, note, give_up
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="start-watch", daemon=True)

    def __enter__(self) -> "StartWatch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the watch: everything has started."""
        self._is_over.set()

    def _watch(self) -> None:
        first = min(NOTE_SECONDS, self._limit)
        if self._is_over.wait(first):
            return
        if waiting := not_started():
            self._note(waiting)
        if not self._is_over.wait(min(self._limit - first, threading.TIMEOUT_MAX)):
            why = not_started() or "every process has started; the worker logs say what each one does"
            self._give_up(f"not started after start_timeout_seconds={self._limit:g}: {why}")


def not_started() -> str:
    """What Ray has not started, what it asks for, and what is free; empty where everything has started."""
    try:
        actors = Counter(
            actor["ActorClassName"] for actor in state.actors().values() if actor["State"] == "PENDING_CREATION"
        )
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
    return f"Ray has not started {'; '.join(waiting)}. Free are {_resources(free)}"


def _resources(amounts: dict[str, float]) -> str:
    shown = [f"{amount:g} {name}" for name, amount in sorted(amounts.items()) if name in ("CPU", "GPU")]
    return " and ".join(shown) or "no CPUs"
