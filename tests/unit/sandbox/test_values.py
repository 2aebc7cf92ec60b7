"""Canonical bytes: which values are equal, and how hostile bytes are refused."""

import time
from collections import deque
from decimal import Decimal
from fractions import Fraction

import pytest

from sandbox.errors import ValueFormatError
from sandbox.values.comparison import matches, to_literal
from sandbox.values.decoding import decode
from sandbox.values.encoding import canonical_key, encode


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, b"N"),
        (True, b"T"),
        (-31, b"i-1f;"),
        (0.5, b"f\x3f\xe0\x00\x00\x00\x00\x00\x00"),
        ("é", b"s2:\xc3\xa9"),
        (b"ab", b"b2:ab"),
        ([1, (2,)], b"l2:i1;t1:i2;"),
        ({2, 1}, b"S2:i1;i2;"),
        ({"b": 1, "a": 2}, b"d2:s1:ai2;s1:bi1;"),
        (deque([1]), b"Q1:i1;"),
        (Fraction(1, 3), b"q1/3;"),
        (Decimal("1.50"), b"D4:1.50"),
        (range(0, 6, 2), b"r0;6;2;"),
        (float("nan"), b"n"),
    ],
)
def test_a_value_has_these_bytes(value, data):
    assert encode(value) == data


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (1, 1.0), (0, -0.0), (2, 2 + 0j), (0.5, Fraction(1, 2)), (0.5, Decimal("0.50")),
        (Decimal("0.1"), Fraction(1, 10)), ([1, 2], [True, 2.0]), ({1: "a"}, {1.0: "a"}),
        (float("inf"), Decimal("Infinity")), (range(0, 5, 2), range(0, 6, 2)), (range(3, 3), range(9, 1)),
        (Decimal("0E+999999"), 0), (Decimal("10E+9999999"), Decimal("1E+10000000")),
        (Decimal("-1.50E-999999999"), Decimal("-15E-1000000000")),
        (Decimal("1" * 6000), Decimal("1" * 6000 + ".000")),
    ],
)  # fmt: skip
def test_values_that_compare_equal_share_a_key(one, other):
    assert canonical_key(one) == canonical_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], (1,)), ("1", 1), (b"a", "a"), ([1], deque([1])), (0.1, Decimal("0.1")), ({1}, [1]),
        (None, False), ([[]], []), (range(2), [0, 1]), ({}, set()), (Decimal("1E+9999999"), Decimal("1E+9999998")),
        (Decimal("1" * 6000), Decimal("1" * 5999 + "2")),
    ],
)  # fmt: skip
def test_values_that_differ_have_different_keys(one, other):
    assert canonical_key(one) != canonical_key(other)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"i", b"i;", b"i0x1;", b"i 1;", b"i_1;", b"i--1;", b"f123", b"s5:ab", b"s1:\xff", b"l1:",
        b"l9999999999999:", b"l2:i1;", b"S2:i1;i1;", b"S1:l0:", b"d1:i1;", b"d2:i1;Ni1;N", b"q1/0;", b"D3:abc",
        b"x", b"i1;i1;", b"ci1;i1;",
        b"r1;2;0;", b"l1:" * 5000 + b"N", b"s-1:", b"s\xb2:ab",
    ],
)  # fmt: skip
def test_malformed_bytes_raise_the_one_typed_error(data):
    with pytest.raises(ValueFormatError):
        decode(data)


def test_repeated_items_of_a_forged_set_or_dict_stand_for_no_others():
    assert not matches(encode({1, 2}), b"S2:i1;i1;")
    assert not matches(encode({1, 2}), b"S2:i1;T")
    assert not matches(encode({"a", "b"}), b"S2:s1:as1:a")
    assert not matches(encode({1: None, 2: None}), b"d2:i1;Ni1;N")


def test_an_oversized_claim_is_not_even_decoded():
    assert not matches(encode(0.5), b"l1:" * 100_000)


@pytest.mark.parametrize("name", ["NaN", "sNaN", "-sNaN", "sNaN123"])
def test_any_decimal_nan_equals_nan_and_nothing_else(name):
    claim = encode([Decimal(name)])
    assert matches(encode([float("nan")]), claim)
    assert matches(claim, encode([Decimal("NaN")]))
    assert not matches(encode([4]), claim)
    assert not matches(claim, encode([4]))


def seconds(reference, claim):
    started = time.process_time()
    assert not matches(reference, claim)
    return time.process_time() - started


@pytest.mark.parametrize("kind", [list, frozenset, dict.fromkeys])
def test_colliding_integers_are_compared_in_linear_time(kind):
    num = 20_000
    keys = [b"i%x;" % (k * (2**61 - 1)) for k in range(1, num + 1)]
    reference = encode(kind(range(num)))
    assert seconds(reference, b"S%d:" % num + b"".join(keys)) < 2
    assert seconds(reference, b"d%d:" % num + b"".join(key + b"N" for key in keys)) < 2


def test_huge_numbers_are_not_reduced_or_converted():
    digits = b"%x" % (3**900_000)
    ratio = b"q%s/%s;" % (digits, digits[:-1] + b"1")
    decimal = b"D%d:%s" % (300_000, b"7" * 300_000)
    padding = "a" * 200_000
    for reference in (Fraction(1, 3), 0.5, Decimal("1.5"), 3, 1j, "a", {Decimal("0.5")}, {Fraction(1, 3): 1}):
        padded = encode([reference, padding])
        for number in (ratio, decimal, b"i%s;" % digits):
            for claim in (b"%s", b"S1:%s", b"d1:%si1;"):
                assert seconds(padded, b"l2:" + claim % number + encode(padding)) < 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2.0, True, None], "[1, 2.0, True, None]"),
        ({1}, "{1}"),
        (set(), "set()"),
        ({(1,): {2}}, "{(1,): {2}}"),
        ({frozenset({1})}, "{frozenset({1})}"),
        (float("-inf"), "float('-inf')"),
        (deque(["a"]), "deque(['a'])"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (Decimal("0.10"), "Decimal('0.10')"),
        (range(3), "range(0, 3, 1)"),
        ('it\'s "x"\n', "'it\\'s \"x\"\\n'"),
        (1j, "complex(0.0, 1.0)"),
        pytest.param(2**20000, "0x1" + "0" * 5000, id="more digits than Python parses"),
    ],
)
def test_an_answer_is_shown_as_this_literal(value, text):
    assert to_literal(encode(value)) == text
