"""How an answer differs from the right one, and how it is shown."""

from dataclasses import dataclass

from sandbox import CallResult, CallStatus, ValueFormatError
from sandbox.text import HANGS_THROUGHOUT, TOTAL_SPENT, matches, to_literal

from ..best_of_n.answer_matrix import error_name

TIME_OUT = "time-out"
_LONGEST_SHOWN = 120
_KINDS = {
    CallStatus.VALUE: "wrong value",
    CallStatus.TIMED_OUT: TIME_OUT,
    CallStatus.DIED: "the process ends",
    CallStatus.OUTPUT_LIMIT: "too large an answer",
    CallStatus.UNENCODABLE: "no plain value",
}


@dataclass(frozen=True, kw_only=True)
class Failure:
    """How an answer differs from the expected one."""

    kind: str
    """``wrong value``, ``returns None``, ``raises IndexError``, ``time-out``, ...: failures are grouped by it."""
    shown: str
    """The answer in one printable line, from an untrusted process; cut off where it is long."""
    is_late: bool = False
    """The call runs into its time limit; given much longer it fails in this way."""


def was_asked(answer: CallResult) -> bool:
    """False where other calls had used up the program's time, or its patience."""
    return answer.status is not CallStatus.TIMED_OUT or answer.detail not in (TOTAL_SPENT, HANGS_THROUGHOUT)


def failure_of(expected: bytes, answer: CallResult) -> Failure | None:
    """How ``answer`` fails; None where it is the expected one, or where the call was not really asked."""
    if answer.status is CallStatus.VALUE:
        if matches(expected, answer.value):
            return None
        kind = "returns None" if answer.value == b"N" else _KINDS[answer.status]
        try:
            shown = to_literal(answer.value)
        except ValueFormatError as error:
            shown = str(error)
    elif answer.status is CallStatus.RAISED:
        kind = f"raises {one_line(error_name(answer.detail)) or 'an exception'}"
        shown = answer.detail.rstrip(": ") or "an exception"
    elif was_asked(answer):
        kind = _KINDS[answer.status]
        shown = f"{kind} ({answer.detail})" if answer.detail else kind
    else:
        return None
    return Failure(kind=kind, shown=one_line(shown))


def one_line(text: str) -> str:
    """Text of an untrusted process for a terminal or a comment: printable, on one line, at most 120 characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * _LONGEST_SHOWN])
    return plain if len(plain) <= _LONGEST_SHOWN else plain[: _LONGEST_SHOWN - 3] + "..."
