"""The static gate never raises, and says the same of a call text as of the assert it came from."""

from hypothesis import given
from hypothesis import strategies as st

from sandbox.case_parser import parse_assert, parse_call, parse_suite
from sandbox.cases import Case, Rejection
from sandbox.interface import Interface

REFERENCE = """
def f(a, b=2, *rest, c=None, **more): pass
class C:
    def __init__(self, x=0): self.x = x
    def m(self): pass
"""
INTERFACE = Interface.of(REFERENCE)
fragments = st.sampled_from(
    [
        "assert",
        "f(",
        "C(",
        ")",
        "==",
        "!=",
        ",",
        "1",
        "-1",
        "0x1",
        "1.0",
        "True",
        "'a'",
        "[",
        "]",
        "{",
        "}",
        ":",
        ".m()",
        ".x",
        "[0]",
        "**",
        "*",
        "lambda",
        "await",
        "asyncio.run(",
        ":=",
        "if",
        "else",
        "for",
        "x",
        "in",
        "float('inf')",
        "set(",
        "range(10**9)",
        "deque(",
        "\\",
        "\n",
        "#",
        "\t",
        "\x00",
        "�",
        "é",
        ";",
        "=",
        "...",
        "None",
        "1e999",
        "1j",
        "b'x'",
        "f'{1}'",
    ]
)
asserts = st.lists(fragments, max_size=14).map(" ".join)
literals = st.recursive(
    st.one_of(
        st.integers(), st.booleans(), st.none(), st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=5,
)


@given(st.one_of(st.text(), asserts, asserts.map("assert f(".__add__)))
def test_any_text_is_a_case_or_a_typed_rejection(text):
    assert isinstance(parse_assert(text, INTERFACE), Case | Rejection)
    assert isinstance(parse_call(text, INTERFACE), Case | Rejection)


@given(st.one_of(st.text(), asserts))
def test_any_text_is_an_interface(text):
    assert isinstance(Interface.of(text), Interface)


@given(st.lists(literals, max_size=3), literals)
def test_a_literal_assert_is_accepted_and_its_call_text_is_a_fixed_point(arguments, claim):
    text = f"assert f({', '.join(map(repr, arguments))}) == {claim!r}"
    case = parse_assert(text, INTERFACE)
    assert isinstance(case, Case), case
    replayed = parse_call(case.call.text, INTERFACE)
    assert isinstance(replayed, Case)
    assert (replayed.call, replayed.key) == (case.call, case.key)


@given(st.lists(literals, min_size=1, max_size=2))
def test_positional_and_named_arguments_are_one_call(arguments):
    named = [f"{name}={value!r}" for name, value in zip("ab", arguments, strict=False)]
    texts = [f"assert f({', '.join(map(repr, arguments))}) == 1", f"assert f({', '.join(named)}) == 1"]
    suite = parse_suite(texts, INTERFACE)
    assert (len(suite.cases), len(suite.rejections)) == (1, 1)


@given(st.lists(st.integers(0, 3), max_size=8))
def test_a_suite_keeps_the_first_assert_of_each_call_in_order(numbers):
    suite = parse_suite([f"assert f({number}) == 0" for number in numbers], INTERFACE)
    assert [case.call.text for case in suite.cases] == [f"f({number})" for number in dict.fromkeys(numbers)]
    assert len(suite.rejections) == len(numbers) - len(suite.cases)
