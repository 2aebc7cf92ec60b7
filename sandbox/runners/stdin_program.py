"""Runs inside a program's process: gives a program that reads standard input one input, and returns what it printed.

Descriptor 0 is a file with the input's bytes and 1 a pipe, as at a contest's judge, so whatever it reads and writes
with works: ``input()``, ``sys.stdin``, its ``buffer``, ``open(0)``, ``os.read(0, n)``, the file's size, seeking and
mapping, ``print``, ``os.write(1, data)``. Like all that shares a process with untrusted code it is not trusted, and
knows no expected output.
"""

import _thread
import ast
import atexit
import contextlib
import os
import sys
import types
import weakref
from typing import Any

INPUT_FD = 4
"""Reads a file in memory that holds the input of one call after the other; only the judge writes it."""
_CHUNK_BYTES = 1 << 16
_LAST_OUTPUT_SECONDS = 1.0
"""Longest wait for the last output where a program has closed our end of the pipe."""
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
        self._outside = os.dup(0), os.dup(1), os.dup(2)
        _import_early(tree)

    def __call__(self, _: str) -> str:
        """Run the program on the text, which is in the file by now; what it prints, decoded as UTF-8.

        ``sys.exit`` of any status is an end like any other; other exceptions are raised. The text is longer than
        ``most_bytes`` where the program printed more.
        """
        self._put_back()
        os.dup2(INPUT_FD, 0)
        os.lseek(0, 0, os.SEEK_SET)
        output = _Output(self._most_bytes)
        streams = sys.stdin, sys.stdout
        sys.stdin = sys.__stdin__ = open_kept(0, encoding="utf-8", errors="surrogateescape")  # type: ignore[misc]
        sys.stdout = open_kept(1, "w", encoding="utf-8", errors="surrogateescape")
        sys.__stdout__ = sys.stdout  # type: ignore[misc]
        main = types.ModuleType("__main__")
        try:
            if self._execute(main):
                _flush(sys.stdout)  # the program's own in its place may hold output back
                main.__dict__.clear()  # what prints when it goes prints now
                _flush(*_STREAMS)
        except BrokenPipeError:
            if len(output.printed) <= self._most_bytes:
                raise
        finally:
            output.end()
            sys.stdin, sys.stdout = streams
            main.__dict__.clear()
            self._put_back()
            _flush(*_STREAMS)  # to nobody: it must not come out in a later run
            _STREAMS.clear()
        return output.printed.decode("utf-8", "surrogateescape")

    def _execute(self, main: types.ModuleType) -> bool:
        """False where it ended by ``os._exit``, which leaves unwritten what streams hold back."""
        main.__dict__.update(self._given)
        main.__dict__["__name__"] = "__main__"
        sys.modules["__main__"] = main
        sys.argv = [""]
        os._exit = _exit_at_once  # type: ignore[assignment]  # it would end the process before the output is there
        try:
            exec(self._code, main.__dict__)
        except _ExitedAtOnce:
            return False
        except SystemExit:
            pass
        _wait_for_threads()
        with contextlib.suppress(Exception):  # an interpreter that ends reports these and goes on
            atexit._run_exitfuncs()
        return True

    def _put_back(self) -> None:
        """Leave no pipe at 1: a reader at the other end is done, and a new pipe gets numbers above 2."""
        _thread.stack_size(0)  # our threads need no deep stack, which the program may have asked for its own
        for number, outside in enumerate(self._outside):
            os.dup2(outside, number)


def _flush(*streams: Any) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):
            stream.flush()


class _ExitedAtOnce(SystemExit):
    pass


def _exit_at_once(status: int) -> None:
    raise _ExitedAtOnce(status)


_STREAMS: weakref.WeakSet[Any] = weakref.WeakSet()
"""On descriptors 1 and 2, opened by programs."""


def open_kept(file: Any, *arguments: Any, **named: Any) -> Any:
    """``open``; a stream on one of the standard descriptors, which may be dropped calls later, does not close it.

    Nothing may be opened to be written, /dev/null neither, but descriptor 2 is that already.
    """
    if isinstance(file, str) and file == os.devnull:
        return _open(os.dup(2), *arguments, **named)
    if not isinstance(file, int) or file > 2 or len(arguments) >= 6:
        return _open(file, *arguments, **named)
    stream = _open(file, *arguments, **named | {"closefd": False})
    if file:
        _STREAMS.add(stream)
    return stream


def _import_early(tree: ast.Module) -> None:
    """Import what the program imports at top level: that is loading, and not the time of a call."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            with contextlib.suppress(Exception):  # it is raised again where the program is asked
                exec(compile(ast.Module([node], []), "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})


class _Output:
    """Takes what descriptor 1 gets, until ``end``."""

    def __init__(self, most_bytes: int) -> None:
        self.printed = bytearray()
        self._most_bytes = most_bytes
        self._mark = b""
        self._reading, self._writing = os.pipe()
        self._pipe = os.fstat(self._writing).st_ino
        os.dup2(self._writing, 1)
        self._has_ended = _thread.allocate_lock()
        self._has_ended.acquire()
        _thread.start_new_thread(self._read, ())

    def end(self) -> None:
        """All that was written is in ``printed``. A mark ends it: a copy of the descriptor may stay open for ever."""
        self._mark = os.urandom(16)
        seconds = _LAST_OUTPUT_SECONDS
        with contextlib.suppress(OSError):
            if len(self.printed) <= self._most_bytes:  # else the reader has left
                os.write(self._writing, self._mark)
            if os.fstat(self._writing).st_ino == self._pipe:
                seconds = -1  # it comes, however long the reader waits for a processor
        self._has_ended.acquire(timeout=seconds)
        if self.printed.endswith(self._mark):
            del self.printed[-len(self._mark) :]

    def _read(self) -> None:
        while len(self.printed) <= self._most_bytes and (data := os.read(self._reading, _CHUNK_BYTES)):
            self.printed.extend(data)
            if self._mark and self.printed.endswith(self._mark):
                break
        os.close(self._reading)
        os.close(self._writing)
        self._has_ended.release()


def _wait_for_threads() -> None:
    """Programs that need a deep stack work in a thread, and some do not wait for it, or for a pool of them."""
    if (pools := sys.modules.get("concurrent.futures.thread")) is not None:
        pools._python_exit()  # as at an interpreter's end: idle workers end too
        pools._shutdown = False  # type: ignore[attr-defined]
    threading = sys.modules.get("threading")
    while threading is not None:
        others = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
        if not others:
            return
        for thread in others:
            thread.join()
