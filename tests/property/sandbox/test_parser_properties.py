"""Laws of the static gate: it never raises, and all spellings of a call give the same case."""

from hypothesis import given, strategies as st

from sandbox.cases.case import Case, Rejection
from sandbox.cases.parser import parse_assert, parse_call, parse_suite
from sandbox.cases.reference_interface import Interface
from sandbox.values.encoding import canonical_key

REFERENCE = """
def f(a, b=2, *rest, c=None, **more): pass
class C:
    def __init__(self, x=0): self.x = x
    def m(self): pass
"""
INTERFACE = Interface.of(REFERENCE)
fragments = st.sampled_from(
    [
        "assert", "f(", "C(", ")", "==", "!=", ",", "1", "-1", "0x1", "1.0", "True", "'a'", "[", "]", "{", "}", ":",
        ".m()", ".x", "[0]", "**", "*", "lambda", "await", "asyncio.run(", ":=", "if", "else", "for", "x", "in",
        "float('inf')", "set(", "range(10**9)", "deque(", "\\", "\n", "#", "\t", "\x00", "�", "é", ";", "=", "...",
        "None", "1e999", "1j", "b'x'", "f'{1}'",
    ]
)  # fmt: skip
asserts = st.lists(fragments, max_size=14).map(" ".join)


@given(st.one_of(st.text(), asserts, asserts.map("assert f(".__add__)))
def test_any_text_is_a_case_or_a_typed_rejection_and_an_interface(text):
    assert isinstance(parse_assert(text, INTERFACE), Case | Rejection)
    assert isinstance(parse_call(text, INTERFACE), Case | Rejection)
    assert isinstance(Interface.of(text), Interface)


@given(st.lists(st.integers(0, 3), max_size=8))
def test_a_suite_keeps_its_asserts_in_order(numbers):
    suite = parse_suite([f"assert f({number}) == 0" for number in numbers], INTERFACE)
    assert [case.call.text for case in suite.cases] == [f"f({number})" for number in numbers]


plain = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=5,
)


def spellings(value):
    """Draw one of the source texts of ``value``."""
    if type(value) is list:
        items = st.tuples(*map(spellings, value)).map(", ".join)
        return st.builds(str.format, st.sampled_from(["[{}]", "list([{}])", "[] + [{}]"]), items)
    texts = [repr(value)]
    if type(value) is int:
        texts += [hex(value), f"({value})", f"{value - 1} + 1", f"--{value}" if value >= 0 else f"-{-value}"]
    if type(value) is str:
        texts.append(f"{value[:1]!r} + {value[1:]!r}")
    if type(value) is float:
        texts += [f"float('{value}')", f"{value!r} * 1"]
    if type(value) is dict:
        texts.append(f"dict({list(value.items())!r})")
    return st.sampled_from(texts)


calls = st.lists(plain, min_size=1, max_size=2).flatmap(
    lambda values: st.tuples(st.just(values), st.tuples(*map(spellings, values)), st.integers(0, len(values)))
)


def call_text(texts, num_positional):
    named = [f"{name}={text}" for name, text in zip("ab", texts, strict=False)][num_positional:]
    return f"f({', '.join([*texts[:num_positional], *named])})"


@given(calls)
def test_every_spelling_of_the_same_arguments_has_one_text_which_is_a_fixed_point_and_one_key(drawn):
    values, texts, num_positional = drawn
    case = parse_call(call_text(texts, num_positional), INTERFACE)
    assert isinstance(case, Case), case
    for text in (f"f({', '.join(map(repr, values))})", case.call.text):
        again = parse_call(text, INTERFACE)
        assert (again.call, again.key) == (case.call, case.key)
    passed = eval(case.call.text, {"f": lambda *arguments: arguments})
    assert repr(passed) == repr(tuple(values))


@given(plain, plain)
def test_different_arguments_have_different_keys_and_texts(one, other):
    first, second = (parse_call(f"f({value!r})", INTERFACE) for value in (one, other))
    assert (first.key == second.key) == (canonical_key(one) == canonical_key(other))
    assert (first.call.text == second.call.text) == (repr(one) == repr(other))


@given(
    st.sampled_from(["{0}", "set({0})", "frozenset({0})", "deque({0})", "Counter({0})", "tuple({0})"]), st.lists(plain)
)
def test_constructed_arguments_are_a_fixed_point_too(constructor, items):
    case = parse_call(f"f({constructor.format(items)})", INTERFACE)
    if isinstance(case, Case):  # a set of unhashable items is refused
        again = parse_call(case.call.text, INTERFACE)
        assert (again.call, again.key) == (case.call, case.key)
