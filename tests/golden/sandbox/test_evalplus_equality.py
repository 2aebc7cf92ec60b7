"""Values that EvalPlus and the judge consider equal, and every place where the two differ.

The rule of EvalPlus (arXiv:2305.01210, the ``assertion`` of its published tests) is ``out == exp``. If ``exp`` is a
float, or a list or tuple of floats only, ``numpy.allclose(out, exp, rtol=1e-7, atol=1e-6)`` is enough.
"""

from collections import deque
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import pytest

from sandbox.text import encode, matches

# Pairs of an expected value and an output that are equal for EvalPlus and for the judge.
EQUAL = [
    (1, True),
    (1, 1.0),
    (2.0, 2),
    (0.3, 0.1 + 0.2),
    (0.0, 1e-6),
    (0.0, -1e-6),
    (1e-6, 0.0),
    (1.0, 1.0 + 1.0999e-6),
    (1e10, 1e10 + 1000),
    (-1e10, -1e10 - 1000),
    (1e300, 1.0000001e300),
    (5e-324, 0.0),
    (inf, inf),
    ("a", "a"),
    (None, None),
    ([0.3, 2.0], [0.1 + 0.2, 2]),
    ((0.3, 2.0), (0.1 + 0.2, 2.0)),
    ([1, 2], [1.0, 2.0]),
    ([], []),
    ([[1, 2], "a"], [[1, 2], "a"]),
    ({1, 2}, {2, 1}),
    ({"a": 1}, {"a": 1}),
    (Fraction(1, 2), 0.5),
    (0.3, Fraction(30000001, 100000000)),
    (2**70, float(2**70)),
]
# Pairs that differ for both.
DIFFERENT = [
    (True, 0),
    (2, 2.0000000001),
    (0.0, 1.0000001e-6),
    (0.5, 0.4),
    (0.5, -0.5),
    (1.0, 1.0 + 1.1001e-6),
    (1e10, 1e10 + 1001),
    (1e300, 1.000001e300),
    (inf, -inf),
    (inf, 1e308),
    (1e308, inf),
    (nan, 0.0),
    (0.0, nan),
    (0.5, "0.5"),
    (0.5, None),
    (0.5, 0.5 + 1j),
    ("a", "b"),
    (None, 0),
    ([0.3, 2.0], [0.1 + 0.2, 2.1]),
    ([0.3, 2.0], [2.0, 0.3]),
    ([1.0, 2.0], [1.0, 2.0, 3.0]),
    ([1, 2], [1.0000000001, 2]),
    ([1, 2], (1, 2)),
    ({1}, {1.0000000001}),
    ({"a": 1}, {"a": 1.0000000001}),
    (Decimal("0.1"), 0.1),
    ([], ""),
    (2**70 + 1, float(2**70)),
]
# Pairs, whether they are equal for the judge, and why. EvalPlus decides the opposite.
PARTED = [
    ([[0.3]], [[0.1 + 0.2]], True, "the tolerance holds at every depth"),
    ([1, 0.3], [1, 0.1 + 0.2], True, "the tolerance holds beside other values"),
    ({"mean": 0.3}, {"mean": 0.1 + 0.2}, True, "the tolerance holds in dicts"),
    ({0.3}, {0.1 + 0.2}, True, "the tolerance holds in sets of numbers"),
    (0.3 + 1j, 0.1 + 0.2 + 1j, True, "the tolerance holds for the parts of a complex number"),
    (0.3, Decimal("0.30000001"), True, "a Decimal is a number; allclose cannot read it"),
    (nan, nan, True, "NaN equals NaN: the reference said NaN, and so does the candidate"),
    ([0.5], (0.5,), False, "a tuple is no list, with floats in it or without"),
    ([0.5, 0.5], 0.5, False, "numbers are not spread over lists"),
    (0.5, [0.5, 0.5], False, "lists are not compared item by item with a number"),
    ([0.5, 0.5], [0.5], False, "the lengths differ"),
    ([], [7.5], False, "an empty list equals an empty list only"),
    ([], 5, False, "an empty list equals an empty list only"),
    (deque([0.3]), deque([0.1 + 0.2]), True, "the tolerance holds in deques"),
]
AGREED = [(*pair, True) for pair in EQUAL] + [(*pair, False) for pair in DIFFERENT]


@pytest.mark.parametrize(("expected", "output", "equal"), AGREED)
def test_the_judge_decides_as_evalplus(expected, output, equal):
    assert matches(encode(expected), encode(output)) == equal


@pytest.mark.parametrize(("expected", "output", "equal", "why"), PARTED)
def test_the_judge_departs_from_evalplus_where_the_table_says_so(expected, output, equal, why):
    assert matches(encode(expected), encode(output)) == equal, why


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
    ("expected", "output", "equal"), AGREED + [(expected, output, not equal) for expected, output, equal, _ in PARTED]
)
def test_the_table_states_evalplus_rule_as_numpy_computes_it(expected, output, equal):
    numpy = pytest.importorskip("numpy")
    with numpy.errstate(all="ignore"):
        assert evalplus_decides(expected, output, numpy) == equal
