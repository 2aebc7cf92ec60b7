"""The interface of everything that can run a program: what to run, and what came back.

A runner reports facts about one program. It knows no expected value and gives no verdict.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Protocol

from .cases import Call
from .limits import Limits

TOTAL_SPENT = "the program's total time is spent"
"""Detail of a TIMED_OUT answer to a call that was not made, or not finished, for want of ``total_seconds``."""
MAX_BARREN_TIMEOUTS = 6
"""A candidate that times out in its first so many calls, and has answered none, is asked no more."""
HANGS_THROUGHOUT = f"the first {MAX_BARREN_TIMEOUTS} calls all timed out"
"""Detail of the TIMED_OUT answers to the calls of such a program that were not made."""
IMPATIENCE, IMPATIENCE_WITH_REFERENCES = 4, 2
"""What a time-out divides the limits of the program's later calls by."""
LEAST_REFERENCE_FACTOR = 2
"""After any number of time-outs a call still has this many times the reference's CPU seconds."""
_IMPORT_SECONDS = 0.5
_INDENTED_IMPORT = re.compile(r"^[ \t]+(?:import|from)[ \t]", re.MULTILINE)


class Lane(enum.StrEnum):
    """Which processes run a program. References never share one with candidates, nor the hash seed."""

    CANDIDATE = "candidate"
    REFERENCE = "reference"
    SECOND_REFERENCE = "second_reference"


class AnswerKind(enum.StrEnum):
    VALUE = "value"
    RAISED = "raised"
    UNENCODABLE = "unencodable"
    OUTPUT_LIMIT = "output_limit"
    TIMED_OUT = "timed_out"
    DIED = "died"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program and the calls to make of it."""

    prelude: str
    """Executed first, in the same namespace; may be empty."""
    source: str
    calls: tuple[Call, ...]
    """In the order in which they are made."""
    reference_cpu_seconds: tuple[float, ...]
    """What the reference needed for each call; zeros where that is not known."""
    limits: Limits
    isolated: bool = False
    """Every call in a process of its own, freshly loaded."""
    timed: bool = False
    """Measure each call's CPU time; costs a round trip a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one call came to."""

    kind: AnswerKind
    value: bytes = b""
    """Of a VALUE: bytes from an untrusted process, not yet decoded."""
    detail: str = ""
    """Untrusted text for logs."""
    cpu_seconds: float = 0.0
    """0 unless the program was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """What became of one program."""

    loaded: bool
    load_error: str
    answers: tuple[Answer, ...]
    """One per call, in the order of the calls; empty when the program did not load."""
    cpu_seconds: float
    wall_seconds: float


def first_call_cpu_seconds(program: Program) -> float:
    """CPU seconds beside its limit for the first call of each process: some where functions import.

    Shared out like the limits themselves: each time-out leaves less of them.
    """
    return _IMPORT_SECONDS if _INDENTED_IMPORT.search(program.source) else 0.0


def cpu_limits(program: Program, index: int) -> tuple[float, float]:
    """CPU seconds of a call before any time-out, and after any number of them."""
    limits, reference = program.limits, program.reference_cpu_seconds[index]
    return (
        max(limits.cpu_seconds_per_case, limits.reference_factor * reference),
        max(limits.min_cpu_seconds_per_case, min(LEAST_REFERENCE_FACTOR, limits.reference_factor) * reference),
    )


def total_seconds(program: Program) -> float:
    """CPU and idle seconds of all processes of a program together.

    Never less than twice the reference's own time: else a suite of heavy calls would fail honest programs.
    """
    return max(program.limits.total_seconds, LEAST_REFERENCE_FACTOR * sum(program.reference_cpu_seconds))


class Runner(Protocol):
    """Runs programs. Thread-safe: several threads call ``run`` at once."""

    @property
    def limits(self) -> Limits:
        """The limits used where a judge sets none."""

    def run(self, program: Program, *, lane: Lane) -> ProgramResult:
        """Run one program to its end; a hang, exit or crash costs the one call it happens in.

        Raises:
            SandboxUnavailableError: the program could not be run; nothing is known about it.
        """

    def close(self) -> None:
        """Stop every process. Later runs raise ``SandboxUnavailableError``. Idempotent."""
