"""Which values EvalPlus takes for equal, which the judge does, and every place where they part.

EvalPlus (arXiv:2305.01210, the ``assertion`` of its published tests): ``out == exp``, or else, where ``exp`` is
a float or a list or tuple of nothing but floats, ``numpy.allclose(out, exp, rtol=1e-7, atol=1e-6)``.
"""

from collections import deque
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import pytest

from sandbox.text import encode, matches

# Expected, output, whether EvalPlus takes them for equal. The judge decides the same.
AGREED = [
    (1, True, True),
    (1, 1.0, True),
    (True, 0, False),
    (2, 2.0000000001, False),
    (2.0, 2, True),
    (0.3, 0.1 + 0.2, True),
    (0.0, 1e-6, True),
    (0.0, 1.0000001e-6, False),
    (0.0, -1e-6, True),
    (1e-6, 0.0, True),
    (0.5, 0.4, False),
    (0.5, -0.5, False),
    (1.0, 1.0 + 1.0999e-6, True),
    (1.0, 1.0 + 1.1001e-6, False),
    (1e10, 1e10 + 1000, True),
    (1e10, 1e10 + 1001, False),
    (-1e10, -1e10 - 1000, True),
    (1e300, 1.0000001e300, True),
    (1e300, 1.000001e300, False),
    (5e-324, 0.0, True),
    (inf, inf, True),
    (inf, -inf, False),
    (inf, 1e308, False),
    (1e308, inf, False),
    (nan, 0.0, False),
    (0.0, nan, False),
    (0.5, "0.5", False),
    (0.5, None, False),
    (0.5, 0.5 + 1j, False),
    ("a", "a", True),
    ("a", "b", False),
    (None, None, True),
    (None, 0, False),
    ([0.3, 2.0], [0.1 + 0.2, 2], True),
    ([0.3, 2.0], [0.1 + 0.2, 2.1], False),
    ((0.3, 2.0), (0.1 + 0.2, 2.0), True),
    ([0.3, 2.0], [2.0, 0.3], False),
    ([1.0, 2.0], [1.0, 2.0, 3.0], False),
    ([1, 2], [1.0, 2.0], True),
    ([1, 2], [1.0000000001, 2], False),
    ([1, 2], (1, 2), False),
    ([], [], True),
    ([[1, 2], "a"], [[1, 2], "a"], True),
    ({1, 2}, {2, 1}, True),
    ({1}, {1.0000000001}, False),
    ({"a": 1}, {"a": 1}, True),
    ({"a": 1}, {"a": 1.0000000001}, False),
    (Decimal("0.1"), 0.1, False),
    (Fraction(1, 2), 0.5, True),
    (0.3, Fraction(30000001, 100000000), True),
    ([], "", False),
    (2**70, float(2**70), True),
    (2**70 + 1, float(2**70), False),
]
# Expected, output, EvalPlus, judge, why.
PARTED = [
    ([[0.3]], [[0.1 + 0.2]], False, True, "the tolerance holds at every depth"),
    ([1, 0.3], [1, 0.1 + 0.2], False, True, "the tolerance holds beside other values"),
    ({"mean": 0.3}, {"mean": 0.1 + 0.2}, False, True, "the tolerance holds in dicts"),
    ({0.3}, {0.1 + 0.2}, False, True, "the tolerance holds in sets of numbers"),
    (0.3 + 1j, 0.1 + 0.2 + 1j, False, True, "the tolerance holds for the parts of a complex number"),
    (0.3, Decimal("0.30000001"), False, True, "a Decimal is a number; allclose cannot read it"),
    (nan, nan, False, True, "NaN equals NaN: the reference said NaN, and so does the candidate"),
    ([0.5], (0.5,), True, False, "a tuple is no list, with floats in it or without"),
    ([0.5, 0.5], 0.5, True, False, "numbers are not spread over lists"),
    (0.5, [0.5, 0.5], True, False, "lists are not compared item by item with a number"),
    ([0.5, 0.5], [0.5], True, False, "the lengths differ"),
    ([], [7.5], True, False, "an empty list equals an empty list only"),
    ([], 5, True, False, "an empty list equals an empty list only"),
    (deque([0.3]), deque([0.1 + 0.2]), False, True, "the tolerance holds in deques"),
]


@pytest.mark.parametrize(("expected", "output", "equal"), AGREED)
def test_the_judge_decides_as_evalplus(expected, output, equal):
    assert matches(encode(expected), encode(output)) == equal


@pytest.mark.parametrize(("expected", "output", "evalplus", "judge", "why"), PARTED)
def test_the_judge_departs_from_evalplus_where_the_table_says_so(expected, output, evalplus, judge, why):
    assert matches(encode(expected), encode(output)) == judge, why


def evalplus_decides(expected, output, numpy):
    if output == expected:
        return True
    parts = expected if isinstance(expected, list | tuple) else [expected]
    if not all(isinstance(part, float) for part in parts):
        return False
    try:
        return bool(numpy.allclose(output, expected, rtol=1e-07, atol=1e-6))
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize(
    ("expected", "output", "equal"), AGREED + [(expected, output, equal) for expected, output, equal, *_ in PARTED]
)
def test_the_table_states_evalplus_rule_as_numpy_computes_it(expected, output, equal):
    numpy = pytest.importorskip("numpy")
    with numpy.errstate(all="ignore"):
        assert evalplus_decides(expected, output, numpy) == equal
