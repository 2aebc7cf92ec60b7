"""Forms that the static gate accepts and refuses, in addition to the rows of ``semantics/test_gate.py``."""

import pytest

from sandbox.cases.case import Case, Rejection, RejectionReason
from sandbox.cases.parser import parse_assert, parse_call
from sandbox.cases.reference_interface import Interface

REFERENCE = """
import functools

def f(n, k=2, *, flag=False):
    return n

async def fetch(n):
    return n

class Stack:
    def __init__(self, items=()):
        self.items = list(items)
    def push(self, item):
        self.items.append(item)
        return self
    def pop(self):
        return self.items.pop()

class Solution:
    def solve(self, xs):
        return xs

@functools.wraps(len)
def odd(x):
    return x

square = lambda x: x * x
"""
INTERFACE = Interface.of(REFERENCE)


def parsed(text):
    return parse_assert(text, INTERFACE)


def test_an_assert_becomes_a_call_and_a_claim():
    case = parsed("assert  f( 1,k = 3 )==(1, 2) , 'why'")
    assert isinstance(case, Case)
    assert (case.call.text, case.expected, case.expected_value) == ("f(1, 3)", "(1, 2)", b"t2:i1;i2;")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("assert Stack([1]).push(2).pop() == 2", "Stack([1]).push(2).pop()"),
        ("assert Stack([1]).items == [1]", "Stack([1]).items"),
        ("assert Solution().solve([1]) == [1]", "Solution().solve([1])"),
        ("assert await fetch(3) == 6", "await fetch(3)"),
        ("assert fetch(3) == 6", "await fetch(3)"),
        ("assert asyncio.run(fetch(3)) == 6", "await fetch(3)"),
        ("assert __import__('asyncio').run(fetch(3)) == 6", "await fetch(3)"),
        ("assert sorted(f([2, 1]), reverse=True) == [2, 1]", "sorted(f([2, 1]), reverse=True)"),
        ("assert f([2, 1])[0] == 2", "f([2, 1])[0]"),
        ("assert f('ab')[-1] == 'b'", "f('ab')[-1]"),
        ("assert max(f([1, 2])) == 2", "max(f([1, 2]))"),
        ("assert len(f([1, 2])) == 2", "len(f([1, 2]))"),
        ("assert round(f(1.25), 1) == 1.2", "round(f(1.25), 1)"),
        ("assert f(10 ** 5) == 1", "f(100000)"),
        ("assert f([0] * 3 + [1]) == 1", "f([0, 0, 0, 1])"),
        ("assert f(-1, float('inf'), flag=True) == 1", "f(-1, float('inf'), flag=True)"),
        ("assert f({1: {2}, (3,): [None, b'x', 1j]}) == 1", "f({1: {2}, (3,): [None, b'x', complex(0.0, 1.0)]})"),
        ("assert f(deque([1]), collections.Counter('ab')) == 1", "f(deque([1]), Counter({'a': 1, 'b': 1}))"),
        ("assert (f(1) == 1)", "f(1)"),
        ("assert square(3) == 9", "square(3)"),
        ('assert f("it\'s \\"x\\"\\n") == 1', "f('it\\'s \"x\"\\n')"),
    ],
)
def test_this_form_is_accepted(text, call):
    case = parsed(text)
    assert isinstance(case, Case), case
    assert case.call.text == call
    assert parse_call(call, INTERFACE).call == case.call


REFUSED = {
    "not_an_equality": ["assert abs(f(1) - 2) > 1e-6", "assert 1 is True"],
    "no_call": [
        "assert isinstance(f(1), int)",
        "assert not all([f(1)])",
        "assert [f(1)] == [1]",
        "assert (y := f(1)) == 1",
        "assert f == 1",
        "assert str(f(9)).startswith('') == True",
        "assert max(f([]), default=1) == 1",
        "assert round(f(8), 10 ** 6) == 0",
        "assert round(f(8), True) == 8",
        "assert round(f(8), ndigits=-30) == 0",
        "assert f(3).clear() == None",
        "assert Stack([1]).items.clear() == None",
    ],
    "argument_not_literal": [
        "assert f(**{'n': 1}) == 1",
        "assert f(open('/etc/passwd').read()) == 1",
        "assert f(5 if 'x' in globals() else 6) == 1",
        "assert f([0] * 10 ** 9) == 1",
        "assert f(9 ** 9 ** 9) == 1",
        "assert f(list(range(10 ** 9))) == 1",
        "assert f(bytes(10 ** 9)) == 1",
        "assert f(Fraction('1e999999999')) == 1",
        "assert f({[]}) == 1",
        "assert f(1 / 0) == 1",
        "assert f(...) == 1",
    ],
    "expected_not_literal": [
        "assert f(1) == 2 ** 3 ** 2",
        "assert f(1) == 2 ** 3 - 1 + 1",
        "assert f(1) == 2 ** -3",
        "assert f(1) == 0.5 ** 3",
        "assert f(1) == 10 ** 5 // 3",
        "assert f(1) == 9 ** 999999",
        "assert f(1) == int",
    ],
    "unparsable": [
        "",
        "assert f('\0') == 1",
        "assert f(" + "9" * 5000 + ") == 1",
        "assert f(0x" + "9" * 5000 + ") == 1",
        "assert f(" + "(" * 5000 + ") == 1",
        "assert f(" + "-" * 9000 + "1) == 1",
        "assert f(1)" + ".a" * 5000 + " == 1",
    ],
}


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason in REFUSED for text in REFUSED[reason]])
def test_this_form_is_refused(reason, text):
    rejection = parsed(text)
    assert isinstance(rejection, Rejection), rejection
    assert (rejection.reason.value, rejection.text) == (reason, text)


