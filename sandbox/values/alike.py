"""Inputs that are spelled differently and show the same of a program, as far as anybody expects."""

import re
from collections import deque
from fractions import Fraction
from typing import Any

from .encoding import canonical_key

WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_MAX_NUMBER_CHARS = 400
_ORDERED = (list, tuple, deque, bytes, bytearray)


def alike_words(text: str) -> tuple[str, ...]:
    """The words of an input, numbers by value: those of ``3  1.50`` and ``3.0 15e-1`` are the same."""
    words = []
    for word in WORD.findall(text):
        is_number = len(word) <= _MAX_NUMBER_CHARS and _NUMBER.fullmatch(word)
        words.append(str(Fraction(word)) if is_number else word)
    return tuple(words)


def alike_containers(value: Any) -> Any:
    """The value with lists in place of tuples, deques and bytes, and of sets in the order of their canonical bytes."""
    if type(value) in _ORDERED:
        return [alike_containers(item) for item in value]
    if type(value) in (set, frozenset):
        return [alike_containers(item) for item in sorted(value, key=canonical_key)]
    if type(value) is dict:
        return {key: alike_containers(item) for key, item in value.items()}
    return value
