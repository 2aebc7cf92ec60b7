"""Runs a program that reads standard input, inside the program's process. Gives the program an input and returns its
output.

As in a contest, descriptor 0 is a file with the input and descriptor 1 is a pipe. So every way of reading and writing
works: ``input()``, ``sys.stdin``, its ``buffer``, ``open(0)``, ``os.read(0, n)``, the file's size, seeking and
mapping, ``print``, ``os.write(1, data)``. This code shares its process with untrusted code, so its results are not
trusted, and the process holds no expected output.
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
"""Descriptor for reading a file in memory. Only the judge can write this file, and it writes the input of each call."""
_CHUNK_BYTES = 1 << 16
_LAST_OUTPUT_SECONDS = 1.0
"""Longest wait for the last output if the program has closed this module's end of the pipe."""
_open = open


class InputProgram:
    """A program as a function of its standard input.

    Each call executes the program as ``__main__``, in a new namespace.

    Args:
        source: source of the program.
        given: names that the program finds in its namespace.
        most_bytes: limit of the output in bytes. Once the output is longer, the pipe is no longer read.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source does not compile.
    """

    def __init__(self, source: str, given: dict[str, Any], *, most_bytes: int) -> None:
        tree = ast.parse(source)
        self._code = compile(tree, "<program>", "exec", dont_inherit=True)
        self._given, self._most_bytes = dict(given), most_bytes
        # A prelude such as `from sys import *` names the streams that the process had before its first call.
        self._streams = {
            name: part for part in ("stdin", "stdout") for name in given if given[name] is getattr(sys, part)
        }
        self._outside = os.dup(0), os.dup(1), os.dup(2)
        _import_early(tree)

    def __call__(self, _: str) -> str:
        """Run the program and return what it prints, decoded as UTF-8.

        The judge has already written the input to the file, so the argument is ignored. ``sys.exit`` with any status is
        a normal end. Other exceptions are raised. If the program prints more than ``most_bytes``, the result is longer
        than ``most_bytes`` but may lack the rest.
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
                _flush(sys.stdout)  # the program may have replaced this stream
                main.__dict__.clear()  # destructors of the program's objects may print
                _flush(*_STREAMS)
        except BrokenPipeError:
            if len(output.printed) <= self._most_bytes:
                raise
        finally:
            output.end()
            sys.stdin, sys.stdout = streams
            main.__dict__.clear()
            self._put_back()
            _flush(*_STREAMS)  # flushed to /dev/null, so that no output is left over for a later run
            _STREAMS.clear()
        return output.printed.decode("utf-8", "surrogateescape")

    def _execute(self, main: types.ModuleType) -> bool:
        """Execute the program. Return False if the program ended by ``os._exit``, which does not flush streams."""
        main.__dict__.update(self._given)
        main.__dict__.update((name, getattr(sys, stream)) for name, stream in self._streams.items())
        main.__dict__["__name__"] = "__main__"
        sys.modules["__main__"] = main
        sys.argv = [""]
        os._exit = _exit_at_once  # type: ignore[assignment]  # the real one would end the process without its output
        try:
            exec(self._code, main.__dict__)
        except _ExitedAtOnce:
            return False
        except SystemExit:
            pass
        _wait_for_threads()
        with contextlib.suppress(Exception):  # at its end, an interpreter only reports such errors
            atexit._run_exitfuncs()
        return True

    def _put_back(self) -> None:
        """Restore the standard descriptors.

        As a result, the reader of an old pipe ends. Descriptors 0 to 2 are in use again, so no new pipe gets these
        numbers.
        """
        _thread.stack_size(0)  # the program may have asked for deep stacks, which the reader of the pipe does not need
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
"""Streams on descriptors 1 and 2 that programs have opened."""


def open_kept(file: Any, *arguments: Any, **named: Any) -> Any:
    """Open a file like ``open``, but keep standard descriptors open when their stream is closed or deleted.

    Otherwise, if a stream of an earlier call were dropped in a later call, the descriptor would be closed, although the
    later call needs it. A program may not open any file for writing, so /dev/null is opened as a copy of descriptor 2,
    which refers to /dev/null too.
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
    """Import the modules that the program imports at top level, so that these imports count as loading, not as a
    call."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            with contextlib.suppress(Exception):  # the first call will raise the same error
                exec(compile(ast.Module([node], []), "<program>", "exec", dont_inherit=True), {"__name__": "__main__"})


class _Output:
    """Collects the bytes that are written to descriptor 1, until ``end``."""

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
        """Wait until all output is in ``printed``."""
        # A random mark ends the output. Closing the pipe would not end the output, because the program may hold a copy
        # of the descriptor.
        self._mark = os.urandom(16)
        seconds = _LAST_OUTPUT_SECONDS
        with contextlib.suppress(OSError):
            if len(self.printed) <= self._most_bytes:  # if more was printed, the reader has ended
                os.write(self._writing, self._mark)
            # If the descriptor still refers to the pipe, the mark will arrive, however long the reader needs.
            if os.fstat(self._writing).st_ino == self._pipe:
                seconds = -1
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
    """Wait for the program's threads, as an interpreter does before it ends.

    Programs that need a deep stack work in a thread, and some of these programs do not join this thread.
    """
    if (pools := sys.modules.get("concurrent.futures.thread")) is not None:
        pools._python_exit()  # ends idle workers, too
        pools._shutdown = False  # type: ignore[attr-defined]  # later calls may use pools again
    threading = sys.modules.get("threading")
    while threading is not None:
        current = threading.current_thread()
        others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not current]
        if not others:
            return
        for thread in others:
            thread.join()
