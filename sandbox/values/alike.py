"""Find inputs that mean the same to most programs, although spelling or containers differ."""

from collections import deque
from functools import lru_cache
from typing import Any

from .encoding import canonical_key

_MAX_NUMBER_CHARS = 400
_MAX_EXACT = 2**53
_ORDERED = (list, tuple, deque, bytes, bytearray)


def alike_words(text: str) -> tuple[str, ...]:
    """Split an input into words, with one spelling for each number: ``3  1.50`` and ``3.0 15e-1`` give equal words."""
    return tuple(map(_respell, text.split()))


@lru_cache(1 << 14)
def _respell(word: str) -> str:
    if len(word) > _MAX_NUMBER_CHARS:
        return word
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


def alike_containers(value: Any) -> Any:
    """Replace tuples, deques and bytes by lists, and sets by lists in the order of their canonical bytes."""
    if type(value) in _ORDERED:
        return [alike_containers(item) for item in value]
    if type(value) in (set, frozenset):
        return [alike_containers(item) for item in sorted(value, key=canonical_key)]
    if type(value) is dict:
        return {key: alike_containers(item) for key, item in value.items()}
    return value
