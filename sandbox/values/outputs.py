"""Checkers compare a printed output with the reference's, for programs that read standard input."""

import math
import re
from collections.abc import Callable
from functools import lru_cache, partial

from ..errors import SandboxConfigError, ValueFormatError
from .decoding import decode_raw

Same = Callable[[bytes, bytes], bool]
"""Compares two encoded values, the reference's first."""

ANY_ORDER = "any_order"
"""Checker for returned values. The items of a returned list or tuple may stand in any order."""
CHECKERS = ("decimals", "exact", "tokens", "caseless", "floats", "accepted")
"""Names of the comparisons of printed texts. ``floats:1e-9`` sets another tolerance.

- decimals: as tokens. A decimal of the reference with at most 17 digits behind the point also equals a number that
  differs by at most 1e-6, or by 1e-9 of the reference's: contests accept 0.333333 for a reference that prints sixteen
  digits, but 3000001.0 is not 3000002.0.
- exact: line by line, without the spaces at the end of lines and the empty lines at the end of the text.
- tokens: word by word. The whitespace between words does not count.
- caseless: as tokens, and `YES` equals `yes`.
- floats: as tokens. Two numbers are equal if they differ by at most the tolerance (1e-6), either absolute or relative
  to the reference's.
- accepted: the reference prints all accepted outputs, separated by lines that hold only ``SEPARATOR``. A printed output
  must equal one of these, as tokens.
"""
DEFAULT_CHECKER = "decimals"
SEPARATOR = "---"
_TOLERANCE = 1e-6
_ANY_WORD = re.compile(r"\S+")
_RELATIVE = 1e-9
"""Relative tolerance of ``decimals``. It is small, so that a sum of millions that is off by one is wrong."""
_DECIMAL = re.compile(r"[+-]?\d*\.\d{1,17}(?:[eE][+-]?\d{1,3})?")


@lru_cache
def output_checker(name: str) -> Same:
    """Make the comparison called ``name``. It takes any bytes. Bytes that encode no text are equal to nothing.

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
    # A hostile program may send any bytes, also a list in the place of a text.
    try:
        wanted, printed = decode_raw(reference), decode_raw(value)
    except ValueFormatError:
        return False
    return isinstance(wanted, str) and isinstance(printed, str) and rule(wanted, printed)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _near(
    reference: str, printed: str, *, tolerance: float, relative: float, numbers: re.Pattern[str] = _ANY_WORD
) -> bool:
    wanted_words, words = reference.split(), printed.split()
    # Compared before any number is read, because a program may print a million of them.
    if len(wanted_words) != len(words):
        return False
    for wanted, word in zip(wanted_words, words, strict=True):
        if wanted != word and not (numbers.fullmatch(wanted) and _are_near(wanted, word, tolerance, relative)):
            return False
    return True


def _are_near(wanted: str, word: str, tolerance: float, relative: float) -> bool:
    # ``float`` takes 1_000 and digits of other scripts, which no contest's judge takes.
    if "_" in word or not word.isascii():
        return False
    try:
        wanted_number, number = float(wanted), float(word)
    except ValueError:
        return False
    # The tolerance depends on the reference alone, so that a wrong large number cannot widen it. Infinity is no number,
    # because `inf` would equal every number that is too large for a float.
    return math.isfinite(wanted_number) and abs(wanted_number - number) <= max(tolerance, relative * abs(wanted_number))


def _is_accepted(reference: str, printed: str) -> bool:
    outputs: list[list[str]] = [[]]
    for line in reference.split("\n"):
        if line.strip() == SEPARATOR:
            outputs.append([])
        else:
            outputs[-1] += line.split()
    return printed.split() in (list(filter(None, outputs)) or [[]])
