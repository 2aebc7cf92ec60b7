"""Find inputs that mean the same to most programs, although spelling or containers differ."""

import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from .encoding import canonical_key

_MAX_NUMBER_CHARS = 400
_MAX_EXACT = 2**53
_ORDERED = (list, tuple, deque, range, bytes, bytearray)
_PLAIN = {int, float, bool, type(None)}
NUMBER = r"[+-]?(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+(?!\w)"
INPUT_WORD = re.compile(rf"{NUMBER}|\w+|\S")
"""Words of an input: numbers, other words, and single characters of punctuation."""


def alike_words(text: str) -> tuple[str, ...]:
    """Split an input into words, with one spelling for each number: ``3, 1.50`` and ``3.0,15e-1`` give equal words."""
    return tuple(map(alike_word, INPUT_WORD.findall(text)))


def alike_word(word: str) -> str:
    """Return the one spelling of a number, and any other word unchanged."""
    return word if len(word) > _MAX_NUMBER_CHARS else _respell(word)


@lru_cache(1 << 14)
def _respell(word: str) -> str:
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        # Floats beyond this size are not exact, so different integers could get the same word.
        is_exact = abs(number) < _MAX_EXACT
        if is_exact and number == int(number):
            number = int(number)
        return str(number)
    return word


def alike_value(value: Any, *, respell: Callable[[str], str] = alike_word, is_bag: bool = False) -> Any:
    """Replace tuples, deques, ranges and bytes by lists, and sets by lists in the order of their canonical bytes.

    A list of letters becomes a text, and ``respell`` changes each text. With ``is_bag``, a dict becomes the list of its
    keys, and the order of a list does not count.
    """
    if type(value) is str:
        return respell(value)
    alike = partial(alike_value, respell=respell, is_bag=is_bag)
    if is_bag and isinstance(value, (dict, *_ORDERED)):
        return sorted(canonical_key(item if type(item) in _PLAIN else alike(item)) for item in value)
    if type(value) in _ORDERED:
        items = [item if type(item) in _PLAIN else alike(item) for item in value]
        are_letters = bool(items) and all(type(item) is str and len(item) == 1 for item in items)
        return "".join(items) if are_letters else items
    if type(value) in (set, frozenset):
        return (
            sorted(map(canonical_key, map(alike, value)))
            if is_bag
            else list(map(alike, sorted(value, key=canonical_key)))
        )
    if type(value) is dict:
        return {key: alike(item) for key, item in value.items()}
    return value
