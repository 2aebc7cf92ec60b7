"""Runs one program inside its process, locally or inside a service: receives calls and sends values over one socket.

This code shares its process with untrusted code, so the judge does not trust its messages: they are only claims of the
program about its own output. The process holds no expected value and no other program.

In both directions, a frame has one byte for the kind, four bytes for the length (little-endian), and the payload.

=======  ================================================================
request  payload
=======  ================================================================
P        source to execute in the program's namespace (prelude, program)
N        names of the functions under test, one in a line; if there are
         any, an example that raises is skipped in the sources that follow
I        source of a program that reads standard input; ``run(text)`` in the
         namespace then returns what it prints
B        none; loading is over, respond with L
C        calls (see ``pack_call``), made one after another
T        the same, but timed: the payload of each response begins with
         the CPU nanoseconds of its call, eight bytes, little-endian
=======  ================================================================

========  ===============================================================
response  payload
========  ===============================================================
R         none; the process is confined and will read requests
!         reason why confinement failed; always the first frame
L         the program has loaded; exception of the first example that
          failed, or none
X         exception of a failed load
V         encoded value
E         exception of a call
U         type of a value that cannot be encoded
O         none; the encoded value exceeds the limit
========  ===============================================================
"""

import ast
import builtins
import importlib
import io
import marshal
import os
import struct
import sys
import types
from collections.abc import Iterator, Sequence
from time import process_time_ns
from typing import Any

from ..cases.needs import PARSE_ERRORS, Examples
from ..errors import UnencodableError
from ..values.encoding import encode
from ..values.literals import INPUT_ENTRY, LIBRARY_MODULES, LIBRARY_NAMES
from .stdin_program import InputProgram, open_kept

PRELOADED = (
    "abc bisect collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq io "
    "itertools json math numbers operator random re string struct time types typing warnings weakref"
)
"""Modules that are imported before the fork, because generated programs import them most often. Importing them again
inside a function takes no time. Each further module makes every fork slower: with asyncio, logging and similar modules,
a fork takes twice as long."""
PACKAGES = frozenset(name.partition(".")[0] for name in PRELOADED.split()) | {"sys", "builtins", "__future__"}
"""Top-level packages whose import takes a program no time."""
HEADER = struct.Struct("<cI")
CPU_TIME = struct.Struct("<Q")
_CALL_HEADER = struct.Struct("<BI")
CHANNEL_FD = 3
_HIGH, _MAX_DESCRIPTORS = 64, 1 << 16
MODULE_NAME = "solution"
"""A program's ``__name__``. It is not ``__main__``, because a program's main block expects a user at a terminal."""
_AWAITED, _USES_LIBRARY, _IS_SOURCE = 1, 2, 4
_BYTES = bytes(range(256))
_DETAIL_CHARS = 200
_OWN_PACKAGE = __name__.partition(".")[0]


def keep_only(descriptors: Sequence[int]) -> None:
    """Put /dev/null on 0 to 2, put ``descriptors`` on ``CHANNEL_FD`` and above, and close all other descriptors."""
    # The descriptors get high numbers first, because the low numbers are about to be overwritten.
    high = [os.dup2(descriptor, number) for number, descriptor in enumerate(descriptors, _HIGH)]
    # /dev/null is opened again, because all programs would share the status flags (such as O_APPEND) of an inherited
    # descriptor.
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in range(CHANNEL_FD):
        os.dup2(devnull, standard)
    for number, descriptor in enumerate(high, CHANNEL_FD):
        os.dup2(descriptor, number)
    os.closerange(CHANNEL_FD + len(high), _MAX_DESCRIPTORS)


def pack_call(expression: str, *, awaited: bool, uses_library: bool) -> bytes:
    """Pack one call of a request: a byte of flags, four bytes of length, and the compiled expression.

    The judge compiles an expression once for all programs. An expression that does not compile is sent as source, so
    that it raises in the program like any other call.
    """
    flags = _AWAITED * awaited | _USES_LIBRARY * uses_library
    try:
        data = marshal.dumps(_compile(expression))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        flags |= _IS_SOURCE
        data = expression.encode("utf-8", "surrogatepass")
    return _CALL_HEADER.pack(flags, len(data)) + data


