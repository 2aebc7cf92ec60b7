"""Is a printed output the reference's? The checkers of questions whose programs read standard input and print."""

import math
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

- decimals: as tokens, and a word in which the reference has a decimal point is a number, as for floats: contests take
  0.333333 for a reference that prints sixteen digits;
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
        "decimals": partial(_near, tolerance=number, mark="."),
        "exact": lambda reference, printed: _lines(reference) == _lines(printed),
        "tokens": lambda reference, printed: reference.split() == printed.split(),
        "caseless": lambda reference, printed: reference.casefold().split() == printed.casefold().split(),
        "floats": partial(_near, tolerance=number),
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


def _near(reference: str, printed: str, *, tolerance: float, mark: str = "") -> bool:
    words = reference.split()
    others = printed.split()
    if len(words) != len(others):
        return False
    pairs = zip(words, others, strict=True)
    return all(word == other or (mark in word and _are_near(word, other, tolerance)) for word, other in pairs)


def _are_near(word: str, other: str, tolerance: float) -> bool:
    if "_" in other or not other.isascii():  # float() takes 1_000 and digits of other scripts; no judge does
        return False
    try:
        one, two = float(word), float(other)
    except ValueError:
        return False
    # Relative to the reference alone: else a wrong large number would widen its own tolerance.
    # Infinity is no number: `inf` and all that is too large for a float would be the same.
    return math.isfinite(one) and abs(one - two) <= tolerance * max(1.0, abs(one))


def _is_accepted(reference: str, printed: str) -> bool:
    outputs: list[list[str]] = [[]]
    for line in reference.split("\n"):
        if line.strip() == SEPARATOR:
            outputs.append([])
        else:
            outputs[-1] += line.split()
    return printed.split() in (list(filter(None, outputs)) or [[]])
