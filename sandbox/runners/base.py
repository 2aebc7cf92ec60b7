"""Interface of a runner: the program to run, and the result that comes back.

A runner reports facts about one program. A runner knows no expected value and gives no verdict.
"""

import enum
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

from ..cases.case import Call
from ..limits import Limits
from .child import PACKAGES, pack_call

_ClosingT = TypeVar("_ClosingT", bound="Closing")  # a service's Python may lack typing.Self
TOTAL_SPENT = "the program's total time is spent"
"""Detail of a TIMED_OUT call that was not made, or not finished, because the program had used its total time."""
HANGS_THROUGHOUT = "the first calls all timed out"
"""Detail of a TIMED_OUT call that was not made because of ``Program.max_timeouts_without_result``."""
NOT_ASKED = "an earlier call timed out"
"""Detail of a TIMED_OUT call that was not made because of ``Program.until_timeout``."""
_SHORT_SECONDS, _SHORT_FACTOR = (0.1, 0.2), 50
"""Short limits of a candidate's call. The first one that is at least this many times the reference's CPU time applies,
so that small differences of the reference's time do not matter."""
_DECAY, _DECAY_OF_REFERENCES = 4, 2
"""After each time-out, the limits of later calls are divided by this: for a candidate, and for a timed program."""
_FREE_TIMEOUTS = 1
"""Number of a candidate's time-outs that shorten no limit."""
_FULL_AT_FIRST = 3
"""Number of calls with the full CPU limit for a candidate that answers none. With a smaller number, a program that
always hangs costs half a second less, but slow programs that hang in half of their calls lose cases."""
MIN_FACTOR = 5
"""After any number of time-outs, a call still gets this many times the CPU time of the reference, or of the slowest
call that the program has answered, whichever is longer."""
_TOTAL_FACTOR = 2
_IMPORT_SECONDS = 2.0
_INNER_IMPORT = re.compile(
    r"(?:^[ \t]+|[:;][ \t]*)(?:import|from)[ \t]+([\w., ]+)|__import__|import_module", re.MULTILINE
)
"""Matches an import that is not at the start of a line, so it may run inside a call. Group 1 holds the modules."""


class Role(enum.StrEnum):
    """Role of a program. Each role has its own fork servers and hash seed."""

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
    """One program, and the calls that it must answer."""

    prelude: str = ""
    """Source that is executed before ``source``, in the same namespace."""
    source: str
    calls: tuple[Call, ...]
    """Calls in the order in which they are made."""
    reference_cpu_seconds: tuple[float, ...] = ()
    """CPU seconds of the reference for each call, 0 if unknown. If left out, all are 0."""
    suites: tuple[int, ...] = ()
    """Number of each call's suite. If left out, all are 0. Calls of suites with fewer time-outs are tried again
    first."""
    limits: Limits
    max_timeouts_without_result: int = 6
    """If the first calls all time out, this is the number of calls after which no more are made. This limit does not
    apply to a timed program, such as a reference."""
    until_timeout: bool = False
    """If True, no further calls are made after the first time-out."""
    isolated: bool = False
    """If True, each call runs in a new process, which loads the program again."""
    timed: bool = False
    """If True, the CPU time of each call is measured. References are timed."""
    earlier_timeouts: int = 0
    """Number of time-outs of the same program in earlier runs. Earlier time-outs shorten limits too, see ``Limits``."""
    entry_points: tuple[str, ...] = ()
    """Names of the functions under test. Examples at top level that raise are skipped (RULES.md, S55). If empty, a
    program that raises does not load."""
    reads_input: bool = False
    """True if the program reads standard input. Then each call is ``run(text)`` with a literal text, and its value is
    the printed output for this input."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference_cpu_seconds", self.reference_cpu_seconds or (0.0,) * len(self.calls))
        object.__setattr__(self, "suites", self.suites or (0,) * len(self.calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of one call."""

    status: CallStatus
    value: bytes = b""
    """The encoded value if the status is VALUE. The value comes from an untrusted process and is not yet decoded."""
    detail: str = ""
    """Untrusted text for logs."""
    cpu_seconds: float = 0.0
    """CPU seconds of the call, 0 unless the program was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """Results of all calls of one program."""

    loaded: bool
    load_error: str
    example_failure: str = ""
    """The exception of the first example that was skipped; untrusted text."""
    results: tuple[CallResult, ...] = ()
    """One result for each call, in order. Empty if the program did not load."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


