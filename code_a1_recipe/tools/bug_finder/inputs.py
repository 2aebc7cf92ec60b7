"""Reads and checks the programs and tests of an attack before anything runs."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from reward_fns.extract import ExtractionFailure, extract_suite
from sandbox.text import parse_untrusted

from ...algorithm.question import definitions
from ...errors import PARSE_ERRORS, InputError
from ...stats.tables import counts_text

_MAX_ASSERTS = 10_000


class Suites(NamedTuple):
    """The tests whose calls the attack makes."""

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


def entry_point(entry: str | None, source: str, path: Path) -> str:
    """Find the top-level name that tests call.

    Args:
        entry: ``f``, ``Stack`` or ``Solution().f``; None means the program's only public function or class.
        source: the program under attack.
        path: the program's file, for messages.

    Raises:
        InputError: the program does not define the name. If ``entry`` is None: the program has no public function or
            class, or several.
    """
    if entry is None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        public = []
        for name, node in definitions(source).items():
            if isinstance(node, kinds) and not name.startswith("_"):
                public.append(name)
        if len(public) != 1:
            listed = ", ".join(public) or "no function or class"
            raise InputError(f"--entry must name the function or class to attack; {path} defines {listed}")
        return public[0]
    name = re.split(r"[(.]", entry.strip())[0]
    check_defines(source, name, path, hint="--entry must be a name such as f, Stack or Solution().f")
    return name


def check_defines(source: str, name: str, path: Path, *, hint: str) -> None:
    """Raise ``InputError`` if the program does not define a top-level name."""
    names = definitions(source)
    if name not in names:
        raise InputError(f"{path} does not define {name!r}; it defines {', '.join(names) or 'nothing'}; {hint}")


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
