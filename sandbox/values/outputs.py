"""Is a printed output the reference's? The checkers of questions whose programs read standard input and print."""

import math
import re
from collections.abc import Callable
from functools import lru_cache, partial

from ..errors import SandboxConfigError, ValueFormatError
from .decoding import decode_raw

Same = Callable[[bytes, bytes], bool]
"""Compares two encoded values: the reference's, then another one."""

ANY_ORDER = "any_order"
"""Checker of questions whose programs return values: the items of a returned list or tuple may stand in any order."""
CHECKERS = ("decimals", "exact", "tokens", "caseless", "floats", "accepted")
"""How printed texts are compared; ``floats:1e-9`` gives a tolerance of its own.

- decimals: as tokens, and where the reference has a decimal of at most 17 digits behind the point, a word is the same
  that differs by at most 1e-6, or 1e-9 of the reference's: contests take 0.333333 for a reference that prints sixteen
  digits, and 3000001.0 is not 3000002.0;
- exact: line by line, without the spaces at their ends and the empty lines at the end of all;
- tokens: word by word, whatever whitespace is between them;
- caseless: as tokens, and `YES` is `yes`;
- floats: as tokens, and two words that are numbers are the same where they differ by at most the tolerance, absolute or
  relative to the reference's (1e-6);
- accepted: the reference prints every accepted output, separated by lines that hold ``SEPARATOR`` alone; one of them is
  right, by the rule of tokens.
"""
DEFAULT_CHECKER = "decimals"
SEPARATOR = "---"
_TOLERANCE = 1e-6
_ANY_WORD = re.compile(r"\S+")
_RELATIVE = 1e-9
"""Of the default, which nobody chose for the question: a sum of millions that is off by one is wrong."""
_DECIMAL = re.compile(r"[+-]?\d*\.\d{1,17}(?:[eE][+-]?\d{1,3})?")


@lru_cache
def output_checker(name: str) -> Same:
    """Make the comparison called ``name``. It takes any bytes, and is False where they encode no text.

    Raises:
        SandboxConfigError: no checker has this name.
    """
    kind, _, tolerance = name.partition(":")
    try:
        number = float(tolerance) if tolerance else _TOLERANCE
    except ValueError:
        number = math.nan
    if kind not in CHECKERS or (tolerance and kind != "floats") or not 0 <= number < math.inf:
        raise SandboxConfigError(
            f"unknown checker {name!r}; known: {', '.join(CHECKERS)}, and floats:TOLERANCE with a number of at least 0"
        )
    rules: dict[str, Callable[[str, str], bool]] = {
        "decimals": partial(_near, tolerance=number, relative=_RELATIVE, numbers=_DECIMAL),
        "exact": lambda reference, printed: _lines(reference) == _lines(printed),
        "tokens": lambda reference, printed: reference.split() == printed.split(),
        "caseless": lambda reference, printed: reference.casefold().split() == printed.casefold().split(),
        "floats": partial(_near, tolerance=number, relative=number),
        "accepted": _is_accepted,
    }
    return partial(_same, rule=rules[kind])


def _same(reference: bytes, value: bytes, *, rule: Callable[[str, str], bool]) -> bool:
    try:
        # Any bytes may come from a program, a list as well as a text.
        one, other = decode_raw(reference), decode_raw(value)
    except (ValueFormatError, RecursionError, MemoryError):
        return False
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    return rule(one, other)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _near(
    reference: str, printed: str, *, tolerance: float, relative: float, numbers: re.Pattern[str] = _ANY_WORD
) -> bool:
    words = reference.split()
    others = printed.split()
    # Before any number is read: a program may print a million of them.
    if len(words) != len(others):
        return False
    pairs = zip(words, others, strict=True)
    return all(
        word == other or (numbers.fullmatch(word) and _are_near(word, other, tolerance, relative))
        for word, other in pairs
    )


def _are_near(word: str, other: str, tolerance: float, relative: float) -> bool:
    if "_" in other or not other.isascii():  # float() takes 1_000 and digits of other scripts; no judge does
        return False
    try:
        one, two = float(word), float(other)
    except ValueError:
        return False
    # Relative to the reference alone: else a wrong large number would widen its own tolerance.
    # Infinity is no number: `inf` and all that is too large for a float would be the same.
    return math.isfinite(one) and abs(one - two) <= max(tolerance, relative * abs(one))


def _is_accepted(reference: str, printed: str) -> bool:
    outputs: list[list[str]] = [[]]
    for line in reference.split("\n"):
        if line.strip() == SEPARATOR:
            outputs.append([])
        else:
            outputs[-1] += line.split()
    return printed.split() in (list(filter(None, outputs)) or [[]])
