"""Runs inside a program's process, here and in a service: one program, its calls, their values back over one socket.

Everything here shares a process with untrusted code, so nothing here is trusted: what it writes is what the
program says of its own output. It holds no expected value, no other program, no test's author.

Frames in both directions: one byte of kind, four bytes of length (little-endian), the payload.

=======  ================================================================
request  payload
=======  ================================================================
P        source to execute in the program's namespace (prelude, program)
I        source of a program that reads standard input: ``run(text)`` in the
         namespace is what it prints
B        none; loading is over, respond with L
C        calls (see ``pack_call``), made one by one in their order
T        the same, timed: the payload of every response begins with the
         CPU nanoseconds of its call, eight bytes, little-endian
=======  ================================================================

========  ===============================================================
response  payload
========  ===============================================================
R         none; confined, about to read requests
!         why confinement failed; only ever the first frame
L         none; loaded
X         exception of a failed load
V         encoded value
E         exception of a call
U         type of a value that cannot be encoded
O         none; the encoded value exceeds the limit
========  ===============================================================
"""

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

from ..errors import UnencodableError
from ..values.encoding import encode
from ..values.literals import INPUT_ENTRY, LIBRARY_MODULES, LIBRARY_NAMES
from .stdin_program import InputProgram, open_kept

PRELOADED = (
    "abc bisect collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq io "
    "itertools json math numbers operator random re string struct time types typing warnings weakref"
)
"""The modules that programs find already imported: importing them inside a function costs a program nothing. They are
what generated programs import most. Each further module makes every fork dearer: with asyncio, logging and the like it
takes twice as long."""
PACKAGES = frozenset(name.partition(".")[0] for name in PRELOADED.split()) | {"sys", "builtins", "__future__"}
"""Their names at top level."""
HEADER = struct.Struct("<cI")
CPU_TIME = struct.Struct("<Q")
_CALL_HEADER = struct.Struct("<BI")
CHANNEL_FD = 3
_HIGH, _MAX_DESCRIPTORS = 64, 1 << 16
MODULE_NAME = "solution"
"""A name other than ``__main__``: a program's main block wants a terminal, not a judge."""
_AWAITED, _USES_LIBRARY, _IS_SOURCE = 1, 2, 4
_DETAIL_CHARS = 200
_OWN_PACKAGE = __name__.partition(".")[0]


def keep_only(descriptors: Sequence[int]) -> None:
    """Leave /dev/null on 0 to 2, these from ``CHANNEL_FD`` on, and no other descriptor."""
    # Out of the way first: the numbers below are about to be overwritten.
    high = [os.dup2(descriptor, _HIGH + place) for place, descriptor in enumerate(descriptors)]
    # Opened anew: one that all programs inherit would carry its status flags (O_APPEND, say) from one to the next.
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in range(CHANNEL_FD):
        os.dup2(devnull, standard)
    for place, descriptor in enumerate(high, CHANNEL_FD):
        os.dup2(descriptor, place)
    os.closerange(CHANNEL_FD + len(high), _MAX_DESCRIPTORS)


def pack_call(expression: str, *, awaited: bool, uses_library: bool) -> bytes:
    """One call of a request: a byte of flags, four of length, the compiled expression or, failing that, its source.

    Compiled by the judge, an expression is compiled once for all programs that are asked it. One that
    does not compile raises in the program, like any other call.
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
    """Blocking frames over one descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        data = memoryview(HEADER.pack(kind, len(payload)) + payload)
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self) -> tuple[bytes, bytes]:
        kind, length = HEADER.unpack(self._take(HEADER.size))
        return kind, self._take(length)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = os.read(self._fd, 65536)
            if not data:
                raise EOFError
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


class Server:
    """Serves the requests of one program's process. Made before the fork, so that no fork pays for making it."""

    def __init__(self) -> None:
        module = types.ModuleType(MODULE_NAME)
        self._scope = module.__dict__
        self._scope |= {"__builtins__": builtins, "__file__": f"{MODULE_NAME}.py"}  # as a script has them
        builtins.open = io.open = open_kept
        # As __main__ too: a program that imports it must find itself and not the judge's.
        sys.modules[MODULE_NAME] = sys.modules["__main__"] = module
        # Contest judges print and read integers of any length; the clock bounds what that costs. Old Pythons do so too.
        getattr(sys, "set_int_max_str_digits", int)(0)
        self._library = LIBRARY_NAMES | {name: importlib.import_module(name) for name in LIBRARY_MODULES}
        for name in [name for name in sys.modules if name.partition(".")[0] == _OWN_PACKAGE]:
            del sys.modules[name]  # programs find no module of ours, only what is installed

    def serve(self, value_bytes: int) -> None:
        """Serve requests until the other side hangs up. The caller then ends the process without clean-up."""
        channel, scope = _Channel(CHANNEL_FD), self._scope
        channel.send(b"R")
        if not _load(channel, scope, value_bytes):
            return
        while True:
            request, payload = channel.receive()
            # Each result is sent at once: a program that ends early loses only the call that it is in.
            for flags, expression in _unpack_calls(payload):
                library = self._library if flags & _USES_LIBRARY else None
                if request != b"T":
                    channel.send(*_call(flags, expression, scope, library, value_bytes))
                    continue
                started = process_time_ns()
                kind, data = _call(flags, expression, scope, library, value_bytes)
                channel.send(kind, CPU_TIME.pack(process_time_ns() - started) + data)


def _load(channel: _Channel, scope: dict[str, Any], value_bytes: int) -> bool:
    while True:
        kind, payload = channel.receive()
        # The calls come only after this: code at top level must not be able to read them.
        if kind == b"B":
            channel.send(b"L")
            return True
        try:
            source = payload.decode("utf-8", "surrogatepass")
            if kind == b"I":
                scope[INPUT_ENTRY] = InputProgram(source, scope, most_bytes=value_bytes)
            else:
                exec(compile(source, "<program>", "exec", dont_inherit=True), scope)
        except BaseException as error:  # noqa: BLE001 - whatever a program raises is its result
            channel.send(b"X", _describe(error))
            return False


def _call(
    flags: int, expression: bytes, scope: dict[str, Any], library: dict[str, Any] | None, value_bytes: int
) -> tuple[bytes, bytes]:
    try:
        is_source = flags & _IS_SOURCE
        # The bytes are the judge's own, compiled there. Nothing that a program wrote is unmarshalled.
        code = _compile(expression.decode("utf-8", "surrogatepass")) if is_source else marshal.loads(expression)
        # As locals the library's names serve this call alone, and the program's namespace stays its own.
        value = eval(code, scope, library)
        if flags & _AWAITED:
            import asyncio  # rarely needed, and large: in the fork server every fork would pay for it

            value = asyncio.run(_wait(value))
        data = encode(value)
    except UnencodableError as error:
        return b"U", str(error).encode("utf-8", "replace")[:_DETAIL_CHARS]
    except BaseException as error:  # noqa: BLE001 - whatever a program raises is its result
        return b"E", _describe(error)
    # Measured here, so that a value over the limit never crosses the channel.
    return (b"V", data) if len(data) <= value_bytes else (b"O", b"")


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def _describe(error: BaseException) -> bytes:
    name = type(error).__name__
    try:
        text = f"{name}: {error}"
    except BaseException:  # noqa: BLE001 - a program's __str__ may do anything
        text = name
    return text[:_DETAIL_CHARS].encode("utf-8", "replace")
