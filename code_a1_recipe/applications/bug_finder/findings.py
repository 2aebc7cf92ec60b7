"""What an attack finds: minimal failing calls by kind of failure, and tests that expect something else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox import Call, CallResult, CallStatus, Case, matches

from .expectations import TIME_OUT, Expected, Failure, show_answer, was_asked

HANG_SECONDS = 3.0
"""CPU seconds after which a call counts as hanging, unless the reference itself needs a tenth of them or more."""
_STARTS = 10
"""Failing calls of one kind that are shrunk, spread over all lengths: another start may lead to another bug."""
_TIME_OUT_STARTS = 3
"""The same for time-outs, each of which takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A minimal failing call."""

    call: Call
    earlier: tuple[Call, ...]
    """Calls to make before it in the same process; empty where it fails alone."""
    expected: Expected
    failure: Failure
    start: str
    """The call as it was found."""
    is_minimal: bool
    """No single simplification still fails."""
    hangs: bool = False
    """It ran for more than ``HANG_SECONDS``; a time-out that does not is slow, compared with the reference."""
    fails_late: bool = False
    """It runs into the time limit of a call and, given ``HANG_SECONDS``, fails in the way that ``failure`` says."""
    depends_on_seed: bool = False
    """Under another hash seed (PYTHONHASHSEED) the program answers otherwise, perhaps rightly."""

    @property
    def text(self) -> str:
        """``assert f([1]) == 2``; the call alone where no single value is expected."""
        return f"assert {self.call.text} == {self.expected.literal}" if self.expected.literal else self.call.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """All failures of one kind."""

    kind: str
    num_calls: int
    bugs: tuple[Bug, ...]
    """Different minimal calls; empty where others took the room, or the failure did not come again."""


def starts_of(failures: Mapping[Call, Failure]) -> dict[str, list[Call]]:
    """Failing calls to shrink, by kind of failure: some of each, the shortest and others spread over all lengths."""
    kinds: dict[str, list[Call]] = {}
    for call, failure in failures.items():
        kinds.setdefault(failure.kind, []).append(call)
    return {kind: spread(calls, _TIME_OUT_STARTS if kind == TIME_OUT else _STARTS) for kind, calls in kinds.items()}


def other_expectations(cases: Sequence[Case], answers: Mapping[Call, CallResult]) -> list[str]:
    """A line for each test that expects another output than the program's; which is wrong is not known.

    Args:
        cases: of all suites; a test of several suites stands there several times. The most frequent comes first.
        answers: the program's.
    """
    counts = Counter((case.call, case.expected_value) for case in cases)
    texts = {(case.call, case.expected_value): case.expected for case in reversed(cases)}
    found = []
    for (call, expected), count in counts.most_common():
        answer = answers.get(call)
        if answer and was_asked(answer) and not (answer.status is CallStatus.VALUE and matches(expected, answer.value)):
            suites = f"; {count} suites" * (count > 1)
            text = f"assert {call.text} == {texts[call, expected]}"
            found.append(f"  {text}  # your function: {show_answer(answer)}{suites}")
    return found


def spread(calls: list[Call], most: int) -> list[Call]:
    """At most so many of the calls: the shortest, the longest, and others evenly between."""
    ordered = sorted(calls, key=lambda call: (len(call.text), call.text))
    if len(ordered) <= most:
        return ordered
    return [ordered[round(place * (len(ordered) - 1) / (most - 1))] for place in range(most)]
