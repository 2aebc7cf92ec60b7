"""The answer in a response, and the fenced blocks in the answer.

A response may begin with reasoning, and end with marks for the end of a turn. The reasoning and these marks do not
belong to the answer. Fences follow CommonMark 0.31, section 4.5. Three deviations that models often write are accepted
too: a fence at the end of a line of text, a closing mark behind code, and a second opening mark while the first block
is still open.
"""

import re
from dataclasses import dataclass

_REASONING = r"(?:think|thinking|thought|reasoning)"
_REASONING_BEGINS = re.compile(rf"<{_REASONING}>", re.IGNORECASE)
_REASONING_ENDS = re.compile(rf"</{_REASONING}>", re.IGNORECASE)
_BEGINS = re.compile(r"<answer>|^[ \t]*\[BEGIN\][ \t]*$", re.IGNORECASE | re.MULTILINE)
"""Marks before an answer. ``[BEGIN]`` and ``[DONE]`` are the marks of MBPP's prompt."""
_ENDS = re.compile(
    r"</answer>|^[ \t]*\[DONE\][ \t]*$"
    r"|(?:<\|(?:im_end|im_start|endoftext|eot_id|end|eos|eom_id|end_of_text|end_of_turn)\|>|<end_of_turn>|<eos>|</s>"
    r"|<｜end▁of▁sentence｜>)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks behind an answer. Marks for the end of a turn count only at the end of a line, because a program may have them
in a string."""

_OPENS = re.compile(r"(?P<before>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>.*)")
_OPENS_LATE = re.compile(r"(?P<before>)[^`]*[^`\s][ \t]*(?P<mark>`{3,})[ \t]*(?P<info>[\w{}.+#-]*(?:[ \t]\d+)?)[ \t]*")
"""Matches a fence at the end of a line of text."""
_STRINGS = re.compile(
    r"#[^\n]*|(?P<quotes>\"\"\"|''')|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|[^#\"']+", re.DOTALL
)
_LANGUAGE = re.compile(r"[{.\s]*([a-z]*)")
_PYTHON = frozenset({"python", "py", "ipython"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The text of one fenced block."""

    info: str
    """The text behind the opening mark, such as ``python``."""
    text: str
    is_closed: bool

    @property
    def may_be_python(self) -> bool:
        """True if the block has no tag, or a tag that names Python."""
        return not self.info or _names_python(self.info)


def _names_python(info: str) -> bool:
    """True if the first word names any Python version, as in ``python3.11``, ``Python 3``, ``{python}``,
    ``python:a.py``."""
    match = _LANGUAGE.match(info.lower())
    return match is not None and match[1] in _PYTHON


def answer_of(text: str) -> str:
    """Return a response without its reasoning, and without the text behind the end of its turn."""
    # The reasoning ends at the last closing mark, because it may mention these marks. The response lacks the
    # opening mark if the prompt ends with this mark.
    if ends := list(_REASONING_ENDS.finditer(text)):
        text = text[ends[-1].end() :]
    elif begins := _REASONING_BEGINS.search(text):
        text = text[: begins.start()]
    if marks := list(_BEGINS.finditer(text)):
        text = text[marks[-1].end() :]
    end = _ENDS.search(text)
    return text[: end.start()] if end else text


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a text, in order. Marks inside triple-quoted strings of a program do not count."""
    blocks, is_string_open = _blocks(text, heeds_strings=True)
    if not is_string_open:
        return blocks
    # The last block ends inside a string, so quotes in prose were probably read as the beginning of a string.
    blocks, _ = _blocks(text, heeds_strings=False)
    return blocks


def _blocks(text: str, *, heeds_strings: bool) -> tuple[list[Block], bool]:
    """The blocks, and whether the last block ends inside a triple-quoted string."""
    blocks: list[Block] = []
    lines: list[str] = []
    opened: re.Match[str] | None = None
    indent, quotes = 0, ""

    def end(*, is_closed: bool) -> None:
        assert opened is not None
        blocks.append(Block(info=opened["info"].strip(), text="\n".join(lines), is_closed=is_closed))
        lines.clear()

    for line in text.split("\n"):
        plain = line.rstrip("\r")
        opens = None
        if "```" in plain or "~~~" in plain:  # the regular expressions are slow, and few lines need them
            opens = _OPENS.fullmatch(plain)
            if opens is None and opened is None:
                opens = _OPENS_LATE.fullmatch(plain)
        if opens and opens["mark"].startswith("`") and "`" in opens["info"]:  # inline code, not a fence
            opens = None
        if opened is None:
            if opens:
                opened, quotes = opens, ""
                indent = len(opens["before"].expandtabs(4))
            continue
        mark = opened["mark"]
        if not quotes and mark[0] in plain:
            # A regular expression would take hours for a long line of blanks, so the end of the line is stripped.
            code = plain.rstrip(" \t").rstrip(mark[0])
            if len(plain.rstrip(" \t")) - len(code) >= len(mark):
                if code.strip():
                    lines.append(_dedented(code.rstrip(" \t"), indent))
                end(is_closed=True)
                opened = None
                continue
            if opens and opens["info"] and opens["mark"].startswith(mark):
                # Either this mark opens another block while the first is still open, or it closes the block and has
                # text behind it.
                begins_another = " " not in opens["info"].strip() or _names_python(opens["info"])
                end(is_closed=not begins_another)
                opened = opens if begins_another else None
                indent = len(opens["before"].expandtabs(4))
                continue
        lines.append(_dedented(line, indent) if indent else line)
        if heeds_strings:
            quotes = _open_quotes(line, quotes)
    if opened is not None:
        end(is_closed=False)
    return blocks, bool(quotes)


def _dedented(line: str, indent: int) -> str:
    """The line without the indent of the block's opening mark. A line that is indented less loses its whole indent."""
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(blanks, indent) :]


def _open_quotes(line: str, quotes: str) -> str:
    """The triple quotes that are open at the end of a line, or ``""``. ``quotes`` are open at the line's beginning."""
    if not quotes and "'''" not in line and '"""' not in line:
        return ""
    position = 0
    while position < len(line):
        if quotes:
            end = line.find(quotes, position)
            if end < 0:
                return quotes
            position, quotes = end + 3, ""
            continue
        match = _STRINGS.match(line, position)
        assert match is not None
        position, quotes = match.end(), match["quotes"] or ""
    return quotes
