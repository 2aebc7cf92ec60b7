"""What a check is made of: programs, expectations, and the register of checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cases.case import Call
from ..limits import Limits
from ..runners.base import CallStatus, Program, ProgramResult, Role, Runner
from ..values.encoding import encode

LIMITS = Limits(cpu_seconds_per_case=0.2, wall_seconds_per_case=1.5, load_cpu_seconds=0.8)
"""Short, so that the checks which hang cost little. Busy machines need no longer ones: CPU time judges."""

BUSY = (
    "import time\ndef f(seconds):\n    end = time.process_time() + seconds\n"
    "    while time.process_time() < end: pass\n    return 1\n"
)
"""A program whose calls take as many CPU seconds as they say."""

CheckFunction = Callable[[Runner], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that every runner must do."""

    name: str
    """States the behaviour."""
    function: CheckFunction
    """Raises ``AssertionError`` with what came back."""
    needs: tuple[str, ...] = ()
    """Attributes of the runner which, where they are False or 0, declare that it cannot do this."""
    closes: bool = False
    """The check closes the runner it is given."""
    is_quick: bool = False
    """It depends on the machine and takes no time to speak of: ``python -m sandbox check`` runs it too."""


CHECKS: dict[str, Check] = {}
"""Every check by its name, in the order in which they were written."""


def check(*, closes: bool = False) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check under its own name."""

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS[function.__name__] = Check(name=function.__name__, function=function, closes=closes)
        return function

    return register


@dataclass(frozen=True, slots=True)
class Ends:
    """A call that ends without a value, in this way and with this word in its detail."""

    status: CallStatus
    word: str


def comes_to(
    name: str,
    source: str,
    answers: Mapping[Any, object],
    *,
    needs: tuple[str, ...] = (),
    is_quick: bool = False,
    role: Role = Role.CANDIDATE,
    **changes: Any,
) -> None:
    """Register a check of one program: it loads, and its calls come to these answers in this order.

    Args:
        name: states the behaviour.
        source: of the program.
        answers: by call, which is an expression or a ``Call``: a value, which must come back as its canonical bytes; a
            ``CallStatus``; or ``Ends``.
        needs, is_quick: see ``Check``.
        role: that the program runs in.
        changes: fields of the ``Program``.
    """

    def function(runner: Runner) -> None:
        result = run(runner, source, *answers, role=role, **changes)
        expect_kinds(result, [_status(wanted) for wanted in answers.values()])
        for found, wanted in zip(result.results, answers.values(), strict=True):
            if isinstance(wanted, Ends):
                expect(wanted.word in found.detail, f"the detail must name {wanted.word}", found)
            elif not isinstance(wanted, CallStatus):
                expect_equal(found.value, encode(wanted), "encoded value")

    CHECKS[name] = Check(name=name, function=function, needs=needs, is_quick=is_quick)


def _status(wanted: object) -> CallStatus:
    return wanted if isinstance(wanted, CallStatus) else wanted.status if isinstance(wanted, Ends) else CallStatus.VALUE


def does_not_load(name: str, source: str, *words: str, **changes: Any) -> None:
    """Register a check of one program: it does not load, and the reason holds one of these words, if there are any."""

    def function(runner: Runner) -> None:
        expect_not_loaded(run(runner, source, "1", **changes), *words)

    CHECKS[name] = Check(name=name, function=function)


def program(source: str, *calls: str | Call, **changes: Any) -> Program:
    """A program with the checks' limits; ``calls`` are expressions or whole calls."""
    made = tuple(call if isinstance(call, Call) else Call(expression=call) for call in calls)
    fields: dict[str, Any] = {"source": source, "calls": made, "limits": LIMITS}
    return Program(**(fields | changes))


def run(runner: Runner, source: str, *calls: str | Call, role: Role = Role.CANDIDATE, **changes: Any) -> ProgramResult:
    """Run one program in the candidate role unless another is named."""
    return runner.run(program(source, *calls, **changes), role=role)


def kinds(result: ProgramResult) -> list[str]:
    """The kinds of all answers as plain text; for a program that did not load, why."""
    if not result.loaded:
        return [f"did not load: {result.load_error}"]
    return [answer.status.value for answer in result.results]


def expect(condition: bool, what: str, found: object = None) -> None:
    """Raise unless the condition holds; plain ``assert`` would vanish under ``python -O``."""
    if not condition:
        raise AssertionError(what if found is None else f"{what}; got {found!r}")


def expect_equal(found: object, wanted: object, what: str) -> None:
    """Raise unless the two are equal, showing both."""
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, got {found!r}")


def expect_values(result: ProgramResult, *values: object) -> None:
    """Raise unless the program loaded and answered exactly these values."""
    expect_equal(kinds(result), ["value"] * len(values), "kinds of the answers")
    expect_equal([answer.value for answer in result.results], [encode(value) for value in values], "encoded values")


def expect_kinds(result: ProgramResult, wanted: Sequence[CallStatus]) -> None:
    """Raise unless the program loaded and its answers are of these kinds."""
    expect_equal(kinds(result), [kind.value for kind in wanted], "kinds of the answers")


def expect_not_loaded(result: ProgramResult, *words: str) -> None:
    """Raise unless the program did not load, answered nothing, and says why in these words (any of them)."""
    expect(not result.loaded, "the program must not load", kinds(result))
    expect_equal(result.results, (), "answers of a program that did not load")
    expect(result.load_error != "", "load_error must say why")
    expect(not words or any(word in result.load_error for word in words), f"one of {words}", result.load_error)
