"""Extraction: from the text of a response to a program, to the asserts of a suite, or to a typed extraction failure.

Nothing here runs or repairs code: the result is a piece of the response, as written.
"""

import ast
import contextlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from .answer_blocks import answer_of, blocks_of
from .sandbox_seam import (
    PARSE_ERRORS,
    asserted,
    compared,
    defined_names,
    imported_names,
    missing_names,
    parse_untrusted,
)

MAX_RESPONSE_CHARS = 200_000
"""Longest response that is read, in characters. It bounds parsing time, and is far above any response budget."""

MAX_ASSERT_LINES = 40
"""Most lines of an assert in a block that does not parse; it keeps the search for its end linear."""

MAX_ASSERT_CHARS = 16_384
"""Longest assert in a block that does not parse."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line as Python's parser counts them, its end included; ``splitlines`` also splits at form feeds."""
_BEGINS_CODE = re.compile(r"(?:async\s+def|def|class|import|from)\b|@|[A-Za-z_][\w.]*\s*(?::[^=]*)?=(?!=)|[a-z_]\w*\(")
"""A line at which a program may begin."""
_BEGINS_LINE = re.compile(r"[^\s)\]}]")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_MAX_PARSED_CHARS = 2_000_000
"""Characters that all searches for a run of lines in one response may parse. Each parse costs 500 more, so that many
short runs are bounded too."""


@dataclass(frozen=True, kw_only=True)
class ExtractionFailure:
    """The reason why a response holds no candidate or no suite."""

    reason: str
    """A name: ``empty``, ``too_long``, ``unclosed_block``, ``no_code`` or ``no_asserts``."""
    detail: str = ""


def extract_candidate(
    text: str,
    *,
    reads_input: bool = False,
    names: Collection[str] = (),
) -> str | ExtractionFailure:
    """Find the program in a Code LLM's response; `README.md` has twelve examples of the rule.

    A block counts if its fence names Python or nothing. Of a block that does not parse, only its longest run of lines
    that parses and defines the names counts. The program is the first of these that exists:

    1. the last block that defines the names, behind earlier blocks with names that it reads and does not define;
    2. all blocks, if they define the names together;
    3. the longest run of lines of the whole response that parses and defines the names;
    4. the last block unchanged, so that the judge says why it does not load.

    Args:
        text: the decoded response.
        reads_input: the program reads standard input. It must call something, and need not define anything.
        names: functions and classes that the program must define; ``Stack.push`` asks for the class. Empty: any
            function or class.

    Returns:
        The program's source, or an ``ExtractionFailure``. The function never raises, whatever the text.
    """
    if failure := _unreadable(text):
        return failure
    answer = answer_of(text)
    blocks = blocks_of(answer)
    asked = {name.partition(".")[0] for name in names}
    programs = [block for block in blocks if block.may_be_python]
    max_parsed = _MAX_PARSED_CHARS // (1 + len(programs))
    pieces = [_piece(block.text, asked, reads_input, max_parsed) for block in programs]
    # From the end, since a draft comes before its correction.
    order = list(reversed(range(len(pieces))))
    if reads_input:  # a block behind the program may show how it is run
        order.sort(key=lambda number: not _READS_INPUT.search(pieces[number].source))
    for number in order:
        if pieces[number].fits(asked, reads_input):
            return _with_what_it_reads(pieces[: number + 1])
    # Some models write each function in a block of its own.
    readable = [piece for piece in pieces if piece.module is not None]
    if asked and asked <= {name for piece in readable for name in piece.defined}:
        return "\n\n".join(piece.source for piece in readable)
    # Small models write no fences, or prose around their code.
    run = _longest_run(answer, asked, reads_input, max_parsed)
    if run is not None:
        return run.source
    if pieces:
        last = pieces[-1].source
        if not last.strip():
            return ExtractionFailure(reason="empty", detail="the last block is empty")
        if pieces[-1].module is None and not programs[-1].is_closed:
            return ExtractionFailure(reason="unclosed_block", detail="the last block never closes, and is cut off")
        return last
    if blocks:
        tags = sorted({block.info for block in blocks})
        return ExtractionFailure(reason="no_code", detail=f"only blocks tagged {tags}")
    wanted = "calls something" if reads_input else f"defines {', '.join(sorted(asked)) or 'a function'}"
    return ExtractionFailure(reason="no_code", detail=f"neither a fenced block nor bare code that {wanted}")


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
        """It parses, and defines the names that are asked for."""
        if self.module is None:
            return False
        if reads_input:
            return any(isinstance(node, ast.Call) for node in ast.walk(self.module))
        # Nearly always the names are plain definitions; these are found without a walk through all statements.
        plain = {node.name for node in self.module.body if isinstance(node, _DEFINITIONS)}
        return (asked <= plain or asked <= self.defined) if asked else bool(plain)


def _piece(text: str, asked: set[str], reads_input: bool, max_parsed: int) -> _Piece:
    module = _parse(text)
    if module is None and (run := _longest_run(text, asked, reads_input, max_parsed)):
        return run
    return _Piece(source=text, module=module)


