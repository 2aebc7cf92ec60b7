"""Checkers compare the printed output of a program with the reference's output."""

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, partial

from ..errors import SandboxConfigError, ValueFormatError
from .decoding import decode_raw

Same = Callable[[bytes, bytes], bool]
"""Tells whether two encoded values are equal. The first argument is the reference's value."""
_Rule = Callable[[str, str], bool]
"""Tells whether two texts are equal. The first argument is the reference's output."""

ANY_ORDER = "any_order"
"""Checker for return values. The items of a returned list or tuple may stand in any order."""
FROM_JSON = "json"
"""Checker for return values, for a reference whose answers come from JSON. A tuple equals a list, and the keys of a
dict are compared as JSON writes them: ``1`` equals ``"1"``. Checkers may be combined: ``any_order+json``."""
IN_LIST = "in_list"
"""Checker for return values. The value may also be the only item of a list."""
CHECKERS = ("decimals", "exact", "tokens", "caseless", "floats", "accepted")
"""Names of the checkers for printed texts. ``floats:1e-9`` is ``floats`` with another tolerance.

- decimals: as ``tokens``, but decimals have a tolerance. The reference's word must be a decimal with at most 17 digits
  after the point. The program's number may differ from it by 1e-6 absolutely or by 1e-9 relatively. So 0.333333 equals
  the reference's 0.3333333333333333, as in contests, but 3000002.0 does not equal 3000001.0.
- exact: compares the lines. Whitespace at the end of a line is ignored, and so are empty lines at the end of the text.
- tokens: compares the words. The whitespace between words is ignored.
- caseless: as ``tokens``, but ``YES`` equals ``yes``.
- floats: as ``tokens``, but all numbers have a tolerance. Two numbers are equal if they differ by at most 1e-6, either
  absolutely or relative to the reference's number.
- accepted: the reference prints all accepted outputs, separated by lines that hold only ``SEPARATOR``. The printed
  output must equal one of these outputs, compared as ``tokens``.
"""
DEFAULT_CHECKER = "decimals"
SEPARATOR = "---"
_TOLERANCE = Decimal("1e-6")
_ANY_WORD = re.compile(r"\S+")
_RELATIVE = Decimal("1e-9")
"""Relative tolerance of ``decimals``. With a larger tolerance, a sum of millions could be wrong by one."""
_DECIMAL = re.compile(r"[+-]?\d*\.\d{1,17}(?:[eE][+-]?\d{1,3})?")


@lru_cache
def output_checker(name: str) -> Same:
    """Make the checker called ``name``. For the checker, bytes that do not encode a text equal nothing.

    Raises:
        SandboxConfigError: no checker has this name.
    """
    kind, _, written = name.partition(":")
    try:
        tolerance = Decimal(written or _TOLERANCE)
    except ArithmeticError:
        tolerance = Decimal(-1)
    is_known = kind == "floats" or (kind in CHECKERS and not written)
    if not is_known or not tolerance.is_finite() or tolerance < 0:
        raise SandboxConfigError(
            f"unknown checker {name!r}; known: {', '.join(CHECKERS)}, and floats:TOLERANCE with a number of at least 0"
        )
    rules: dict[str, _Rule] = {
        "decimals": partial(_near, tolerance=tolerance, relative=_RELATIVE, numbers=_DECIMAL),
        "exact": _equal(_lines),
        "tokens": _equal(str.split),
        "caseless": _equal(_caseless_words),
        "floats": partial(_near, tolerance=tolerance, relative=tolerance),
        "accepted": _is_accepted,
    }
    return partial(_same, rule=rules[kind])


def _same(reference: bytes, value: bytes, *, rule: _Rule) -> bool:
    # A hostile program may send any bytes, for example an encoded list instead of a text.
    try:
        wanted, printed = decode_raw(reference), decode_raw(value)
    except ValueFormatError:
        return False
    if not isinstance(wanted, str) or not isinstance(printed, str):
        return False
    return rule(wanted, printed)


def _equal(read: Callable[[str], list[str]]) -> _Rule:
    return lambda reference, printed: read(reference) == read(printed)


def _lines(text: str) -> list[str]:
    lines = text.rstrip().split("\n")
    return [line.rstrip() for line in lines]


def _caseless_words(text: str) -> list[str]:
    return text.casefold().split()


def _near(
    reference: str,
    printed: str,
    *,
    tolerance: Decimal,
    relative: Decimal,
    numbers: re.Pattern[str] = _ANY_WORD,
) -> bool:
    """Compare word by word. A word of the reference that matches ``numbers`` has a tolerance."""
    wanted_words, words = reference.split(), printed.split()
    # A program may print a million numbers, so the lengths are compared before any number is read.
    if len(wanted_words) != len(words):
        return False
    for wanted, word in zip(wanted_words, words, strict=True):
        if wanted == word:
            continue
        if not numbers.fullmatch(wanted) or not _are_near(wanted, word, tolerance, relative):
            return False
    return True


def _are_near(wanted: str, word: str, tolerance: Decimal, relative: Decimal) -> bool:
    # ``Decimal`` accepts 1_000 and the digits of other scripts, but no contest's judge accepts them.
    if "_" in word or not word.isascii():
        return False
    try:
        # A float would lose digits: 2**53 + 1 would equal 2**53.
        wanted_number, number = Decimal(wanted), Decimal(word)
        # With an infinite tolerance, `inf` would equal every number.
        if not wanted_number.is_finite() or not number.is_finite():
            return False
        # The tolerance depends only on the reference, so that a wrong large number cannot increase it.
        return abs(wanted_number - number) <= max(tolerance, relative * abs(wanted_number))
    except ArithmeticError:  # not a number, or an exponent of many digits
        return False


def _is_accepted(reference: str, printed: str) -> bool:
    outputs: list[list[str]] = [[]]
    for line in reference.split("\n"):
        if line.strip() == SEPARATOR:
            outputs.append([])
        else:
            outputs[-1] += line.split()
    # Separators at the start or the end leave empty outputs, which do not count unless the reference prints nothing
    # else.
    accepted = list(filter(None, outputs)) or [[]]
    return printed.split() in accepted
