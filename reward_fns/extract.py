"""Response text -> a candidate program, the texts of a suite's asserts, or a typed extraction failure.

Nothing here runs or repairs code. What is taken is a piece of the response, as written.
"""

import ast
import re
from dataclasses import dataclass

from .sandbox_seam import parse_untrusted

MAX_RESPONSE_CHARS = 200_000
"""Longest response that is read, in characters. Far above any response budget; it bounds parsing time."""

MAX_ASSERT_LINES = 40
"""Most lines one assert may span in a block that does not parse; it keeps the search for its end linear."""

MAX_ASSERT_CHARS = 16_384
"""Longest assert that is put together from lines of such a block; the judge's default refuses longer ones."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line as Python's parser counts them, its end included; ``splitlines`` also splits at form feeds."""
_PYTHON_TAGS = frozenset({"python", "py", "python3"})


@dataclass(frozen=True, kw_only=True)
class ExtractionFailure:
    """Why a response holds no candidate or no suite."""

    reason: str
    """One of ``empty``, ``too_long``, ``unclosed_block``, ``no_code``, ``no_asserts``."""
    detail: str = ""


def extract_candidate(text: str, *, reads_input: bool = False) -> str | ExtractionFailure:
    """Find the program in a Code LLM's response.

    The last complete fenced block tagged as Python, else the last complete untagged one, else the whole
    text when it has no fence, parses, and defines a function or class at top level (small models write no
    fences). A fenced block is returned whether or not it parses: the judge says why it does not load.

    Args:
        text: the decoded response.
        reads_input: a program that reads standard input is asked for, which need not define anything: without a fence
            any text that parses and calls something is one.

    Returns:
        The program's source, or an ``ExtractionFailure``. Never raises, whatever the text.
    """
    block = _find_block(text)
    if block is not None:
        return block
    module = _parse(text)
    parts = () if module is None else ast.walk(module) if reads_input else module.body
    wanted = ast.Call if reads_input else ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    if not any(isinstance(node, wanted) for node in parts):
        detail = (
            f"neither a fenced block nor bare code that {'calls something' if reads_input else 'defines a function'}"
        )
        return ExtractionFailure(reason="no_code", detail=detail)
    return text


def extract_suite(text: str, *, max_asserts: int = 64) -> tuple[str, ...] | ExtractionFailure:
    """Find the asserts in a Test LLM's response.

    The block is found as in :func:`extract_candidate`, with the whole text in its place when there is no
    fence. A block that never closes counts: its asserts are whole, but for the last, whereas half a program is none.
    When it parses, its top-level ``assert`` statements are taken; otherwise every line that starts
    with ``assert`` begins one, and it goes on to the first line that completes it. An assert that never
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
    block = _find_block(text, unclosed_counts=True)
    if isinstance(block, ExtractionFailure):
        return block
    source = text if block is None else block
    module = _parse(source)
    asserts = _scan_asserts(source, max_asserts) if module is None else _top_level_asserts(module, source, max_asserts)
    if not asserts:
        return ExtractionFailure(reason="no_asserts", detail="no line of the block starts with 'assert'")
    return tuple(asserts)


def _find_block(text: str, *, unclosed_counts: bool = False) -> str | ExtractionFailure | None:
    """The block to read; None when the text has no fence at all."""
    if not text.strip():
        return ExtractionFailure(reason="empty", detail="the response has no visible character")
    if len(text) > MAX_RESPONSE_CHARS:
        return ExtractionFailure(reason="too_long", detail=f"{len(text)} characters, more than {MAX_RESPONSE_CHARS}")
    blocks, unclosed = _split_blocks(text)
    # The last one: models that think aloud write drafts before it.
    chosen = [block for tag, block in blocks if tag in _PYTHON_TAGS] or [block for tag, block in blocks if not tag]
    if unclosed is not None and unclosed_counts:
        chosen = chosen or [unclosed]
    if chosen:
        source = chosen[-1]
        return source if source.strip() else ExtractionFailure(reason="empty", detail="the last block is empty")
    if unclosed is not None:
        return ExtractionFailure(reason="unclosed_block", detail="a fence opens and never closes")
    if blocks:
        return ExtractionFailure(reason="no_code", detail=f"only blocks tagged {sorted({tag for tag, _ in blocks})}")
    return None


def _split_blocks(text: str) -> tuple[list[tuple[str, str]], str | None]:
    """Tag and text of all complete fenced blocks in order, and the text of one that is left open at the end."""
    blocks = []
    tag = None
    lines: list[str] = []
    for line in text.split("\n"):
        mark = line.strip()
        if tag is None:
            if mark.startswith("```"):
                tag, lines = mark[3:].strip().lower(), []
        elif mark == "```":
            blocks.append((tag, "\n".join(lines)))
            tag = None
        else:
            lines.append(line)
    return blocks, None if tag is None else "\n".join(lines)


def _parse(source: str) -> ast.Module | None:
    """The parsed module, or None. The parser refuses text in four ways; none of them is our error."""
    try:
        return parse_untrusted(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _top_level_asserts(module: ast.Module, source: str, max_asserts: int) -> list[str]:
    # Split once: ast.get_source_segment splits the whole source again for every node.
    lines = _LINE.findall(source.encode())
    nodes = [node for node in module.body if isinstance(node, ast.Assert)][:max_asserts]
    return [_segment(lines, node) for node in nodes]


def _segment(lines: list[bytes], node: ast.stmt) -> str:
    """The source text of a node; its offsets count UTF-8 bytes."""
    own = lines[node.lineno - 1 : node.end_lineno]
    own[-1] = own[-1][: node.end_col_offset]  # first, since it may be the line that the start is cut off as well
    own[0] = own[0][node.col_offset :]
    return b"".join(own).decode()


def _scan_asserts(source: str, max_asserts: int) -> list[str]:
    """Asserts of a block that does not parse as a whole, for one a cut-off last line."""
    lines = [line.strip("\r") for line in source.split("\n")]
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
