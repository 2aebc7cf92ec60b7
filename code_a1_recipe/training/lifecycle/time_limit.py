"""Runs calls in daemon threads with a time limit. Some calls of verl and Ray would wait for ever."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

Result = TypeVar("Result")


def in_background(call: Callable[[], Result], *, name: str) -> Future[Result]:
    """Run ``call`` in a daemon thread called ``name``. The future gets the result or the error of ``call``.

    Threads of an executor are not daemons, so they would keep the process alive.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  # the caller of ``future.result`` gets it
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def within(seconds: float, call: Callable[[], object], *, name: str) -> bool:
    """Run ``call`` in the background and wait for it.

    Args:
        seconds: longest wait, above 0; may be infinite.
        call: keeps running in its thread if it does not end in time.
        name: the thread's name.

    Returns:
        True if the call ended in time.

    Raises:
        Exception: the error of the call.
    """
    future = in_background(call, name=name)
    # ``wait`` does not accept an infinite timeout.
    if not wait([future], timeout=min(seconds, threading.TIMEOUT_MAX)).done:
        return False
    future.result()
    return True