def _with_what_it_reads(pieces: Sequence[_Piece]) -> str:
    """The last piece, behind the earlier ones that define names which it or a piece taken before reads."""
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
    """The longest run of whole lines that parses and defines the names, the last of equally long ones.

    A run begins where a statement may begin. It ends before the statement that the parser refuses, so it never holds
    half a function.
    """
    lines = text.split("\n")
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
                piece = _Piece(source=source, module=parse_untrusted(source))
            except SyntaxError as error:
                # Back to the refused line, and from there to the beginning of its statement.
                end = min(end - 1, start + max(0, (error.lineno or 1) - 1))
                while end > start and not _BEGINS_LINE.match(lines[end]):
                    end -= 1
                continue
            except PARSE_ERRORS:
                break
            reached = end
            if end - start >= longest and piece.fits(asked, reads_input):
                best, longest = _Piece(source=source.rstrip("\n"), module=piece.module), end - start
            break
    return best


def asked_names(entry_points: Collection[str], reference: str, tests: Iterable[str] = ()) -> tuple[str, ...]:
    """Names that a program must define: the entry points, or else the reference's names that the tests call.

    Without calls it is the reference's only name. Where the reference has several, the result is empty: some may be
    helpers, which a program need not have.
    """
    if entry_points:
        return tuple(entry_points)
    module = _parse(reference)
    defined = set() if module is None else defined_names(module)
    called = {name for test in tests for name in _CALLED.findall(test)} & defined
    return tuple(sorted(called or (defined if len(defined) == 1 else ())))


def extract_suite(text: str, *, max_asserts: int = 64) -> tuple[str, ...] | ExtractionFailure:
    """Find the asserts in a Test LLM's response.

    The asserts come from all blocks whose fence names Python or nothing, or from the whole text without such a block.

    In a block that parses, they are the ``assert`` statements and ``self.assertEqual`` and its like, at top level, in
    test functions and methods, and in loops over literal values. In other blocks, every line that starts with
    ``assert`` begins one, which goes on to the first line that completes it. An assert that never completes is returned
    too, so that it counts against validity.

    Args:
        text: the decoded response.
        max_asserts: most asserts that are read, at least 1.

    Returns:
        The source text of each assert in written order, at least one, or an ``ExtractionFailure``. No text makes the
        function raise.

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
    # All blocks, since a model may write each assert in one, and end with a block that shows how to run them.
    for source in blocks or [answer]:
        asserts += _asserts_of(source, max_asserts - len(asserts))
    if not asserts:
        return ExtractionFailure(reason="no_asserts", detail="there is no assert at top level or in a test")
    return tuple(asserts)


def _unreadable(text: str) -> ExtractionFailure | None:
    if not text.strip():
        return ExtractionFailure(reason="empty", detail="the response has no visible character")
    if len(text) > MAX_RESPONSE_CHARS:
        return ExtractionFailure(reason="too_long", detail=f"{len(text)} characters, more than {MAX_RESPONSE_CHARS}")
    return None


def _parse(source: str) -> ast.Module | None:
    """The parsed module, or None where Python's parser refuses the text."""
    try:
        return parse_untrusted(source)
    except PARSE_ERRORS:
        return None


def _asserts_of(source: str, max_asserts: int) -> list[str]:
    module = _parse(source)
    if module is not None:
        return _written_asserts(module, source, max_asserts)
    # Often only the last assert is cut off, and all before it parses.
    start = source.rfind("\nassert") + 1
    module = _parse(source[:start])
    asserts = [] if module is None else _written_asserts(module, source[:start], max_asserts)
    return asserts + _scan_asserts(source if module is None else source[start:], max_asserts - len(asserts))


def _written_asserts(module: ast.Module, source: str, max_asserts: int) -> list[str]:
    # Split once, since ast.get_source_segment splits the whole source again for every node.
    lines = _LINE.findall(source.encode())
    pairs = islice(asserted(module, only_tests=True), max_asserts)
    return [_assert_text(statement, condition, lines) for statement, condition in pairs]


def _assert_text(statement: ast.stmt, condition: ast.expr, lines: list[bytes]) -> str:
    """The assert as written. If ``asserted`` replaced names in it, a plain assert of the new condition."""
    if not isinstance(statement, ast.Assert) or statement.test is not condition:
        with contextlib.suppress(*PARSE_ERRORS):  # no equality; the judge will reject the written text
            left, right, _ = compared(condition)
            return f"assert {ast.unparse(left)} == {ast.unparse(right)}"
    return _segment(lines, statement)


def _segment(lines: list[bytes], node: ast.stmt | ast.expr) -> str:
    """The source text of a node; its offsets count UTF-8 bytes."""
    own = lines[node.lineno - 1 : node.end_lineno]
    # The end is cut first: on a single line, cutting the start would shift it.
    own[-1] = own[-1][: node.end_col_offset]
    own[0] = own[0][node.col_offset :]
    return b"".join(own).decode()


def _scan_asserts(source: str, max_asserts: int) -> list[str]:
    """The asserts of a block that does not parse, such as one with a cut-off last line or a list in Markdown."""
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
    """Index after the assert's last line, which is its first line if no number of lines completes it.

    The search also ends at ``MAX_ASSERT_CHARS``, since each further line costs another parse of all lines so far.
    """
    num_chars = 0
    for end in range(start + 1, min(len(lines), start + MAX_ASSERT_LINES) + 1):
        num_chars += len(lines[end - 1]) + 1
        if end > start + 1 and (_starts_assert(lines[end - 1]) or num_chars > MAX_ASSERT_CHARS):
            break
        if _parse("\n".join([lines[start].strip(), *lines[start + 1 : end]])) is not None:
            return end
    return start + 1