def test_a_value_nested_too_deep_for_canonical_bytes_is_refused():
    text = "[" * 150 + "]" * 150
    nested = parse_assert(f"assert f({text}, {{1: {text[:100]}}}) == 1", INTERFACE)
    assert isinstance(nested, Rejection)


@pytest.mark.parametrize("spelling", ["f(2)", "f(1, 3)", "f(1, flag=True)", "f('1')", "f([1])", "f((1,))", "square(1)"])
def test_this_call_is_another_one(spelling):
    assert parsed(f"assert {spelling} == 1").key != parsed("assert f(1) == 1").key


def test_members_of_a_class_under_test_are_calls_of_their_own():
    keys = {
        parsed(f"assert {call} == 1").key
        for call in ("Stack([1]).pop()", "Stack([1]).items", "Stack([1]).push(1).pop()", "Stack([1]).push(2).pop()")
    }
    assert len(keys) == 4
    assert parsed("assert Stack([1]).items[0] == 1").key == parsed("assert Stack([1]).items == 1").key


def test_parameters_of_decorated_functions_are_not_guessed():
    assert parsed("assert odd(1) == 1").key != parsed("assert odd(x=1) == 1").key


def test_an_assert_is_no_call():
    assert parse_call("assert f(1) == 1", INTERFACE).reason is RejectionReason.UNPARSABLE


def test_named_entry_points_narrow_the_interface():
    narrow = Interface.of(REFERENCE, ["f"])
    assert isinstance(parse_assert("assert f(1) == 1", narrow), Case)
    assert parse_assert("assert square(1) == 1", narrow).reason is RejectionReason.NO_CALL


def test_a_reference_that_does_not_parse_still_has_its_named_entry_points():
    broken = Interface.of("def f(:", ["f"])
    assert isinstance(parse_assert("assert f(1) == 1", broken), Case)


@pytest.mark.parametrize(
    ("signature", "written", "canonical"),
    [
        ("a, b=2", "f(b=3, a=1)", "f(1, 3)"),
        ("a=1, b=2", "f(b=3)", "f(b=3)"),
        ("a, b, c", "f(1, c=3, b=2)", "f(1, 2, 3)"),
        ("a, b=2, *, d=4, c=3", "f(1, c=5, d=6)", "f(1, d=6, c=5)"),
        ("a, b=2, *rest", "f(a=1, b=5)", "f(1, 5)"),
        ("a, /, b", "f(1, b=2)", "f(1, 2)"),
        ("a, /, b", "f(a=1, b=2)", "f(b=2, a=1)"),
        ("a, /, **more", "f(1, z=2, a=3)", "f(1, z=2, a=3)"),
        ("a, **more", "f(z=2, y=3, a=1)", "f(1, z=2, y=3)"),
        ("a, b", "f(1, a=2)", "f(1, a=2)"),
        ("a", "f(1, 2, a=3)", "f(1, 2, a=3)"),
    ],
)
def test_keywords_become_positions_where_the_signature_places_them(signature, written, canonical):
    own = Interface.of(f"def f({signature}): pass")
    assert parse_assert(f"assert {written} == 1", own).call.text == canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("f([3, 1.50, 1e999, -0.0])", "f([3, 1.5, float('inf'), -0.0])"),
        ("f({2, 1, True})", "f({1, 2})"),
        ("f({16, 8, 0})", "f({0, 16, 8})"),
        ("f(set([]), frozenset([1]))", "f(set(), frozenset({1}))"),
        ("f(dict(a=1), {'b': 2, 'a': 1})", "f({'a': 1}, {'b': 2, 'a': 1})"),
        ("f(defaultdict(int, {1: 2}), OrderedDict([(1, 2)]))", "f(defaultdict(int, {1: 2}), OrderedDict({1: 2}))"),
        ("f(defaultdict(None))", "f(defaultdict(None, {}))"),
        ("f(Fraction('1/2'), decimal.Decimal(1))", "f(Fraction(1, 2), Decimal('1'))"),
        ("f(range(5), bytearray(b'a'), math.pi)", "f(range(0, 5, 1), bytearray(b'a'), 3.141592653589793)"),
        ('f("a" "b", u"c")', "f('ab', 'c')"),
        ("f((1,), ())", "f((1,), ())"),
        ("f([{1: 2}] * 2, 1 - 2j)", "f([{1: 2}, {1: 2}], complex(1.0, -2.0))"),
        ("f(2 ** 20000)", "f(2 ** 20000)"),
        ("f([0] * 3000)", "f([0] * 3000)"),
    ],
)
def test_literals_have_one_spelling(written, canonical):
    own = Interface.of("def f(*values): pass")
    case = parse_assert(f"assert {written} == 1", own)
    assert case.call.text == canonical
    assert parse_call(canonical, own).call == case.call


def test_a_question_that_defines_a_builtin_of_a_spelling_keeps_its_texts():
    own = Interface.of("def f(x): pass\nclass float: pass\n")
    assert parse_assert("assert f(1e999) == 1", own).call.text == "f(1e309)"


def test_a_question_that_defines_a_library_name_means_its_own():
    own = Interface.of("class Counter:\n    def top(self): return 1\n")
    case = parse_assert("assert Counter().top() == 1", own)
    assert isinstance(case, Case)
    assert not case.call.uses_library