def import_seconds(program: Program) -> float:
    """Return the extra CPU seconds, and idle seconds, that a program gets if its calls import new modules.

    The first call of the first process gets these seconds. After a time-out, one more call may get them. If every
    process got them, a program that ends its process after every answer would get them for every call.
    """
    if any(call.awaited for call in program.calls):
        return _IMPORT_SECONDS  # an awaited call imports asyncio
    # The text is only searched, not parsed. A wrong guess costs little: two more seconds, once or twice in a program.
    for match in _INNER_IMPORT.finditer(program.source):
        for module in (match[1] or "?").partition(" import ")[0].split(","):
            words = module.split()
            if words and words[0].partition(".")[0] not in PACKAGES:
                return _IMPORT_SECONDS
    return 0.0


def full_limit(program: Program, reference_seconds: float) -> float:
    """Return the CPU limit of a call in seconds that no short limit and no earlier time-out has reduced."""
    return max(program.limits.cpu_seconds_per_case, program.limits.reference_factor * reference_seconds)


def dearest_limit(program: Program) -> float:
    """Return the full CPU limit of the dearest call in seconds. A program's first call may fill the caches of all."""
    return full_limit(program, max(program.reference_cpu_seconds, default=0.0))


def call_limits(
    program: Program, index: int, *, num_timeouts: int, slowest: float, is_patient: bool, is_full: bool
) -> tuple[float, float, tuple[bool, bool]]:
    """Return the CPU limit and the idle limit of a call in seconds, and which of them are shortened; ``Limits`` states
    the rule.

    Args:
        index: position of the call in ``program.calls``.
        num_timeouts: number of the program's calls that have timed out so far.
        slowest: CPU seconds of the slowest call that the program has answered, 0 if it has answered none.
        is_patient: True if the program gets no short limits.
        is_full: True if the call has its full limits.
    """
    limits, reference = program.limits, program.reference_cpu_seconds[index]
    full = cpu = short = full_limit(program, reference)
    if not is_full:
        free = _FREE_TIMEOUTS if slowest or program.timed else _FULL_AT_FIRST - 1
        divisor = float(_DECAY) ** max(0, num_timeouts - free)
        if program.timed:
            divisor = float(_DECAY_OF_REFERENCES) ** num_timeouts
        elif not is_patient:
            short = next((step for step in _SHORT_SECONDS if _SHORT_FACTOR * reference <= step), full)
        least = max(limits.min_cpu_seconds_per_case, MIN_FACTOR * max(reference, slowest))
        short = min(full, max(short / divisor, least))
        # A program that has answered nothing may be slow, but nothing speaks for a program that waits.
        is_unknown = not program.timed and not slowest and num_timeouts < _FULL_AT_FIRST
        cpu = full if is_unknown else short
    idle, full_idle = limits.wall_seconds(short), limits.wall_seconds(full)
    return cpu, idle, (cpu < full, idle < full_idle)


def packed(call: Call) -> bytes:
    """Pack a call for its process. Packed calls are kept, because references and candidates get the same calls."""
    pack = _kept_call if len(call.expression) <= _MAX_KEPT_CHARS else pack_call
    return pack(call.evaluated, awaited=call.awaited, uses_library=call.uses_library)


_PACKED_CALLS, _MAX_KEPT_CHARS = 8192, 4096
_kept_call = lru_cache(_PACKED_CALLS)(pack_call)


def total_seconds(program: Program) -> float:
    """Return the CPU and idle seconds that all processes of a program may use together.

    This limit is at least twice the reference's time. Otherwise correct programs would fail suites of slow calls.
    """
    return max(program.limits.total_seconds, _TOTAL_FACTOR * sum(program.reference_cpu_seconds))


def refuse_long_source(program: Program) -> ProgramResult | None:
    """Return a failed load if the program is longer than ``limits.source_bytes``, and None otherwise."""
    size = len(program.source.encode("utf-8", "surrogatepass"))
    if size <= program.limits.source_bytes:
        return None
    error = f"{size} bytes of source, more than limits.source_bytes = {program.limits.source_bytes}"
    return ProgramResult(loaded=False, load_error=error)


class Closing:
    """Base class of objects that a ``with`` block closes at its end."""

    def close(self) -> None:
        """End everything that the object started. Idempotent."""

    def __enter__(self: _ClosingT) -> _ClosingT:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Runner(Protocol):
    """Runs programs. Several threads may call ``run`` at once."""

    @property
    def limits(self) -> Limits:
        """Limits for judges that set no limits."""

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Run one program to its end. A hang, exit or crash costs only the call in which it happens.

        Raises:
            SandboxUnavailableError: the program could not be run, so there is no result.
        """

    def close(self) -> None:
        """Stop every process. Later runs raise ``SandboxUnavailableError``. Idempotent."""
