"""Runs inside a program's process: gives a program that reads standard input one input, and returns what it printed.

Descriptors 0 and 1 are pipes, as for a program in a shell, so whatever it reads and writes with works: ``input()``,
``sys.stdin``, its ``buffer``, ``open(0)``, ``os.read(0, n)``, ``print``, ``os.write(1, data)``. Like all that shares a
process with untrusted code it is not trusted, and knows no expected output.
"""

import _thread
import ast
import atexit
import builtins
import contextlib
import io
import os
import sys
import types
from typing import Any

_CHUNK_BYTES = 1 << 16
_PIPE_BYTES = 4096
"""Any pipe takes that much at once."""
_LAST_OUTPUT_SECONDS = 1.0
"""For the last output to arrive; only a program that kept another copy of its descriptor lets this pass."""
_open = open


class InputProgram:
    """A program as a function of its standard input. Every call executes it as ``__main__``, in a namespace of its own.

    Args:
        source: the program.
        given: names that it finds in its namespace.
        most_bytes: of output; after more than that it writes to a pipe that nobody reads.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source does not compile.
    """

    def __init__(self, source: str, given: dict[str, Any], *, most_bytes: int) -> None:
        tree = ast.parse(source)
        self._code = compile(tree, "<program>", "exec", dont_inherit=True)
        self._given, self._most_bytes = dict(given), most_bytes
        self._outside = os.dup(0), os.dup(1)
        builtins.open = io.open = _open_kept
        _import_early(tree)

    def __call__(self, text: str) -> str:
        """What the program prints for ``text``, decoded as UTF-8; ``sys.exit`` of any status is an end as any other.

        More than ``most_bytes`` where it printed more. Whatever else it raises is raised.
        """
        self._put_back()
        _feed(text.encode("utf-8", "surrogatepass"))
        printed, has_ended = _collect(self._most_bytes)
        streams = sys.stdin, sys.stdout
        sys.stdin = sys.__stdin__ = _open_kept(0, encoding="utf-8", errors="surrogateescape")  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = out = _open_kept(  # type: ignore[misc]
            1, "w", encoding="utf-8", errors="surrogateescape"
        )
        main = types.ModuleType("__main__")
        try:
            self._execute(main)
            for stream in (sys.stdout, out):  # the program's own stream in its place may hold output back
                with contextlib.suppress(Exception):
                    stream.flush()
        except BrokenPipeError:
            if len(printed) <= self._most_bytes:
                raise
        finally:
            sys.stdin, sys.stdout = streams
            main.__dict__.clear()
            with contextlib.suppress(Exception):
                out.close()
            self._put_back()
        has_ended.acquire(timeout=_LAST_OUTPUT_SECONDS)
        return printed.decode("utf-8", "replace")

    def _execute(self, main: types.ModuleType) -> None:
        main.__dict__.update(self._given)
        main.__dict__["__name__"] = "__main__"
        sys.modules["__main__"] = main
        sys.argv = [""]
        os._exit = sys.exit  # type: ignore[assignment]  # it would end the process before the output is there
        with contextlib.suppress(SystemExit):
            exec(self._code, main.__dict__)
        _wait_for_threads()
        with contextlib.suppress(Exception):  # an interpreter that ends reports these and goes on
            atexit._run_exitfuncs()

    def _put_back(self) -> None:
        """No pipe at 0 and 1: whoever waits at the other end is done, and a new pipe gets other numbers."""
        _thread.stack_size(0)  # our threads need no deep stack, which the program may have asked for its own
        for number, outside in enumerate(self._outside):
            os.dup2(outside, number)


def _open_kept(file: Any, *arguments: Any, **named: Any) -> Any:
    """``open``; a stream on one of the standard descriptors, which may be dropped calls later, does not close it."""
    if isinstance(file, int) and file <= 2 and len(arguments) < 6:
        named["closefd"] = False
    return _open(file, *arguments, **named)


def _import_early(tree: ast.Module) -> None:
    """Import what the program imports at top level: that is loading, and not the time of a call."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            with contextlib.suppress(Exception):  # it is raised again where the program is asked
                exec(compile(ast.Module([node], []), "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})


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

    if len(data) <= _PIPE_BYTES:
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
