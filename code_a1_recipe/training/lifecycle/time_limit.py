"""Calls in threads of their own that no end of the process waits for: verl and Ray wait without a limit."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

Result = TypeVar("Result")


def in_background(call: Callable[[], Result], *, name: str) -> Future[Result]:
    """Run ``call`` in a thread called ``name``, and hand its result over, or what it raised.

    A pool's threads would keep a process alive whose start was given up.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # whoever asks for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def within(seconds: float, call: Callable[[], object], *, name: str) -> bool:
    """Run ``call`` in the background and wait for it.

    Args:
        seconds: to wait at most, above 0; may be infinite.
        name: of the thread.

    Returns:
        Whether it ended in time. One that did not goes on.

    Raises:
        Exception: what the call raised.
    """
    future = in_background(call, name=name)
    if not wait([future], timeout=min(seconds, threading.TIMEOUT_MAX)).done:
        return False
    future.result()
    return True
