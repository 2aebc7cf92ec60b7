"""Calls that may hang in a library, with an end."""

import threading
from collections.abc import Callable


def within(seconds: float, call: Callable[[], object], *, name: str) -> bool:
    """Run ``call`` in a thread of its own and wait for it.

    Args:
        seconds: to wait at most, above 0; may be infinite.
        name: of the thread.

    Returns:
        Whether it ended in time. One that did not goes on; it keeps no process from ending.

    Raises:
        Exception: what the call raised.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised again by whoever waits
            failures.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    if failures:
        raise failures[0]
    return not thread.is_alive()
