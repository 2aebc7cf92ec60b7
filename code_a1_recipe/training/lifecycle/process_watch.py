"""Ends a run that waits for an answer of a process that is gone.

Most losses reach the trainer as an exception. A few do not: who waits on a socket of verl's queue, or of a server
inside another call, waits for ever.
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
"""For the trainer to notice by itself, with more to say."""


@contextmanager
def process_watch(actors: Mapping[str, Any], give_up: Callable[[str], None]) -> Iterator[None]:
    """Ask the actors that a run cannot do without whether they live, while the block runs.

    Args:
        actors: handles by what a user would call them.
        give_up: called with that name, in a thread of its own, when one is gone and the block has not ended
            ``GRACE_SECONDS`` later; it ends the process.
    """
    is_over = threading.Event()

    def watch() -> None:
        # One question an actor at a time: a busy one answers when it has time, a dead one at once, through Ray.
        asked: dict[str, Any] = {}
        while not is_over.wait(LOOK_SECONDS):
            try:
                asked |= {name: a.__ray_ready__.remote() for name, a in actors.items() if name not in asked}
                lost = next((name for name in list(asked) if _is_lost(asked, name)), None)
            except RayError as error:  # of Ray itself, which ends its driver then
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
    except ActorUnavailableError:  # for now, perhaps; it is asked again
        return False
    except RayActorError:
        return True
    return False
