"""Ends a run that waits for a lost process.

Most losses raise an exception in the trainer. But a call that waits for a lost server, or for a socket of verl's queue,
would wait for ever.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
GRACE_SECONDS = 30.0
"""Time in which the trainer may notice the loss by itself. The trainer's own error says more about the cause."""


@contextmanager
def process_watch(actors: Mapping[str, Any], give_up: Callable[[str], None]) -> Iterator[None]:
    """Check regularly that the actors are alive, until the block ends.

    Args:
        actors: handles of the actors, by names that a user understands.
        give_up: must end the process. If an actor is lost and the block still runs ``GRACE_SECONDS`` later, another
            thread calls ``give_up`` with the actor's name.
    """
    is_over = threading.Event()

    def watch() -> None:
        # Each actor has one open call. A busy actor answers later. For a dead actor Ray raises an error at once.
        asked: dict[str, Any] = {}
        while not is_over.wait(LOOK_SECONDS):
            try:
                for name, actor in actors.items():
                    if name not in asked:
                        asked[name] = actor.__ray_ready__.remote()
                lost = next((name for name in actors if _is_lost(asked, name)), None)
            except RayError as error:  # Ray itself has failed, and will end this process
                logger.warning("cannot ask whether the run's processes live: %s", error)
                continue
            if lost is not None:
                if not is_over.wait(GRACE_SECONDS):
                    give_up(lost)
                return

    threading.Thread(target=watch, name="process-watch", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _is_lost(asked: dict[str, Any], name: str) -> bool:
    done, _ = ray.wait([asked[name]], timeout=0)
    if not done:
        return False
    try:
        ray.get(asked.pop(name))
    except ActorUnavailableError:  # the actor may come back, so it is asked again
        return False
    except RayActorError:
        return True
    return False
