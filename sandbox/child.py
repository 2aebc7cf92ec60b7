"""Runs inside the confined process: one program, its calls, their values back over one socket.

Everything here shares a process with untrusted code, so nothing here is trusted: what it writes is a
claim about the program's own output. It holds no expected value, no other program, no test's author.

Frames in both directions: one byte of kind, four bytes of length (little-endian), the payload.

=====  ==================================================================
order  payload
=====  ==================================================================
P      source to execute in the program's namespace (prelude, program)
B      none; loading is over, answer L
C      a call expression; A, one whose result is awaited. Capital D and E:
       the same two with the library constructors of literals in scope
=====  ==================================================================

======  =================================================================
answer  payload
======  =================================================================
R       none; confined, about to read orders
!       why confinement failed; only ever the first frame
L       none; loaded
X       exception of a failed load
V       encoded value
E       exception of a call
U       type of a value that cannot be encoded
O       none; the encoded value exceeds the limit
======  =================================================================
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import types
from typing import Any

from .errors import UnencodableError
from .literals import LIBRARY_MODULES, LIBRARY_NAMES
from .values import encode

HEADER = struct.Struct("<cI")
CHANNEL_FD = 3
MODULE_NAME = "solution"
"""Not ``__main__``: a program's ``if __name__ == "__main__"`` block wants a terminal, not a judge."""
_CALL_FLAGS = {b"C": (False, False), b"A": (True, False), b"D": (False, True), b"E": (True, True)}
_CALL_KINDS = {flags: kind for kind, flags in _CALL_FLAGS.items()}
_DETAIL_CHARS = 200


def order_kind(*, awaited: bool, uses_library: bool) -> bytes:
    """The order byte of a call."""
    return _CALL_KINDS[awaited, uses_library]


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


def serve(value_bytes: int) -> None:
    """Obey orders until the judge hangs up. The caller then ends the process without clean-up."""
    channel = _Channel(CHANNEL_FD)
    module = types.ModuleType(MODULE_NAME)
    scope = module.__dict__
    scope["__builtins__"] = __builtins__
    sys.modules[MODULE_NAME] = sys.modules["__main__"] = module
    library = LIBRARY_NAMES | {name: sys.modules[name] for name in LIBRARY_MODULES}
    for name in [name for name in sys.modules if name.partition(".")[0] == __package__]:
        del sys.modules[name]  # programs find no module of ours, only what is installed
    channel.send(b"R")
    if not _load(channel, scope):
        return
    while True:
        kind, payload = channel.receive()
        awaited, uses_library = _CALL_FLAGS[kind]
        channel.send(*_answer(payload, scope, library if uses_library else None, awaited, value_bytes))


def _load(channel: _Channel, scope: dict[str, Any]) -> bool:
    while True:
        kind, payload = channel.receive()
        if kind == b"B":
            channel.send(b"L")
            return True
        try:
            source = payload.decode("utf-8", "surrogatepass")
            exec(compile(source, "<program>", "exec", dont_inherit=True), scope)
        except BaseException as error:  # noqa: BLE001 - whatever a program raises is its answer
            channel.send(b"X", _describe(error))
            return False


def _answer(
    expression: bytes, scope: dict[str, Any], library: dict[str, Any] | None, awaited: bool, value_bytes: int
) -> tuple[bytes, bytes]:
    try:
        code = compile(expression.decode("utf-8", "surrogatepass"), "<call>", "eval", dont_inherit=True)
        value = eval(code, scope, library)
        if awaited:
            value = asyncio.run(_wait(value))
        data = encode(value)
    except UnencodableError as error:
        return b"U", str(error).encode("utf-8", "replace")[:_DETAIL_CHARS]
    except BaseException as error:  # noqa: BLE001 - whatever a program raises is its answer
        return b"E", _describe(error)
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
