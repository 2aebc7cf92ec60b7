"""Laws of the checkers, and of the gate for programs that read standard input."""

import pytest
from hypothesis import example, given, strategies as st

from sandbox import Kind, SandboxConfigError
from sandbox.text import CHECKERS, Case, Interface, output_checker, parse_assert, parse_call
from sandbox.values.encoding import encode

WORDS = st.sampled_from(["1", "1.0", "-0", "2e3", "nan", "inf", "a", "---", "é", "1_0"])
SPACES = st.text(" \t\n", min_size=1, max_size=3)
TEXTS = st.lists(st.tuples(WORDS, SPACES)).map(lambda parts: "".join(word + space for word, space in parts)) | st.text()
INPUTS = Interface.of("", kind=Kind.STDIN)


def same(checker, one, other):
    return output_checker(checker)(encode(one), encode(other))


@given(TEXTS, st.sampled_from([*CHECKERS, "floats:0.5"]))
def test_every_text_is_right_beside_itself(text, checker):
    assert same(checker, text, text) or (checker == "accepted" and "---" in text)  # the text then lists several outputs


@given(TEXTS, TEXTS)
def test_each_checker_takes_what_the_one_before_it_takes(one, other):
    found = [same(name, one, other) for name in ("exact", "tokens", "floats", "floats:1e9")]
    assert found == sorted(found)
    if "---" not in one:
        assert same("accepted", one, other) == same("tokens", one, other)


@given(TEXTS, TEXTS)
def test_exact_and_tokens_do_not_depend_on_which_side_is_the_reference(one, other):
    for name in ("exact", "tokens"):
        assert same(name, one, other) == same(name, other, one)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.floats(0, 1e-7))
def test_floats_within_the_tolerance_are_the_same(number, share):
    assert same("floats", repr(number), repr(number + share * max(1.0, abs(number))))


@given(st.text(), st.text())
def test_any_two_texts_make_a_case_whose_call_reads_back(text, printed):
    case = parse_assert(f"assert run({text!r}) == {printed!r}", INPUTS)
    assert isinstance(case, Case)
    again = parse_call(case.call.text, INPUTS)
    assert (again.call, again.key) == (case.call, case.key)
    assert case.call.text == f"run({text!r})"


@given(st.text(max_size=12))
@example("float:x")
def test_a_checker_is_known_or_refused(name):
    if name.partition(":")[0] not in CHECKERS:
        with pytest.raises(SandboxConfigError, match="unknown checker"):
            output_checker(name)


@pytest.mark.parametrize("name", ["floats:", "floats:0", "floats:1e-9", "exact"])
def test_names_with_and_without_a_tolerance(name):
    assert output_checker(name)(encode("1"), encode("1"))
