"""Reads and checks the programs and tests of ``attack`` before anything runs."""

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from reward_fns.extract import ExtractionFailure, extract_suite
from sandbox.text import Interface, parse_untrusted

from ...algorithm.question import definitions
from ...errors import PARSE_ERRORS, InputError
from ...stats.tables import counts_text

_MAX_ASSERTS = 10_000


class Suites(NamedTuple):
    """The asserts that are to be judged."""

    suites: list[tuple[str, ...]]
    """For each suite, the texts of its asserts."""
    failures: Counter[str]
    """Reason -> number of responses and files without asserts."""

    @classmethod
    def of(cls, extracted: Iterable[tuple[str, ...] | ExtractionFailure]) -> "Suites":
        """Separate the suites from the extraction failures."""
        suites = cls([], Counter())
        for result in extracted:
            if isinstance(result, ExtractionFailure):
                suites.failures[result.reason] += 1
            else:
                suites.suites.append(result)
        return suites


def read_text(path: Path, what: str) -> str:
    """Read a text file.

    Raises:
        InputError: the file cannot be read, or is empty.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows begin a file with a byte order mark
    except (OSError, ValueError) as error:
        raise InputError(f"{what} {path} cannot be read: {error}; name a text file in UTF-8") from error
    if not text.strip():
        raise InputError(f"{what} {path} must not be empty")
    return text


def read_program(path: Path, what: str) -> str:
    """Read a program.

    Raises:
        InputError: the file cannot be read, or does not parse.
    """
    source = read_text(path, what)
    try:
        parse_untrusted(source)
    except PARSE_ERRORS as error:
        raise InputError(f"{what} {path} does not parse as Python 3: {error}; correct it first") from error
    return source


def public_names(source: str, reference: str, path: Path) -> tuple[str, ...]:
    """List the public functions and classes of a program that the reference defines too. Tests may call these names.

    Args:
        source: the program.
        reference: the reference, which may be the program itself.
        path: the program's file, for messages.

    Raises:
        InputError: there is no such name.
    """
    own = Interface.of(source).entry_points
    shared = tuple(name for name in own if name in definitions(reference))
    if not shared:
        listed = ", ".join(own) or "no public function or class"
        raise InputError(f"{path} defines {listed}; --reference must define a function or class of the same name")
    return shared


def read_suites(paths: Sequence[Path]) -> Suites:
    """Read one suite from each file: all assert statements of a Python file, also those inside functions.

    A file that does not parse as Python is read as a Test LLM's response.

    Raises:
        InputError: a file cannot be read, or no file has an assert.
    """
    suites = Suites.of(map(_asserts_in, paths))
    if not suites.suites:
        raise InputError(
            f"--suites {', '.join(map(str, paths))}: no assert statement was found ({counts_text(suites.failures)}); "
            "write lines such as `assert f([1]) == 2`, or name a Test LLM that writes them (--model, --endpoint)"
        )
    return suites


def _asserts_in(path: Path) -> tuple[str, ...] | ExtractionFailure:
    text = read_text(path, "--suites")
    try:
        module = parse_untrusted(text)
    except PARSE_ERRORS:
        return extract_suite(text, max_asserts=_MAX_ASSERTS)
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.Assert)]
    nodes.sort(key=lambda node: node.lineno)
    texts = tuple(f"assert {ast.unparse(node.test)}" for node in nodes[:_MAX_ASSERTS])
    return texts or ExtractionFailure(reason="no_asserts")
