"""The forked process of ``fusion_harness.py`` in which the program runs. Sent to the service with it.

It holds its own program and calls, and never an expected value. Frames to the harness are those of
``child.py``: one byte of kind, four bytes of length (little-endian), the payload. The calls are known
before the fork; of a timed program each waits for one byte from the harness.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import resource
import signal
import struct
import sys
import types
from typing import Any

from .errors import UnencodableError
from .literals import LIBRARY_MODULES, LIBRARY_NAMES
from .values import encode

HEADER = struct.Struct("<cI")
_CHANNEL_FD = 3
_MODULE_NAME = "solution"
_NOBODY = 65534
_MOST_DESCRIPTORS = 4096
_DETAIL_CHARS = 200
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def prctl(option: int, value: int) -> None:
    """Best effort: an interpreter without ctypes, or a service that refuses it, does without."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def run_child(task: dict[str, Any], calls: list[dict[str, Any]], channel: int, cpu_seconds: int) -> None:
    """Run the program in this forked process and end it. Never returns."""
    try:
        os.dup2(channel, _CHANNEL_FD)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.closerange(_CHANNEL_FD + 1, _MOST_DESCRIPTORS)
        os.chdir("/")
        _drop_root()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _set_rlimits(task["limits"], cpu_seconds)
        random.seed(task["hash_seed"])  # here, because random seeds itself anew after a fork
        _send(b"R")
        gc.enable()
        _serve(task, calls)
    finally:
        os._exit(1)


def _drop_root() -> None:
    """Become nobody where that is possible and leaves the standard library readable."""
    if os.geteuid() != 0:
        return
    with contextlib.suppress(OSError):
        os.seteuid(_NOBODY)
        try:
            for folder in filter(os.path.isdir, (os.path.dirname(os.__file__), *sys.path)):
                os.listdir(folder)
            with open(os.__file__, "rb") as handle:
                handle.read(1)
        finally:
            os.seteuid(0)
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _set_rlimits(limits: dict[str, Any], cpu_seconds: int) -> None:
    with open("/proc/self/statm") as handle:
        base = int(handle.read().split()[0]) * resource.getpagesize()
    wanted = {
        resource.RLIMIT_AS: (base + limits["memory_bytes"],) * 2,
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_NOFILE: (limits["open_files"],) * 2,
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_STACK: (limits["stack_bytes"], resource.getrlimit(resource.RLIMIT_STACK)[1]),
    }
    for which, (soft, hard) in wanted.items():
        _, ceiling = resource.getrlimit(which)
        if ceiling != resource.RLIM_INFINITY:
            hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
            soft = min(soft, hard)
        resource.setrlimit(which, (soft, hard))


def _send(kind: bytes, payload: bytes = b"") -> None:
    data = memoryview(HEADER.pack(kind, len(payload)) + payload)
    while data:
        data = data[os.write(_CHANNEL_FD, data) :]


def _serve(task: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    module = types.ModuleType(_MODULE_NAME)
    scope = module.__dict__
    scope["__builtins__"] = __builtins__
    sys.argv = [""]
    sys.modules[_MODULE_NAME] = sys.modules["__main__"] = module
    library = LIBRARY_NAMES | {name: sys.modules[name] for name in LIBRARY_MODULES}
    for name in [name for name in sys.modules if name.partition(".")[0] == __package__]:
        del sys.modules[name]
    try:
        for source in (task["prelude"], task["source"]):
            if source:
                exec(compile(source, "<program>", "exec", dont_inherit=True), scope)
    except BaseException as error:  # noqa: BLE001 - whatever a program raises is its answer
        _send(b"X", _describe(error))
        return
    _send(b"L")
    for call in calls:
        if task["timed"] and not os.read(_CHANNEL_FD, 1):
            return
        _send(*_call(call, scope, library if call["uses_library"] else None, task["limits"]["value_bytes"]))
    os.read(_CHANNEL_FD, 1)  # until the harness has read everything and hangs up


def _call(
    call: dict[str, Any], scope: dict[str, Any], library: dict[str, Any] | None, value_bytes: int
) -> tuple[bytes, bytes]:
    try:
        value = eval(compile(call["expression"], "<call>", "eval", dont_inherit=True), scope, library)
        if call["awaited"]:
            import asyncio

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