def _unpack_calls(payload: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(payload):
        flags, length = _CALL_HEADER.unpack_from(payload, at)
        at += _CALL_HEADER.size
        yield flags, payload[at : at + length]
        at += length


def _compile(expression: str) -> types.CodeType:
    return compile(expression, "<call>", "eval", dont_inherit=True)


class _Channel:
    """Sends and receives whole frames over one blocking descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._reader = io.BufferedReader(io.FileIO(fd, closefd=False))

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        data = memoryview(HEADER.pack(kind, len(payload)) + payload)
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self) -> tuple[bytes, bytes]:
        kind, length = HEADER.unpack(self._reader.read(HEADER.size))
        payload = self._reader.read(length)
        if len(payload) < length:
            raise EOFError  # an incomplete program must not be executed
        return kind, payload


class Server:
    """Serves the requests of one program's process.

    The server is created before the fork, so that the work of its constructor is done once for all forks.
    """

    def __init__(self) -> None:
        module = types.ModuleType(MODULE_NAME)
        self._scope = module.__dict__
        self._missing: set[str] = set()
        self._scope |= {"__builtins__": builtins, "__file__": f"{MODULE_NAME}.py"}  # a script has these names, too
        builtins.open = io.open = open_kept
        # The name __main__ is replaced, too: a program that imports __main__ must find itself and not the fork server's
        # code.
        sys.modules[MODULE_NAME] = sys.modules["__main__"] = module
        # Contest programs print and read integers of any length, so Python's limit for them is removed. The judge's
        # clock bounds the cost of long integers. Old versions of Python have neither this function nor the limit.
        getattr(sys, "set_int_max_str_digits", int)(0)
        self._library = LIBRARY_NAMES | {name: importlib.import_module(name) for name in LIBRARY_MODULES}
        # Programs must not find our modules in memory.
        for name in [name for name in sys.modules if name.partition(".")[0] == _OWN_PACKAGE]:
            del sys.modules[name]

    def serve(self, value_bytes: int) -> None:
        """Serve requests until the other side closes the channel. The caller then ends the process without clean-up.

        Args:
            value_bytes: size of the longest encoded value that is sent back.
        """
        channel = _Channel(CHANNEL_FD)
        channel.send(b"R")
        if not self._load(channel, value_bytes):
            return
        while True:
            request, payload = channel.receive()
            # Each result is sent at once, so that a program that ends early loses only its current call.
            for flags, expression in _unpack_calls(payload):
                started = process_time_ns()
                kind, data = self._call(flags, expression, value_bytes)
                if request == b"T":
                    data = CPU_TIME.pack(process_time_ns() - started) + data
                channel.send(kind, data)

    def _load(self, channel: _Channel, value_bytes: int) -> bool:
        names: list[str] = []
        failure, may_go_on = b"", True
        while True:
            kind, payload = channel.receive()
            # The judge sends the calls only after this response, so that code at top level cannot read them.
            if kind == b"B":
                if bytes(range(256)) != _BYTES:
                    return False  # the program has changed the interpreter's own integers, so no value is correct
                self._missing = {name for name in names if name in vars(builtins) and name not in self._scope}
                channel.send(b"L", failure)
                return True
            try:
                source = payload.decode("utf-8", "surrogatepass")
                if kind == b"N":
                    names = source.split()
                elif kind == b"I":
                    self._scope[INPUT_ENTRY] = InputProgram(source, self._scope, most_bytes=value_bytes)
                else:
                    failure, may_go_on = self._execute(source, names)
            except BaseException as error:  # noqa: BLE001 - anything that a program raises is its result
                failure, may_go_on = _describe(error), False
            if not may_go_on:
                channel.send(b"X", failure)
                return False

    def _execute(self, source: str, names: Sequence[str]) -> tuple[bytes, bool]:
        """Execute a program's top level. Skip the examples that raise.

        Returns:
            The exception of a statement (empty if none raised), and whether the program has loaded nevertheless.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: the source does not compile.
        """
        failure, line = self._raised(compile(source, "<program>", "exec", dont_inherit=True))
        if not failure or not names:
            return failure, not failure
        # Few programs come here. All others run as one piece of code, and are not parsed.
        body = ast.parse(source).body
        try:
            examples = Examples(body, names)
        except PARSE_ERRORS:
            return failure, False
        # Only the line of the exception is known, so statements that share a line count as one.
        failed = [number for number, part in enumerate(body) if _first_line(part) <= line <= (part.end_lineno or 0)]
        if not failed or not all(map(examples.has, failed)):
            return failure, False
        futures = [part for part in body if isinstance(part, ast.ImportFrom) and part.module == "__future__"]
        # Behind `pass`, a text is not taken for the module's docstring.
        head = [*futures, *ast.parse("pass").body]
        for number in range(failed[-1] + 1, len(body)):
            module = ast.Module([*head, body[number]], type_ignores=[])
            later, _ = self._raised(compile(module, "<program>", "exec", dont_inherit=True))
            if later and not examples.has(number):
                return later, False
        return failure, True

    def _raised(self, code: types.CodeType) -> tuple[bytes, int]:
        """Execute code, and return what it raised, with the line at top level; an empty text if it raised nothing."""
        try:
            exec(code, self._scope)
        except BaseException as error:  # noqa: BLE001 - as above
            inner = error.__traceback__.tb_next if error.__traceback__ else None
            return _describe(error), inner.tb_lineno if inner else 0
        return b"", 0

    def _call(self, flags: int, expression: bytes, value_bytes: int) -> tuple[bytes, bytes]:
        try:
            is_source = flags & _IS_SOURCE
            # The judge compiled these bytes. Nothing that a program wrote is unmarshalled.
            code = _compile(expression.decode("utf-8", "surrogatepass")) if is_source else marshal.loads(expression)
            # No builtin takes the place of a function that the program lacks.
            if absent := self._missing.intersection(code.co_names):
                raise NameError(f"the program does not define {min(absent)}")
            # The library's names are locals of this call, so that they do not change the program's namespace.
            value = eval(code, self._scope, self._library if flags & _USES_LIBRARY else None)
            if flags & _AWAITED:
                import asyncio  # here, because asyncio is rarely needed and would slow down every fork

                value = asyncio.run(_wait(value))
            data = encode(value)
        except UnencodableError as error:
            return b"U", str(error).encode("utf-8", "replace")[:_DETAIL_CHARS]
        except BaseException as error:  # noqa: BLE001 - anything that a program raises is its result
            return b"E", _describe(error)
        # The size is checked here, so that a value over the limit is never sent.
        return (b"V", data) if len(data) <= value_bytes else (b"O", b"")


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def _describe(error: BaseException) -> bytes:
    name = type(error).__name__
    try:
        text = f"{name}: {error}"
    except BaseException:  # noqa: BLE001 - a program's __str__ may do anything
        text = name
    return text[:_DETAIL_CHARS].encode("utf-8", "replace") or b"exception"


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])
