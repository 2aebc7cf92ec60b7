"""Fenced blocks and answers, each rule by one text."""

import pytest

from reward_fns.answer_blocks import Block, answer_of, blocks_of

TICKS, TILDES = "```", "~~~"


def read(*lines: str) -> list[tuple[str, str, bool]]:
    """Blocks of a text: the words behind the opening mark, the text, and whether the block was closed."""
    return [(block.info, block.text, block.is_closed) for block in blocks_of("\n".join(lines))]


@pytest.mark.parametrize(
    ("lines", "blocks"),
    [
        (["a", TICKS, "b", TICKS, "c", f"{TICKS}python", "d", TICKS], [("", "b", True), ("python", "d", True)]),
        ([TILDES, "a", TICKS, "b", TILDES], [("", f"a\n{TICKS}\nb", True)]),
        ([TICKS, "a", TILDES, "b", TICKS], [("", f"a\n{TILDES}\nb", True)]),
        (["````", "a", TICKS, "b", "````"], [("", f"a\n{TICKS}\nb", True)]),
        ([TICKS, "a", "````", "b"], [("", "a", True)]),  # a longer mark closes too
        ([TICKS, "a"], [("", "a", False)]),
        ([f"{TICKS}not a fence` of code", "a"], []),
        ([f"{TILDES}py `x`", "a", TILDES], [("py `x`", "a", True)]),
        ([f"{TILDES}~ `x`", "a", "~~~~"], [("`x`", "a", True)]),
        ([TICKS, f"a{TICKS}", "b"], [("", "a", True)]),  # closed behind code
        ([TICKS, f"a  {TICKS}  ", "b"], [("", "a", True)]),
        ([TICKS, "a ``", "b ~", TICKS], [("", "a ``\nb ~", True)]),
        ([f"Here it is: {TICKS}python", "a", TICKS], [("python", "a", True)]),
        # The first block was never closed, and another begins.
        ([f"{TICKS}python", "a", f"{TICKS}python", "b", TICKS], [("python", "a", False), ("python", "b", True)]),
        ([f"{TICKS}", "a", "````Python 3", "b", "````"], [("", "a", False), ("Python 3", "b", True)]),
        # The mark closes the block although text follows it.
        ([TICKS, "a", f"{TICKS} That was it.", "b", TICKS, "c"], [("", "a", True), ("", "c", False)]),
        (["````", "a", f"{TICKS}python", "b", "````"], [("", f"a\n{TICKS}python\nb", True)]),
        ([TILDES, "a", f"{TICKS}python", "b", TILDES], [("", f"a\n{TICKS}python\nb", True)]),
        # The indent of the opening mark is taken from every line, as far as the line has it.
        ([f"1. {TICKS}", "   a", "     b", " c", "", f"   {TICKS}"], [("", "a\n  b\nc\n", True)]),
        ([TICKS, "  a", TICKS], [("", "  a", True)]),
        ([f"  {TICKS}", "  a", f"  {TICKS}python", "   b", TICKS], [("", "a", False), ("python", " b", True)]),
        ([f"\t{TICKS}", "     a", f"\t{TICKS}python", "     b"], [("", " a", False), ("python", " b", False)]),
    ],
)
def test_fences(lines, blocks):
    assert read(*lines) == blocks


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (['"""', TICKS, '"""', "a", TICKS, "b"], f'"""\n{TICKS}\n"""\na'),
        (["'''", TICKS, "'''", "a", TICKS, "b"], f"'''\n{TICKS}\n'''\na"),
        (["'''", f'""" {TICKS}', "'''", TICKS, "b"], f"'''\n\"\"\" {TICKS}\n'''"),
        (['x = """', "b", f'{TICKS} """ + """', TICKS, '"""', TICKS], f'x = """\nb\n{TICKS} """ + """\n{TICKS}\n"""'),
        (['x = """a""" + """b"""', TICKS, "b"], 'x = """a""" + """b"""'),
        (['x = """', TICKS, 'abc"""', TICKS, "b"], f'x = """\n{TICKS}\nabc"""'),
        (['x = """', 'b""""""c', TICKS, '"""', TICKS], f'x = """\nb""""""c\n{TICKS}\n"""'),
        (['""""', TICKS, '"""', TICKS], f'""""\n{TICKS}\n"""'),
        (["x = \"'''\"", TICKS, "b"], "x = \"'''\""),
        (["x = '\\'\"\"\"'", TICKS, "b"], "x = '\\'\"\"\"'"),
        (["x = 1  # '''", TICKS, "b"], "x = 1  # '''"),
        (['x = \'open """', TICKS, "b"], 'x = \'open """'),
    ],
)
def test_a_mark_in_a_triple_quoted_string_closes_nothing(lines, text):
    assert read(TICKS, *lines)[0] == ("", text, True)


def test_quotes_that_are_never_closed_were_none():
    assert read(TICKS, "odd '''", TICKS, "text", TICKS, "b") == [("", "odd '''", True), ("", "b", False)]


def test_a_block_is_python_by_its_tag_or_without_one():
    tags = ["", "python", "Python 3", "{python}", "py", "python3.11", "text", "pythonic", "c"]
    assert [Block(info=tag, text="", is_closed=True).may_be_python for tag in tags] == [True] * 6 + [False] * 3


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>b</think>c", "c"),
        ("a</thinking>b", "b"),
        ("b<Reasoning>a", "b"),
        ("a<answer>b<answer>c</answer>d", "c"),
        ("a\n [BEGIN] \nb\n[DONE]\nc", "\nb\n"),
        ("a<|im_end|>\nb", "a"),
        ("a = '</s>' + b", "a = '</s>' + b"),
        ("a [DONE]", "a [DONE]"),
    ],
)
def test_the_answer_is_what_neither_thinking_nor_the_end_of_a_turn_encloses(text, answer):
    assert answer_of(text) == answer
