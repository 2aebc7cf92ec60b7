"""Extraction of a program, or of a suite's asserts, from the text of a response.

This module neither runs nor repairs code: a result consists of unchanged parts of the response.
"""

import ast
import contextlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from sandbox.text import (
    MAX_PARSED_CHARS,
    PARSE_ERRORS,
    asserted,
    compared,
    defined_names,
    imported_names,
    missing_names,
    parse_program,
)

from .answer_blocks import answer_of, blocks_of

MAX_RESPONSE_CHARS = 200_000
"""Longest response that is read, in characters, far above any token budget. A block of more than ``MAX_PARSED_CHARS``
is not parsed. It is the program if no other block is; in a suite, its lines are searched for asserts."""

MAX_ASSERT_LINES = 40
"""Maximum number of lines of an assert in a block that does not parse. It keeps the search for asserts linear."""

MAX_ASSERT_CHARS = 16_384
"""Maximum length of an assert in a block that does not parse."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""Matches a line with its end, as Python's parser splits lines. ``splitlines`` would also split at form feeds."""
_BEGINS_CODE = re.compile(r"(?:async\s+def|def|class|import|from)\b|@|[A-Za-z_][\w.]*\s*(?::[^=]*)?=(?!=)|[a-z_]\w*\(")
"""Matches the beginning of a line that may be the first line of a program."""
_BEGINS_LINE = re.compile(r"[^\s)\]}]")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_MAX_SEARCHED_CHARS = 8 * MAX_PARSED_CHARS
"""Maximum number of characters that are parsed in one response to find runs of lines. Each parse counts as 500
characters more, which bounds the number of parses of short runs."""


@dataclass(frozen=True, kw_only=True)
class ExtractionFailure:
    """The reason why a response holds no program or no suite."""

    reason: str
    """One of ``empty``, ``too_long``, ``unclosed_block``, ``no_code`` and ``no_asserts``."""
    detail: str = ""


