"""The interface of everything that can run a program: what to run, and what came back.

A runner reports facts about one program. It knows no expected value and gives no verdict.
"""

import enum
import re
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..cases.case import Call
from ..limits import Limits
from .child import PACKAGES

_ClosingT = TypeVar("_ClosingT", bound="Closing")  # a service's Python may lack typing.Self
TOTAL_SPENT = "the program's total time is spent"
"""Detail of a TIMED_OUT result of a call that was not made, or not finished, for want of ``total_seconds``."""
HANGS_THROUGHOUT = "the first calls all timed out"
"""Detail of the TIMED_OUT results of the calls that were not made, see ``Program.max_timeouts_without_result``."""
NOT_ASKED = "an earlier call timed out"
"""Detail of the TIMED_OUT results of the calls that were not made, see ``Program.until_timeout``."""
SHORTENED = "more CPU or idle time than is left to a call after so many time-outs"
"""Detail of the TIMED_OUT results of calls that were not asked once more under their own limit."""
_DECAY, _DECAY_OF_REFERENCES = 4, 2
"""Divisors of the limits of later calls, for each time-out of a program."""
FREE_TIMEOUTS, _FREE_AT_FIRST = 1, 2
"""Time-outs of a candidate that do not count: of one that has answered a call, and of one that has not."""
MIN_FACTOR = 5
"""After any number of time-outs a call still has this many times the CPU seconds of the reference, and of the slowest
call that the program has answered itself."""
_TOTAL_FACTOR = 2
_IMPORT_SECONDS = 2.0
_INNER_IMPORT = re.compile(
    r"(?:^[ \t]+|[:;][ \t]*)(?:import|from)[ \t]+([\w., ]+)|__import__|import_module", re.MULTILINE
)


class Role(enum.StrEnum):
    """Which processes run a program. References never share one with candidates, nor the hash seed."""

    CANDIDATE = "candidate"
    REFERENCE = "reference"
    SECOND_REFERENCE = "second_reference"


HASH_SEEDS = {Role.CANDIDATE: 0, Role.REFERENCE: 1, Role.SECOND_REFERENCE: 2}


class CallStatus(enum.StrEnum):
    VALUE = "value"
    RAISED = "raised"
    UNENCODABLE = "unencodable"
    OUTPUT_LIMIT = "output_limit"
    TIMED_OUT = "timed_out"
    DIED = "died"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program and the calls to make of it."""

    prelude: str = ""
    """Executed first, in the same namespace."""
    source: str
    calls: tuple[Call, ...]
    """The order is the one in which they are made."""
    reference_cpu_seconds: tuple[float, ...] = ()
    """Seconds that the reference needed for each call; zeros where that is not known, or left out."""
    suites: tuple[int, ...] = ()
    """Number of the suite that each call is of; zeros where left out. No suite's hangs cost another one its calls."""
    limits: Limits
    max_timeouts_without_result: int = 6
    """A program that times out in its first so many calls, and has returned from none, is asked no more; not
    where it is timed, as a reference."""
    until_timeout: bool = False
    """A program that has timed out in a call is asked no more."""
    isolated: bool = False
    """Every call in a process of its own, freshly loaded."""
    timed: bool = False
    """Measure each call's CPU time, as is done for references."""
    earlier_timeouts: int = 0
    """Calls of the same program that timed out when it was asked before: its limits go on falling, see ``Limits``."""
    reads_input: bool = False
    """Each call is ``run(text)``, with a literal: what the program prints for the text on standard input."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference_cpu_seconds", self.reference_cpu_seconds or (0.0,) * len(self.calls))
        object.__setattr__(self, "suites", self.suites or (0,) * len(self.calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of one call."""

    status: CallStatus
    value: bytes = b""
    """Bytes of a VALUE, from an untrusted process, not yet decoded."""
    detail: str = ""
    """Untrusted text for logs."""
    cpu_seconds: float = 0.0
    """0 unless the program was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """Everything that one program came to."""

    loaded: bool
    load_error: str
    results: tuple[CallResult, ...] = ()
    """One per call, in the order of the calls; empty when the program did not load."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


def import_seconds(program: Program) -> float:
    """CPU seconds, and idle ones, beside its limits for the first call of a program whose calls import anything new.

    Of its first process, and once more after a time-out. Not of each process: a program that ends its process after
    every answer would get them for all of its calls.
    """
    if any(call.awaited for call in program.calls):
        return _IMPORT_SECONDS  # asyncio
    # A guess on the text, in the program's favour: at worst it has a second more, once.
    for found in _INNER_IMPORT.finditer(program.source):
        names = (found[1] or "?").partition(" import ")[0].split(",")
        if any(name.split()[0].partition(".")[0] not in PACKAGES for name in names if name.strip()):
            return _IMPORT_SECONDS
    return 0.0


def cpu_limit(program: Program, index: int, *, num_timeouts: int, slowest: float, is_first: bool) -> float:
    """CPU seconds of a call.

    Args:
        num_timeouts: of the program's calls so far.
        slowest: CPU seconds of the slowest call that the program has answered.
        is_first: of the program. Whoever is asked first fills caches and tables that the later calls find; among the
            reference's calls that was another one, so the slowest of them counts. Not of each process: a program that
            times out in every other call would have that limit for the rest.
    """
    limits = program.limits
    # See ``is_first``: another call filled the tables when the reference ran.
    reference = max(program.reference_cpu_seconds) if is_first else program.reference_cpu_seconds[index]
    full = max(limits.cpu_seconds_per_case, limits.reference_factor * reference)
    least = max(limits.min_cpu_seconds_per_case, MIN_FACTOR * max(reference, slowest))
    decay: float = (
        _DECAY_OF_REFERENCES**num_timeouts
        if program.timed
        else _DECAY ** max(0, num_timeouts - (FREE_TIMEOUTS if slowest else _FREE_AT_FIRST))
    )
    return min(full, max(full / decay, least))


def total_seconds(program: Program) -> float:
    """CPU and idle seconds of all processes of a program together.

    Never less than twice the reference's own time: else a suite of heavy calls would fail honest programs.
    """
    return max(program.limits.total_seconds, _TOTAL_FACTOR * sum(program.reference_cpu_seconds))


def refuse_long_source(program: Program) -> ProgramResult | None:
    """The result of a program whose text exceeds ``limits.source_bytes``; None for any other one."""
    size = len(program.source.encode("utf-8", "surrogatepass"))
    if size <= program.limits.source_bytes:
        return None
    error = f"{size} bytes of source, more than limits.source_bytes = {program.limits.source_bytes}"
    return ProgramResult(loaded=False, load_error=error)


class Closing:
    """Base of objects that a ``with`` block closes, however it is left."""

    def close(self) -> None:
        """End what it started. Idempotent."""

    def __enter__(self: _ClosingT) -> _ClosingT:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Runner(Protocol):
    """Runs programs. Thread-safe: several threads call ``run`` at once."""

    @property
    def limits(self) -> Limits:
        """The limits used where a judge sets none."""

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Run one program to its end; a hang, exit or crash costs the one call it happens in.

        Raises:
            SandboxUnavailableError: the program could not be run; nothing is known about it.
        """

    def close(self) -> None:
        """Stop every process. Later runs raise ``SandboxUnavailableError``. Idempotent."""
