"""Failures: how an answer differs from the right answer, and how the wrong answer is shown."""

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
    """How an answer differs from the expected answer."""

    kind: str
    """Group of the failure: ``wrong value``, ``returns None``, ``raises IndexError``, ``time-out``, ..."""
    shown: str
    """The answer of the untrusted process as one printable line; the end of a long answer is cut off."""


def was_asked(answer: CallResult) -> bool:
    """Say whether the call was made. A program is not called if no time is left, or if all earlier calls hung."""
    return answer.status is not CallStatus.TIMED_OUT or answer.detail not in (TOTAL_SPENT, HANGS_THROUGHOUT)


def failure_of(expected: bytes, answer: CallResult) -> Failure | None:
    """Describe how ``answer`` fails. Returns None if the answer is right, or if the call was not made."""
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
    """Make untrusted text safe for a terminal or a comment: one line of at most 120 printable characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * _LONGEST_SHOWN])
    return plain if len(plain) <= _LONGEST_SHOWN else plain[: _LONGEST_SHOWN - 3] + "..."
