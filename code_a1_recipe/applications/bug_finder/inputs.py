"""What an attack starts from: programs, tests and the question, read and checked before anything runs."""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reward_fns.extract import ExtractionFailure, extract_suite
from sandbox import parse_untrusted

from ...algorithm.question import definitions
from ...data.reader import read_rows
from ...errors import InputError
from ...stats.tables import counts_text
from .options import AttackOptions

_MAX_FILE_ASSERTS = 10_000
_MAX_RESPONSE_ASSERTS = 64
_ENTRY = re.compile(r"([A-Za-z_]\w*)(\(\))?(\.[A-Za-z_]\w*)?")
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """The tests to attack with."""

    suites: tuple[tuple[str, ...], ...]
    """``suites[s]`` holds the texts of suite s's asserts."""
    extraction_failures: Counter[str]
    """Responses without asserts, by reason."""

    @classmethod
    def of(cls, extracted: Sequence[tuple[str, ...] | ExtractionFailure]) -> "Suites":
        """What came of each response or file, sorted out."""
        failures = [found for found in extracted if isinstance(found, ExtractionFailure)]
        return cls(
            suites=tuple(found for found in extracted if not isinstance(found, ExtractionFailure)),
            extraction_failures=Counter(failure.reason for failure in failures),
        )

    @property
    def num_asserts(self) -> int:
        return sum(map(len, self.suites))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is attacked and what with, read and checked."""

    options: AttackOptions
    """With the paths of the files, and how hard to try."""
    source: str
    entry: str
    reference: str | None
    candidates: tuple[str, ...]
    """Other programs for the same question."""
    output: Path
    """The pytest file, if bugs are found against a reference."""


def read_text(path: Path, what: str) -> str:
    """A text file that is not empty.

    Raises:
        InputError: there is no such file, or nothing in it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows begin with a mark
    except (OSError, ValueError) as error:
        raise InputError(f"{what} {path} cannot be read: {error}; name a text file in UTF-8") from error
    if not text.strip():
        raise InputError(f"{what} {path} must not be empty")
    return text


def read_program(path: Path, what: str) -> str:
    """Source that parses.

    Raises:
        InputError: it does not.
    """
    source = read_text(path, what)
    try:
        parse_untrusted(source)
    except _PARSE_ERRORS as error:
        raise InputError(f"{what} {path} does not parse as Python 3: {error}; correct it first") from error
    return source


def entry_point(entry: str | None, source: str, path: Path) -> str:
    """The top-level name that tests call.

    Args:
        entry: ``f``, ``Stack`` or ``Solution().f``; None where the program defines a single function or class.
        source: the program under attack.
        path: its file, for messages.

    Raises:
        InputError: the program does not define it, or defines several and none was named.
    """
    if entry is None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        called = [name for name, node in definitions(source).items() if isinstance(node, kinds)]
        public = [name for name in called if not name.startswith("_")]
        if len(public) != 1:
            listed = ", ".join(public) or "no function or class"
            raise InputError(f"--entry must name the function to attack; {path} defines {listed}")
        return public[0]
    match = _ENTRY.fullmatch(entry.strip())
    if match is None:
        raise InputError(f"--entry must be a name such as f, Stack or Solution().f, got {entry!r}")
    check_defines(source, match[1], f"{path}", hint="name one of them")
    return match[1]


def check_defines(source: str, name: str, where: str, *, hint: str) -> None:
    """Raises ``InputError`` where the program defines no such top-level name."""
    names = definitions(source)
    if name not in names:
        raise InputError(f"{where} does not define {name!r}, but {', '.join(names) or 'nothing'}; {hint}")


def read_suites(paths: Sequence[Path]) -> Suites:
    """Tests from files.

    ``.py``: all assert statements, inside functions too, one suite. ``.jsonl``, ``.json``, ``.parquet`` (``.gz``): a
    response of a Test LLM a row, under ``response``, ``text`` or, several, ``responses``. Any other file: as one
    response.

    Raises:
        InputError: a file cannot be read, or there is no assert in any of them.
    """
    extracted: list[tuple[str, ...] | ExtractionFailure] = []
    for path in paths:
        if path.name.removesuffix(".gz").endswith((".jsonl", ".json", ".parquet")):
            extracted += map(_asserts_in_response, _responses(path))
        else:
            extracted.append(_asserts_in_file(path))
    found = Suites.of(extracted)
    if not found.suites:
        reasons = counts_text(found.extraction_failures) or "no rows"
        raise InputError(
            f"--suites {', '.join(map(str, paths))}: no assert statement in it ({reasons}); write lines such as "
            "`assert f([1]) == 2`, or let a Test LLM write them (--model, --endpoint)"
        )
    return found


def suites_in(responses: Sequence[str | None]) -> Suites:
    """The suites of Test LLM responses; None where the prompt was too long to be asked."""
    return Suites.of([_asserts_in_response(response) for response in responses])


def _asserts_in_response(response: str | None) -> tuple[str, ...] | ExtractionFailure:
    if response is None:
        return ExtractionFailure(reason="prompt_too_long")
    return extract_suite(response, max_asserts=_MAX_RESPONSE_ASSERTS)


def _asserts_in_file(path: Path) -> tuple[str, ...] | ExtractionFailure:
    if path.suffix != ".py":
        return extract_suite(read_text(path, "--suites"), max_asserts=_MAX_FILE_ASSERTS)
    module = parse_untrusted(read_program(path, "--suites"))
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.Assert)][:_MAX_FILE_ASSERTS]
    if not nodes:
        return ExtractionFailure(reason="no_asserts")
    return tuple(f"assert {ast.unparse(node.test)}" for node in sorted(nodes, key=lambda node: node.lineno))


def _responses(path: Path) -> list[str]:
    try:
        rows = read_rows(path)
    except InputError as error:
        raise InputError(f"--suites {error}") from error
    responses: list[str] = []
    for index, row in enumerate(rows):
        texts = row.get("responses", [row.get("response", row.get("text"))])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InputError(
                f"--suites {path}: row {index} must hold a response as text under 'response' (or a list of them under "
                f"'responses'), got the columns {sorted(row)}"
            )
        responses += texts
    return responses
