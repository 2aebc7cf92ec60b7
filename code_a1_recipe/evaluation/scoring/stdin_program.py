"""Runs inside the sandbox: gives a program one standard input and returns what it printed.

The text of this file is put in front of each program that reads standard input, so it imports the standard library
only. It knows the input and no expected output.

Descriptors 0 and 1 are pipes, as for a program in a shell, so whatever it reads and writes with works: ``input()``,
``sys.stdin``, its ``buffer``, ``open(0)``, ``os.read(0, n)``, ``print``, ``os.write(1, data)``.
"""

import _thread
import atexit
import contextlib
import os
import sys
import types
from typing import Any

_CHUNK_BYTES = 1 << 16
_LAST_OUTPUT_SECONDS = 1.0
"""For the last output to arrive; only a program that kept another copy of its descriptor lets this pass."""


def run_with_input(code: types.CodeType, imports: str, text: str, most_bytes: int) -> bytes:
    """Execute ``code`` as ``__main__`` to the end of an interpreter; ``sys.exit`` of any status is such an end.

    Args:
        code: the compiled program.
        imports: source that is executed before it, in its namespace.
        text: what it finds on standard input, UTF-8.
        most_bytes: of output; after more than that the program writes to a pipe that nobody reads, which raises.

    Returns:
        What it printed; more than ``most_bytes`` where it takes no notice. Whatever it raises is raised.
    """
    _feed(text.encode("utf-8", "surrogatepass"))
    printed, has_ended = _collect(most_bytes)
    stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(imports, main.__dict__)
    with contextlib.suppress(SystemExit):
        exec(code, main.__dict__)
    _wait_for_threads()
    with contextlib.suppress(Exception):  # an interpreter that ends reports these and goes on
        atexit._run_exitfuncs()
    for stream in (sys.stdout, stdout):  # the program's own stream in its place may hold output back
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(OSError):
        os.close(1)
    has_ended.acquire(timeout=_LAST_OUTPUT_SECONDS)
    return bytes(printed)


def _feed(data: bytes) -> None:
    """Make ``data`` what descriptor 0 gives, and then its end."""
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)

    def write() -> None:
        left = memoryview(data)
        with contextlib.suppress(OSError):  # nobody reads on
            while left:
                left = left[os.write(writing, left[:_CHUNK_BYTES]) :]
        os.close(writing)

    if len(data) <= 4096:  # any pipe takes that at once
        write()
    else:
        _thread.start_new_thread(write, ())


def _collect(most_bytes: int) -> tuple[bytearray, Any]:
    """Take what descriptor 1 gets; the lock opens when nobody can write to it any more."""
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    printed = bytearray()
    has_ended = _thread.allocate_lock()
    has_ended.acquire()

    def read() -> None:
        while len(printed) <= most_bytes and (data := os.read(reading, _CHUNK_BYTES)):
            printed.extend(data)
        os.close(reading)
        has_ended.release()

    _thread.start_new_thread(read, ())
    return printed, has_ended


def _wait_for_threads() -> None:
    """Programs that need a deep stack work in a thread, and some do not wait for it."""
    threading = sys.modules.get("threading")
    while threading is not None:
        others = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
        if not others:
            return
        for thread in others:
            thread.join()
