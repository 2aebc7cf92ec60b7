"""A ``sandbox.Runner`` of functions that are loaded already: each batch of calls is made in a fork of this process."""

import asyncio
import contextlib
import faulthandler
import inspect
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sandbox import (
    TOTAL_SPENT,
    Call,
    CallResult,
    CallStatus,
    Limits,
    Program,
    ProgramResult,
    Role,
    SandboxError,
    SandboxUnavailableError,
    encode,
)

from ..bug_finder.literal_calls import take_apart

_DETAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class FunctionRunner:
    """Makes calls of trusted functions, such as a test's own.

    A call that hangs, crashes or takes all memory costs its fork alone, and what it changes in memory is gone with the
    fork. Nothing of a call's text is executed: the function gets the literals that stand in it as arguments.
    """

    functions: Mapping[str, Any]
    """By what ``Program.source`` calls them here."""
    entry: str
    """The name that calls have for each of them."""
    limits = Limits()

    def close(self) -> None:
        """Nothing is left open between runs."""

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Make all calls of ``functions[program.source]``; every role is treated alike."""
        started = time.monotonic()
        results: list[CallResult] = []
        while pending := program.calls[len(results) :]:
            if time.monotonic() - started > program.limits.total_seconds:
                results += [CallResult(status=CallStatus.TIMED_OUT, detail=TOTAL_SPENT)] * len(pending)
                break
            results += self._forked(program, start=len(results))
        return ProgramResult(
            loaded=True,
            load_error="",
            results=tuple(results),
            cpu_seconds=sum(result.cpu_seconds for result in results),
            wall_seconds=time.monotonic() - started,
        )

    def _forked(self, program: Program, start: int) -> list[CallResult]:
        """Results of calls from ``start`` on: all, the first if isolated, or up to the one that ended the fork."""
        calls = program.calls[start : start + 1 if program.isolated else None]
        limits = program.limits
        used = program.reference_cpu_seconds[start:]
        seconds = [max(limits.cpu_seconds_per_case, limits.reference_factor * one) for one in used][: len(calls)]
        receiver, sender = Pipe(duplex=False)
        child = get_context("fork").Process(target=self._serve, args=(sender, program, calls, seconds))
        # Of threads: the child needs nothing that they hold.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            child.start()
        sender.close()
        results = []
        is_ready = False
        try:
            is_ready = receiver.recv() is None
            for limit in seconds:
                # One that works is ended by the kernel; this is for one that sleeps, and a moment for a busy machine.
                if not receiver.poll(1.0 + limit + limits.wall_seconds(limit)):
                    results.append(CallResult(status=CallStatus.TIMED_OUT))
                    break
                results.append(receiver.recv())
        except (EOFError, OSError):
            child.join()
            code = child.exitcode
            if not is_ready:
                raise SandboxUnavailableError(f"a fork of the test process ended early (status {code})") from None
            status = CallStatus.TIMED_OUT if code == -signal.SIGPROF else CallStatus.DIED
            results.append(CallResult(status=status, detail=f"exit status {code}"))
        finally:
            receiver.close()
            child.kill()
            child.join()
        return results

    def _serve(self, sender: Connection, program: Program, calls: Sequence[Call], seconds: Sequence[float]) -> None:
        """The child's life; it ends here whatever happens, for nothing of the test run may happen twice."""
        try:
            nowhere = open(os.devnull, "r+")  # noqa: SIM115
            sys.stdout = sys.stderr = nowhere  # what pytest captures is not for them
            for descriptor in (0, 1, 2):
                os.dup2(nowhere.fileno(), descriptor)
            faulthandler.disable()
            signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the kernel ends what spends its CPU time, in C too
            num_pages = int(Path("/proc/self/statm").read_text().split()[0])
            size = num_pages * resource.getpagesize() + program.limits.memory_bytes
            with contextlib.suppress(ValueError):  # there is a lower limit already
                resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))
            random.seed(0)
            sender.send(None)
            for call, limit in zip(calls, seconds, strict=True):
                started = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, limit)
                result = self._answer(self.functions[program.source], call, program.limits)
                signal.setitimer(signal.ITIMER_PROF, 0)
                sender.send(replace(result, cpu_seconds=time.process_time() - started))
        finally:
            os._exit(0)

    def _answer(self, function: Callable[..., Any], call: Call, limits: Limits) -> CallResult:
        """Call the function with the literals of the call."""
        try:
            literal = take_apart(call.text, (self.entry,))
            if literal is None:
                raise ValueError(f"{call.text} is no call of {self.entry} with literals")
            positional = [argument.value for argument in literal.arguments if not argument.name]
            named = {argument.name: argument.value for argument in literal.arguments if argument.name}
            value = encode(settled(function(*positional, **named)))
        except SandboxError as error:
            return CallResult(status=CallStatus.UNENCODABLE, detail=str(error)[:_DETAIL_CHARS])
        except BaseException as error:  # noqa: BLE001 - whatever a function raises is its result
            detail = f"{type(error).__name__}: {error}"
            return CallResult(status=CallStatus.RAISED, detail=detail[:_DETAIL_CHARS])
        if len(value) > limits.value_bytes:
            return CallResult(status=CallStatus.OUTPUT_LIMIT)
        return CallResult(status=CallStatus.VALUE, value=value)


def settled(result: Any) -> Any:
    """What is compared: a coroutine's result, the items of an iterator."""
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    return list(result) if isinstance(result, Iterator) else result