def extract_candidate(
    text: str,
    *,
    reads_input: bool = False,
    names: Collection[str] = (),
) -> str | ExtractionFailure:
    """Find the program in a Code LLM's response; `README.md` has twelve examples of the rule.

    A block counts if its fence names Python or no language. If a block does not parse, it is replaced by its longest
    run of lines that parses and defines the names. The program is the first of these that exists:

    1. the last block that defines the names, together with the earlier blocks that define other names that it uses;
    2. all blocks together, if no single block defines all the names;
    3. the longest run of lines of the whole response that parses and defines the names;
    4. the last block unchanged, so that the judge reports why it does not load.

    Args:
        text: the decoded response.
        reads_input: the program reads standard input. Such a program must call a function, but need not define one.
        names: functions and classes that the program must define; ``Stack.push`` asks for the class. If empty, any
            function or class counts.

    Returns:
        The program's source, or an ``ExtractionFailure``. The function never raises an exception.
    """
    if failure := _unreadable(text):
        return failure
    answer = answer_of(text)
    blocks = blocks_of(answer)
    asked = {name.partition(".")[0] for name in names}
    programs = [block for block in blocks if block.may_be_python]
    max_parsed = _MAX_SEARCHED_CHARS // (1 + len(programs))
    pieces = [_piece(block.text, asked, reads_input, max_parsed) for block in programs]
    # The search begins with the last block, because models write a draft before its correction.
    order = list(reversed(range(len(pieces))))
    if reads_input:  # a block after the program may just show how to run it
        order.sort(key=lambda number: not _READS_INPUT.search(pieces[number].source))
    for number in order:
        if pieces[number].fits(asked, reads_input):
            return _with_what_it_reads(pieces[: number + 1])
    # Some models write each function in a separate block.
    readable = [piece for piece in pieces if piece.module is not None]
    defined = set().union(*(piece.defined for piece in readable))
    if asked and asked <= defined:
        return "\n\n".join(piece.source for piece in readable)
    if large := [piece.source for piece in pieces if len(piece.source) > MAX_PARSED_CHARS]:
        return large[-1]
    # Small models often write code without fences, between lines of prose.
    if run := _longest_run(answer, asked, reads_input, max_parsed):
        return run.source
    if pieces:
        last = pieces[-1].source
        if not last.strip():
            return ExtractionFailure(reason="empty", detail="the last block is empty")
        if pieces[-1].module is None and not programs[-1].is_closed:
            return ExtractionFailure(reason="unclosed_block", detail="the last block is cut off before it closes")
        return last
    if blocks:
        return ExtractionFailure(reason="no_code", detail=f"only blocks tagged {sorted({b.info for b in blocks})}")
    wanted = "calls a function" if reads_input else f"defines {', '.join(sorted(asked)) or 'a function'}"
    detail = f"the response has neither a fenced block nor code without a fence that {wanted}"
    return ExtractionFailure(reason="no_code", detail=detail)


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ITEM = re.compile(r"^\s*(?:[-*]|\d{1,3}[.)])\s+(?=`?assert\b)`?|`$")
_READS_INPUT = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\(0")


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """The source of a block or of a run of lines, with its syntax tree."""

    source: str
    module: ast.Module | None
    """The syntax tree; None where the source does not parse."""

    @cached_property
    def defined(self) -> set[str]:
        return set() if self.module is None else defined_names(self.module)

    def fits(self, asked: set[str], reads_input: bool) -> bool:
        """True if the piece parses and defines the names in ``asked``."""
        if self.module is None:
            return False
        if reads_input:
            return any(isinstance(node, ast.Call) for node in ast.walk(self.module))
        # Most names are functions and classes at top level, which are found without a walk through all statements.
        plain = {node.name for node in self.module.body if isinstance(node, _DEFINITIONS)}
        if not asked:
            return bool(plain)
        return asked <= plain or asked <= self.defined


def _piece(text: str, asked: set[str], reads_input: bool, max_parsed: int) -> _Piece:
    module = _parse(text)
    if module is None and len(text) <= MAX_PARSED_CHARS and (run := _longest_run(text, asked, reads_input, max_parsed)):
        return run
    return _Piece(source=text, module=module)


def _with_what_it_reads(pieces: Sequence[_Piece]) -> str:
    """The last piece, after the earlier pieces whose names it needs, directly or through another piece."""
    *before, last = pieces
    kept = [last.source]
    if before and last.module is not None:
        missing = missing_names(last.module)
        for piece in reversed(before):
            if piece.module is None:
                continue
            given = piece.defined | imported_names(piece.module)
            if missing & given:
                kept.append(piece.source)
                missing = (missing | missing_names(piece.module)) - given
    return "\n\n".join(reversed(kept))


def _longest_run(text: str, asked: set[str], reads_input: bool, max_parsed: int) -> _Piece | None:
    """The longest run of whole lines that parses and defines the names. Of equally long runs, the last one counts.

    A run begins at a line that may begin a statement. A run ends before the statement that the parser refuses, so it
    never ends inside a function. Only the last ``MAX_PARSED_CHARS`` of the text are searched.
    """
    lines = text[-MAX_PARSED_CHARS:].split("\n")
    best: _Piece | None = None
    num_parsed = longest = reached = 0
    for start, line in enumerate(lines):
        if start < reached or not _BEGINS_CODE.match(line):
            continue
        end = len(lines)
        while end > start and num_parsed < max_parsed:
            source = "\n".join(lines[start:end])
            num_parsed += len(source) + 500
            try:
                piece = _Piece(source=source, module=parse_program(source))
            except SyntaxError as error:
                # Go back to the refused line, and then to the beginning of its statement.
                end = min(end - 1, start + max(0, (error.lineno or 1) - 1))
                while end > start and not _BEGINS_LINE.match(lines[end]):
                    end -= 1
                continue
            except PARSE_ERRORS:
                break
            reached = end
            if end - start >= longest and piece.fits(asked, reads_input):
                best = _Piece(source=source.rstrip("\n"), module=piece.module)
                longest = end - start
            break
    return best


def asked_names(entry_points: Collection[str], reference: str, tests: Iterable[str] = ()) -> tuple[str, ...]:
    """Names that a program must define: the entry points or, without these, the reference's names that the tests call.

    If the tests call none of the reference's names, and the reference defines only one name, this name is the result.
    If the reference defines several names, the result is empty, because other programs may not need all of them.
    """
    if entry_points:
        return tuple(entry_points)
    module = _parse(reference)
    defined = set() if module is None else defined_names(module)
    called = {name for test in tests for name in _CALLED.findall(test)}
    if called & defined:
        return tuple(sorted(called & defined))
    return tuple(defined) if len(defined) == 1 else ()


def extract_suite(text: str, *, max_asserts: int = 64) -> tuple[str, ...] | ExtractionFailure:
    """Find the asserts in a Test LLM's response.

    The asserts come from all blocks whose fence names Python or no language. If the response has no such block, the
    asserts come from the whole text.

    In a block that parses, ``assert`` statements and methods such as ``self.assertEqual`` count. These asserts must
    stand at top level, in test functions and methods, or in loops over literal values. In a block that does not parse,
    an assert begins at every line that starts with ``assert``, and ends at the first line that completes it. An
    incomplete assert is returned too, so that it counts against validity.

    Args:
        text: the decoded response.
        max_asserts: maximum number of asserts that are read, at least 1.

    Returns:
        The source texts of the asserts in their order, at least one, or an ``ExtractionFailure``. The function never
        raises because of ``text``.

    Raises:
        ValueError: ``max_asserts`` is below 1.
    """
    if max_asserts < 1:
        raise ValueError(f"max_asserts must be at least 1, got {max_asserts!r}")
    if failure := _unreadable(text):
        return failure
    answer = answer_of(text)
    blocks = [block.text for block in blocks_of(answer) if block.may_be_python and block.text.strip()]
    asserts: list[str] = []
    # All blocks count, because a model may write each assert in its own block, and then show how to run the asserts.
    for source in blocks or [answer]:
        asserts += _asserts_of(source, max_asserts - len(asserts))
    if not asserts:
        return ExtractionFailure(reason="no_asserts", detail="no assert stands at top level or in a test")
    return tuple(asserts)


def _unreadable(text: str) -> ExtractionFailure | None:
    if not text.strip():
        return ExtractionFailure(reason="empty", detail="the response has no visible character")
    if len(text) > MAX_RESPONSE_CHARS:
        return ExtractionFailure(reason="too_long", detail=f"{len(text)} characters, more than {MAX_RESPONSE_CHARS}")
    return None


def _parse(source: str) -> ast.Module | None:
    """The syntax tree, or None if Python's parser refuses the text, or if it is too large."""
    try:
        return parse_program(source)
    except PARSE_ERRORS:
        return None


def _asserts_of(source: str, max_asserts: int) -> list[str]:
    module = _parse(source)
    if module is not None:
        return _written_asserts(module, source, max_asserts)
    # Often only the last assert is cut off, and the text before it parses.
    start = source.rfind("\nassert") + 1
    complete, rest = source[:start], source[start:]
    module = _parse(complete)
    if module is None:
        return _scan_asserts(source, max_asserts)
    asserts = _written_asserts(module, complete, max_asserts)
    return asserts + _scan_asserts(rest, max_asserts - len(asserts))


def _written_asserts(module: ast.Module, source: str, max_asserts: int) -> list[str]:
    # The source is split once here; `ast.get_source_segment` would split it again for every node.
    lines = _LINE.findall(source.encode())
    pairs = islice(asserted(module, only_tests=True), max_asserts)
    return [_assert_text(statement, condition, lines) for statement, condition in pairs]


def _assert_text(statement: ast.stmt, condition: ast.expr, lines: list[bytes]) -> str:
    """The unchanged text of an assert, or a plain assert of ``condition`` if the written condition is a different
    one."""
    is_unchanged = isinstance(statement, ast.Assert) and statement.test is condition
    if not is_unchanged:
        # `compared` raises an error if the condition is no equality. The judge then rejects the unchanged text.
        with contextlib.suppress(*PARSE_ERRORS):
            left, right, _ = compared(condition)
            return f"assert {ast.unparse(left)} == {ast.unparse(right)}"
    return _segment(lines, statement)


def _segment(lines: list[bytes], node: ast.stmt) -> str:
    """The source text of a statement. The offsets in its node count UTF-8 bytes."""
    own = lines[node.lineno - 1 : node.end_lineno]
    # The end is cut off first, because on a single line a cut at the beginning would shift the end.
    own[-1] = own[-1][: node.end_col_offset]
    own[0] = own[0][node.col_offset :]
    return b"".join(own).decode()


def _scan_asserts(source: str, max_asserts: int) -> list[str]:
    """The asserts of a block that does not parse, such as a Markdown list or a block whose last line is cut off."""
    lines = [_ITEM.sub("", line.strip("\r")) for line in source.split("\n")]
    asserts: list[str] = []
    at = 0
    while at < len(lines) and len(asserts) < max_asserts:
        if not _starts_assert(lines[at]):
            at += 1
            continue
        end = _end_of_assert(lines, at)
        asserts.append("\n".join([lines[at].strip(), *lines[at + 1 : end]]))
        at = end
    return asserts


def _starts_assert(line: str) -> bool:
    return line.lstrip().startswith(("assert ", "assert(", "assert\t"))


def _end_of_assert(lines: list[str], start: int) -> int:
    """Index of the line after the assert. If no further lines complete the assert, it has only its first line.

    The search also ends at ``MAX_ASSERT_CHARS``, because each further line needs another parse of all lines so far.
    """
    num_chars = 0
    for end in range(start + 1, min(len(lines), start + MAX_ASSERT_LINES) + 1):
        num_chars += len(lines[end - 1]) + 1
        if end > start + 1 and (_starts_assert(lines[end - 1]) or num_chars > MAX_ASSERT_CHARS):
            break
        if _parse("\n".join([lines[start].strip(), *lines[start + 1 : end]])) is not None:
            return end
    return start + 1
