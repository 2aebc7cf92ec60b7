"""The written test file calls an answer right exactly where the judge does."""

import math
from collections import OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from hypothesis import example, given, strategies as st

from code_a1_recipe.tools.bug_finder.output import pytest_text
from sandbox import CaseOutcome, CaseResult
from sandbox.text import encode, matches, to_literal

exact = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.1, 0.3, 1.5, -2.0, 1e300, math.inf, -math.inf, 10**400]),
    st.sampled_from([Fraction(3, 10), Decimal("0.3"), complex(0.3, 1), complex(0.3, 0)]),
)
plain = st.one_of(st.none(), st.booleans(), st.text("ab", max_size=1), st.binary(max_size=1))
floats = st.sampled_from([math.nan, 0.3, 0.3 + 5e-7, 0.3 + 2e-6])
leaves = st.one_of(exact, plain, floats, st.just(Decimal("NaN")))
keys = st.one_of(st.integers(-1, 1), st.booleans(), st.text("ab", max_size=1), st.sampled_from([0.5, math.nan]))
sets = st.one_of(
    st.frozensets(st.one_of(st.integers(-2, 2), st.sampled_from([0.3, 0.3 + 5e-7, 0.3 + 2e-6])), max_size=3),
    st.frozensets(keys, max_size=2),
)
values = st.recursive(
    st.one_of(leaves, sets),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.lists(inner, max_size=2).map(tuple),
        st.lists(inner, max_size=2).map(deque),
        st.dictionaries(keys, inner, max_size=2),
        st.dictionaries(keys, inner, max_size=2).map(OrderedDict),
    ),
    max_leaves=4,
)


@st.composite
def near(draw, value):
    """The value, perhaps with its numbers moved or another type in the place of one."""
    if isinstance(value, (list, tuple, deque)):
        return type(value)(draw(near(item)) for item in value)
    if isinstance(value, dict):
        return {key: draw(near(item)) for key, item in value.items()}
    if isinstance(value, frozenset):
        return draw(st.sampled_from([set, frozenset]))(draw(near(item)) for item in value)
    if isinstance(value, (float, complex)) and not isinstance(value, bool):
        return value + draw(st.sampled_from([0, 5e-7, 2e-6]))
    return value


pairs = st.one_of(st.tuples(values, values), values.flatmap(lambda value: st.tuples(st.just(value), near(value))))


def passes(expected, answer):
    """Whether the check that is written passes, run as in the file."""
    literal = to_literal(encode(expected))
    case = CaseResult(
        call="f()",
        reference_value=literal,
        expected=literal,
        expected_correct=True,
        outcome=CaseOutcome.WRONG_VALUE,
    )
    text = pytest_text([case], ["f"], program=Path("p.py"), output=Path("t.py"))
    names = {"__file__": "t.py"}
    exec(compile(text, "t.py", "exec"), names)

    class Loaded:
        f = staticmethod(lambda: answer)

    names["load"] = Loaded
    try:
        names["test_1"]()
    except AssertionError:
        return False
    return True


@given(pairs)
@example((complex(0.3, 1), complex(0.1 + 0.2, 1)))
@example(({0.3}, {0.1 + 0.2}))
@example(({"k": {0.3}}, {"k": {0.1 + 0.2}}))
@example(({0.3, 5}, {0.1 + 0.2, 5}))
@example(({math.nan}, {float("nan")}))
@example(({True, 0.3}, {True, 0.1 + 0.2}))
@example((complex(1, 0.3), complex(1, 0.1 + 0.2)))
@example(({math.nan: 1}, {float("nan"): 1}))
@example(([(1, 0.5)], [[1, 0.5]]))
@example((0.3, Fraction(3, 10)))
@example((0.5, 10**400))
@example((1.0, "1"))
@example((Decimal("NaN"), math.nan))
@example((deque([0.3]), deque([0.1 + 0.2])))
def test_the_files_comparison_is_the_judges(pair):
    expected, answer = pair
    assert passes(expected, answer) == matches(encode(expected), encode(answer))
