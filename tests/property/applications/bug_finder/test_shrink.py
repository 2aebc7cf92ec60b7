"""Laws of shrinking: it ends, only gets smaller, keeps types and failure, and leaves nothing simpler that fails."""

import ast

from hypothesis import given, settings, strategies as st

from code_a1_recipe.applications.bug_finder.literal_calls import take_apart
from code_a1_recipe.applications.bug_finder.shrink import shrink, simpler_calls, size_of
from sandbox import spell

leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(allow_nan=False, width=32), st.text(max_size=4)
)
keys = st.one_of(st.integers(-9, 9), st.text(max_size=3))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(st.integers(-9, 99), max_size=3),
        st.dictionaries(keys, inner, max_size=3),
    ),
    max_leaves=6,
)


@st.composite
def calls(draw):
    arguments = [spell(value) for value in draw(st.lists(values, min_size=1, max_size=3))]
    named = [f"n={spell(draw(values))}"] if draw(st.booleans()) else []
    return f"f({', '.join([*arguments, *named])})"


def shape(value):
    """Types of a value, without its lengths."""
    if isinstance(value, list | tuple):
        return type(value), {shape(item) for item in value}
    if isinstance(value, dict):
        return dict, frozenset((shape(key), shape(item)) for key, item in value.items())
    return type(value)


@given(text=calls())
def test_taking_apart_and_writing_again_changes_nothing(text):
    assert take_apart(text, {"f"}).text == text


@given(text=calls())
def test_every_simplification_is_smaller_parses_and_keeps_the_types_of_arguments(text):
    call = take_apart(text, {"f"})
    types = {argument.name: type(argument.value) for argument in call.arguments if argument.name}
    for simpler in simpler_calls(call):
        assert size_of(simpler) < size_of(call)
        assert take_apart(simpler.text, {"f"}).text == simpler.text
        assert len(simpler.arguments) in (len(call.arguments), len(call.arguments) - 1)
        assert all(type(one.value) is types[one.name] for one in simpler.arguments if one.name)
        if len(simpler.arguments) == len(call.arguments):
            kinds = [type(argument.value) for argument in call.arguments]
            assert [type(argument.value) for argument in simpler.arguments] == kinds


@settings(max_examples=60)
@given(text=calls(), least=st.integers(1, 30), batch=st.sampled_from([1, 7, 64]))
def test_the_result_fails_and_no_single_simplification_of_it_does(text, least, batch):
    def fails(one):
        return len(one) >= least and sum(map(ord, one)) % 3 != 0  # as irregular as programs are

    def still_fails(texts):
        return [fails(one) for one in texts]

    if not fails(text):
        return
    found = shrink(text, still_fails, entry_points={"f"}, batch=batch)
    assert fails(found.call)
    assert found.is_minimal
    assert not any(fails(simpler.text) for simpler in simpler_calls(take_apart(found.call, {"f"})))
    sizes = [size_of(take_apart(one, {"f"})) for one in found.path]
    assert sizes == sorted(sizes, reverse=True)
    assert shrink(text, still_fails, entry_points={"f"}, batch=batch) == found


@given(text=calls())
def test_a_failure_that_needs_nothing_shrinks_to_no_argument_at_all_or_the_simplest(text):
    found = shrink(text, lambda texts: [True] * len(texts), entry_points={"f"})
    assert found.call == "f()"


@given(text=calls())
def test_without_leave_to_drop_arguments_the_simplest_of_each_type_is_left(text):
    num_arguments = len(take_apart(text, {"f"}).arguments)

    def still_fails(texts):
        return [len(take_apart(one, {"f"}).arguments) == num_arguments for one in texts]

    found = shrink(text, still_fails, entry_points={"f"})
    simplest = {"None", "False", "0", "0.0", "''", "[]", "()", "set()", "{}"}
    call = ast.parse(found.call, mode="eval").body
    assert {ast.unparse(one) for one in [*call.args, *(keyword.value for keyword in call.keywords)]} <= simplest
