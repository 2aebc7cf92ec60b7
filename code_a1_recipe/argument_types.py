"""Types of command-line arguments that several commands have; each error says rule and value."""

from __future__ import annotations

import argparse

from .questions import COLUMNS


def positive(text: str) -> int:
    """An integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def assignment(text: str) -> tuple[str, str]:
    """``key=value``, neither of them empty."""
    key, separator, value = text.partition("=")
    if not (key and separator and value):
        raise argparse.ArgumentTypeError(f"must be key=value, got {text!r}")
    return key, value


def column(text: str) -> tuple[str, str]:
    """``NAME=COLUMN``: a native column and where a file has it."""
    native, name = assignment(text)
    if native not in COLUMNS:
        raise argparse.ArgumentTypeError(f"unknown native column {native!r}; known: {', '.join(COLUMNS)}")
    return native, name
