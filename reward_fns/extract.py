"""Response text -> a candidate program, the texts of a suite's asserts, or a typed extraction failure.

Nothing here runs or repairs code. What is taken is a piece of the response, as written.
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
"""Longest response that is read, in characters. Far above any response budget; it bounds parsing time."""

MAX_ASSERT_LINES = 40
"""Most lines one assert may span in a block that does not parse; it keeps the search for its end linear."""

MAX_ASSERT_CHARS = 16_384
"""Longest assert that is put together from lines of such a block."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line as Python's parser counts them, its end included; ``splitlines`` also splits at form feeds."""
_BEGINS_CODE = re.compile(r"(?:async\s+def|def|class|import|from)\b|@|[A-Za-z_][\w.]*\s*(?::[^=]*)?=(?!=)|[a-z_]\w*\(")
"""A line at which a program may begin."""
_BEGINS_LINE = re.compile(r"[^\s)\]}]")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_MAX_PARSED_CHARS = 2_000_000
"""Of all tries to find a run of lines, each with 500 more, which bounds their time. A response and its
blocks share them."""


@dataclass(frozen=True, kw_only=True)
class ExtractionFailure:
    """Why a response holds no candidate or no suite."""

    reason: str
    """One of ``empty``, ``too_long``, ``unclosed_block``, ``no_code``, ``no_asserts``."""
    detail: str = ""


