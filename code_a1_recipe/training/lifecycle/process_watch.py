"""The watch that ends a run which waits for a process that is gone.

Most losses reach the trainer as an exception. A few do not: a process that waits on a socket of verl's queue, or for a
server inside another call, waits for ever.
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
"""Time in which the trainer may notice the loss by itself. Its error says more."""


@contextmanager
def process_watch(actors: Mapping[str, Any], give_up: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, ask the actors that the run needs whether they live.

    Args:
        actors: handles by names that a user understands.
        give_up: gets the name of a lost actor if the block has not ended ``GRACE_SECONDS`` after the loss. It is called
            in another thread and ends the process.
    """
    is_over = threading.Event()

    def watch() -> None:
        # Each actor has one open question. A busy actor answers it later; for a dead actor Ray answers at once.
        asked: dict[str, Any] = {}
        while not is_over.wait(LOOK_SECONDS):
            try:
                for name, actor in actors.items():
                    if name not in asked:
                        asked[name] = actor.__ray_ready__.remote()
                lost = next((name for name in actors if _is_lost(asked, name)), None)
            except RayError as error:  # Ray itself fails, and will end this process
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
    except ActorUnavailableError:  # perhaps only for now, so it is asked again
        return False
    except RayActorError:
        return True
    return False
