"""Laws of canonical bytes and of the comparison."""

import contextlib
from collections import deque
from decimal import Decimal

from hypothesis import given, strategies as st

from sandbox.cases.case import Case
from sandbox.cases.parser import parse_assert
from sandbox.cases.reference_interface import Interface
from sandbox.errors import ValueFormatError
from sandbox.values.comparison import matches, to_literal
from sandbox.values.decoding import decode
from sandbox.values.encoding import canonical_key, encode

INTERFACE = Interface.of("def f(): pass")
numbers = st.one_of(
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, 2, 0.0, -0.0, 1.0, 2.0, 0.5, 1j, 2 + 0j]),
    st.floats(allow_nan=False),
    st.fractions(),
    st.decimals(allow_nan=False, places=3),
)
text = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
hashable = st.recursive(
    st.one_of(st.none(), numbers, text, st.binary(max_size=8)),
    lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)),
    max_leaves=6,
)
values = st.recursive(
    st.one_of(hashable, st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-3, -1, 1, 2]))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(hashable, inner, max_size=3),
        st.lists(inner, max_size=3).map(deque),
    ),
    max_leaves=10,
)
nan = st.sampled_from([float("nan"), -float("nan")])


@given(values)
def test_decoding_undoes_encoding(value):
    data = encode(value)
    assert encode(decode(data)) == data
    assert decode(data) == value


@given(st.tuples(values, values) | st.tuples(numbers, numbers))
def test_equal_values_and_only_they_share_a_key(pair):
    one, other = pair
    assert (canonical_key(one) == canonical_key(other)) == (one == other)
    if one == other:
        assert matches(encode(one), encode(other))
    assert matches(encode(one), encode(one))


@given(st.lists(hashable, max_size=5), st.randoms())
def test_the_order_of_insertion_leaves_no_trace(items, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    unique = {canonical_key(item): item for item in items}.values()
    again = {canonical_key(item): item for item in shuffled}.values()
    assert canonical_key(set(unique)) == canonical_key(set(again))
    assert encode(dict.fromkeys(unique)) == encode(dict.fromkeys(sorted(unique, key=canonical_key)))


@given(st.lists(nan, max_size=3))
def test_nan_equals_nan_in_every_container(items):
    assert matches(encode(items), encode([float("nan") for _ in items]))
    assert matches(encode({"a": tuple(items)}), encode({"a": tuple(float("nan") for _ in items)}))


@given(values, st.data())
def test_damaged_bytes_decode_or_raise_the_one_typed_error(value, data):
    original = encode(value)
    place = data.draw(st.integers(0, max(len(original) - 1, 0)))
    damaged = original[:place] + data.draw(st.binary(max_size=3)) + original[place + 1 :]
    with contextlib.suppress(ValueFormatError):
        decode(damaged)
    assert matches(original, damaged) in (True, False)


@given(values)
def test_a_literal_read_as_a_claim_is_the_value(value):
    data = encode(value)
    case = parse_assert(f"assert f() == {to_literal(data)}", INTERFACE)
    assert isinstance(case, Case), case
    assert matches(data, case.expected_value)
    assert canonical_key(decode(case.expected_value)) == canonical_key(value)


exact = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.fractions(), text, st.binary(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(text, inner, max_size=3),
        st.frozensets(st.one_of(st.integers(), text), max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@given(exact, st.one_of(exact, st.none()), st.data())
def test_without_floats_values_match_exactly_when_they_are_equal(one, other, data):
    other = data.draw(st.sampled_from([other, one, [one], (one,)]))
    assert matches(encode(one), encode(other)) == (one == other)
    assert matches(encode(one), encode(other)) == (canonical_key(one) == canonical_key(other))


finite = st.floats(-1e12, 1e12)
shifts = st.floats(-3e-6, 3e-6)


wrappers = st.sampled_from(
    [
        lambda x: [x, "a"],
        lambda x: (1, x),
        lambda x: {"k": x},
        lambda x: deque([x]),
        lambda x: {x},
        lambda x: [[{1: x}]],
    ]
)


@given(finite, shifts, wrappers)
def test_containers_neither_widen_nor_narrow_the_tolerance(reference, shift, wrap):
    claim = reference + shift
    assert matches(encode(wrap(reference)), encode(wrap(claim))) == matches(encode(reference), encode(claim))


@given(st.integers(), shifts)
def test_an_integer_of_the_reference_has_no_tolerance(reference, shift):
    claim = reference + shift
    assert matches(encode(reference), encode(claim)) == (claim == reference)


@given(finite | st.floats(allow_nan=False, allow_infinity=False), shifts)
def test_the_tolerance_is_that_of_allclose(reference, shift):
    """The references have any size and sign, and the claims lie on both sides of the tolerance."""
    claim = reference + shift * (1 + abs(reference) / 10)
    expected = claim == reference or abs(claim - reference) <= 1e-6 + 1e-7 * abs(reference)
    assert matches(encode(reference), encode(claim)) == expected
    assert matches(encode(-reference), encode(-claim)) == expected


decimals = st.one_of(
    st.decimals(),
    st.sampled_from(["NaN", "sNaN", "-sNaN7", "Infinity", "-Infinity", "0E+999999", "-0"]).map(Decimal),
    st.builds("{}E{}".format, st.integers(), st.integers(-(10**17), 10**17)).map(Decimal),
)


@given(decimals, st.one_of(decimals, numbers))
def test_any_two_numbers_are_compared_without_an_exception(one, other):
    assert matches(encode(one), encode(other)) in (True, False)
    assert matches(encode([other]), encode([one])) in (True, False)
    assert matches(encode(one), encode(one))
    assert isinstance(canonical_key(one), bytes)
    if one.is_finite() and isinstance(other, Decimal) and other.is_finite():
        assert (canonical_key(one) == canonical_key(other)) == (one == other)


@given(decimals, decimals)
def test_any_decimal_may_be_argument_and_claim(argument, claim):
    case = parse_assert(f"assert g({argument!r}) == {claim!r}", Interface.of("def g(x): pass"))
    assert isinstance(case, Case), case