def extract_candidate(
    text: str,
    *,
    reads_input: bool = False,
    names: Collection[str] = (),
) -> str | ExtractionFailure:
    """Find the program in a Code LLM's response; `README.md` has twelve examples of the rule.

    The last block that defines what is asked for, fenced as Python or without a tag; where it reads names that it does
    not define, the blocks before it that define them stand before it. Else all blocks, where they define it together;
    else the longest run of lines that parses and defines it, fenced or not; else the last block, as it is: the judge
    says why it does not load. Of a block that does not parse, such a run counts.

    Args:
        text: the decoded response.
        reads_input: a program that reads standard input is asked for, which need not define anything: it calls
            something, and the last block that parses is it.
        names: functions and classes that are asked for; ``Stack.push`` is the class. Empty: any function or class.

    Returns:
        The program's source, or an ``ExtractionFailure``. Never raises, whatever the text.
    """
    if failure := _unreadable(text):
        return failure
    answer = answer_of(text)
    blocks = blocks_of(answer)
    asked = {name.partition(".")[0] for name in names}
    programs = [block for block in blocks if block.may_be_python]
    most = _MAX_PARSED_CHARS // (1 + len(programs))
    pieces = [_piece(block.text, asked, reads_input, most) for block in programs]
    # From the end: drafts come first, and a block that corrects another one behind it.
    order = list(reversed(range(len(pieces))))
    if reads_input:  # a block behind the program may show how it is run
        order.sort(key=lambda place: not _READS_INPUT.search(pieces[place].source))
    for place in order:
        if pieces[place].fits(asked, reads_input):
            return _with_what_it_reads(pieces[: place + 1])
    # One function a block, all of which are asked for.
    readable = [piece for piece in pieces if piece.module is not None]
    if asked and asked <= {name for piece in readable for name in piece.defined}:
        return "\n\n".join(piece.source for piece in readable)
    # Small models write no fences, or prose around their code.
    run = _longest_run(answer, asked, reads_input, most)
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
        return ExtractionFailure(reason="no_code", detail=f"only blocks tagged {sorted({one.info for one in blocks})}")
    wanted = "calls something" if reads_input else f"defines {', '.join(sorted(asked)) or 'a function'}"
    return ExtractionFailure(reason="no_code", detail=f"neither a fenced block nor bare code that {wanted}")


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ITEM = re.compile(r"^\s*(?:[-*]|\d{1,3}[.)])\s+(?=`?assert\b)`?|`$")
_READS_INPUT = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\(0")


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """Source of a block or of a run of lines, and its tree where it parses."""

    source: str
    module: ast.Module | None

    @cached_property
    def defined(self) -> set[str]:
        return set() if self.module is None else defined_names(self.module)

    def fits(self, asked: set[str], reads_input: bool) -> bool:
        """It parses, and defines what is asked for."""
        if self.module is None:
            return False
        if asked and not reads_input:
            # Nearly always a plain definition, which is found without a look at all other statements.
            plain = {node.name for node in self.module.body if isinstance(node, _DEFINITIONS)}
            return asked <= plain or asked <= self.defined
        wanted = ast.Call if reads_input else _DEFINITIONS
        return any(isinstance(node, wanted) for node in (ast.walk(self.module) if reads_input else self.module.body))


def _piece(
    text: str,
    asked: set[str],
    reads_input: bool,
    most_parsed: int,
) -> _Piece:
    module = _parse(text)
    if module is None:
        run = _longest_run(text, asked, reads_input, most_parsed)
        if run:
            return run
    return _Piece(source=text, module=module)


def _with_what_it_reads(pieces: Sequence[_Piece]) -> str:
    """The last one, behind those before it that define names which it, or one of these, reads."""
    *before, last = pieces
    kept = [last.source]
    if before and last.module is not None:
        missing = missing_names(last.module)
        for piece in reversed(before):
            if piece.module is not None and missing & (piece.defined | imported_names(piece.module)):
                kept.append(piece.source)
                missing = (missing | missing_names(piece.module)) - piece.defined - imported_names(piece.module)
    return "\n\n".join(reversed(kept))


def _longest_run(
    text: str,
    asked: set[str],
    reads_input: bool,
    most_parsed: int,
) -> _Piece | None:
    """The longest run of whole lines that parses and defines what is asked for, the last of equally long ones.

    A run begins where a statement may, and ends before the statement that the parser refuses: no half of a function
    is taken for one.
    """
    lines = text.split("\n")
    best: _Piece | None = None
    num_parsed = longest = reached = 0
    for start, line in enumerate(lines):
        if start < reached or not _BEGINS_CODE.match(line):
            continue
        end = len(lines)
        while end > start and num_parsed < most_parsed:
            source = "\n".join(lines[start:end])
            num_parsed += len(source) + 500
            try:
                piece = _Piece(source=source, module=parse_untrusted(source))
            except SyntaxError as error:
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
    """What a question asks a program to define: its entry points, else what of the reference its tests call.

    Empty where nothing says it: the reference has helpers, which a program need not have.
    """
    if entry_points:
        return tuple(entry_points)
    module = _parse(reference)
    defined = set() if module is None else defined_names(module)
    called = {name for test in tests for name in _CALLED.findall(test)} & defined
    return tuple(sorted(called or (defined if len(defined) == 1 else ())))


def extract_suite(text: str, *, max_asserts: int = 64) -> tuple[str, ...] | ExtractionFailure:
    """Find the asserts in a Test LLM's response.

    All blocks that are fenced as Python or without a tag are read, or the whole text when there is none.
    When a block parses, its ``assert`` statements are taken, at top level, in test functions and methods, and in loops
    over values that are written there; ``self.assertEqual`` and its like are some too. Otherwise every line that
    starts with ``assert`` begins one, and it goes on to the first line that completes it. An assert that never
    completes is still returned, so that it counts against validity. Other lines are passed over.

    Args:
        text: the decoded response.
        max_asserts: further asserts are not read, at least 1.

    Returns:
        The source text of each assert, in written order, at least one, or an ``ExtractionFailure``. Never raises on
        any text.

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
    # All of them: a model may write one assert a block, and end with a block that shows how to run them.
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
    """The parsed module, or None. None of the ways in which the parser refuses a text is our error."""
    try:
        return parse_untrusted(source)
    except PARSE_ERRORS:
        return None


def _asserts_of(source: str, max_asserts: int) -> list[str]:
    module = _parse(source)
    if module is not None:
        return _written_asserts(module, source, max_asserts)
    # Often the last line alone is cut off.
    start = source.rfind("\nassert") + 1
    module = _parse(source[:start])
    asserts = [] if module is None else _written_asserts(module, source[:start], max_asserts)
    return asserts + _scan_asserts(source if module is None else source[start:], max_asserts - len(asserts))


def _written_asserts(module: ast.Module, source: str, max_asserts: int) -> list[str]:
    # Split once: ast.get_source_segment splits the whole source again for every node.
    lines = _LINE.findall(source.encode())
    return [_assert_text(*one, lines) for one in islice(asserted(module, only_tests=True), max_asserts)]


def _assert_text(statement: ast.stmt, test: ast.expr, lines: list[bytes]) -> str:
    """As it is written where that is an assert without names, else in the plainest form that says the same."""
    if not isinstance(statement, ast.Assert) or statement.test is not test:
        with contextlib.suppress(*PARSE_ERRORS):  # no equality: the judge says so
            left, right, _ = compared(test)
            return f"assert {ast.unparse(left)} == {ast.unparse(right)}"
    return _segment(lines, statement)


def _segment(lines: list[bytes], node: ast.stmt | ast.expr) -> str:
    """The source text of a node; its offsets count UTF-8 bytes."""
    own = lines[node.lineno - 1 : node.end_lineno]
    own[-1] = own[-1][: node.end_col_offset]  # first, since it may be the line that the start is cut off as well
    own[0] = own[0][node.col_offset :]
    return b"".join(own).decode()


def _scan_asserts(source: str, max_asserts: int) -> list[str]:
    """Asserts of a block that does not parse as a whole, for one a cut-off last line, or of a list in Markdown."""
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
    """Index after the assert's last line; one line only when no number of lines completes it.

    The search also ends at ``MAX_ASSERT_CHARS``: each further line costs another parse of all lines so far.
    """
    num_chars = 0
    for end in range(start + 1, min(len(lines), start + MAX_ASSERT_LINES) + 1):
        num_chars += len(lines[end - 1]) + 1
        if end > start + 1 and (_starts_assert(lines[end - 1]) or num_chars > MAX_ASSERT_CHARS):
            break
        if _parse("\n".join([lines[start].strip(), *lines[start + 1 : end]])) is not None:
            return end
    return start + 1
