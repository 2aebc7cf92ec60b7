"""Laws of shrinking: what is left fails and has the types of the start; the simplest is left if all fail."""

import ast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from code_a1_recipe.tools.bug_finder.literal_calls import take_apart
from code_a1_recipe.tools.bug_finder.shrink import shrink
from code_a1_recipe.tools.bug_finder.simplify import simplified_call
from sandbox.text import spell

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


@given(text=calls())
def test_the_choices_that_stand_for_a_call_give_it_back(text):
    call = take_apart(text, {"f"})
    assert simplified_call(call, lambda most: most).text == text


@given(text=calls(), data=st.data())
def test_any_choices_keep_the_types_of_arguments(text, data):
    call = take_apart(text, {"f"})
    simpler = simplified_call(call, lambda most: data.draw(st.integers(0, most)))
    assert take_apart(simpler.text, {"f"}).text == simpler.text
    assert list(map(type, simpler.values)) == list(map(type, call.values))


@pytest.mark.nightly
@settings(max_examples=6, suppress_health_check=[HealthCheck.nested_given])
@given(text=calls())
def test_the_simplest_of_each_type_is_left(text):
    num_arguments = len(take_apart(text, {"f"}).values)

    def fails(simpler):
        return len(take_apart(simpler, {"f"}).values) == num_arguments

    found = shrink(text, fails, entry_points={"f"}, max_asked=1000)[0]
    simplest = {"None", "False", "0", "0.0", "''", "[]", "()", "set()", "{}"}
    call = ast.parse(found, mode="eval").body
    assert {ast.unparse(value) for value in [*call.args, *(keyword.value for keyword in call.keywords)]} <= simplest
