"""What the tools print, as recorded from them, becomes calls; anything else is passed over."""

from pathlib import Path

import pytest

from examples.baselines.annotate import annotated, type_text
from examples.baselines.calls import calls_after_marks, calls_in_lines, calls_in_tests

GOLDEN = Path(__file__).with_name("golden")
"""Of ``def grade(points: int, names: list[str])``, by the drivers with CrossHair 0.0.113 and Pynguin 0.48.0."""


def golden(name):
    return (GOLDEN / name).read_text(encoding="utf-8")


def test_crosshair_prints_one_call_a_line():
    assert calls_in_lines(golden("crosshair.txt"), "grade") == ["grade(0, [])", "grade(91, [''])"]


def test_sampled_calls_that_reach_new_lines_come_first_then_those_that_return():
    calls = calls_after_marks(golden("sample.txt"), "grade")
    assert calls[:3] == ["grade(-9, ['aya'])", "grade(98, [])", 'grade(17, ["i\'rg"])']
    assert calls[3] == "grade(10, ['Yxb_'])"
    assert calls[-4:] == ["grade(444, [])", "grade(791, [])", "grade(230, [])", "grade(602, [])"]
    assert len(calls) == 11


def test_pynguins_variables_are_filled_in_and_results_of_calls_are_left_out():
    assert calls_in_tests(golden("pynguin.txt"), "grade") == [
        "grade(points=-111, names=-111)",
        "grade(points=-1264, names=[True])",
        'grade(points=2, names=["vF:tv>\\x0b`rDD\'F|C.", -579])',
        "grade(points=17, names='NdGz=ix[5c\\x0cl~[4')",
    ]


def test_a_variable_keeps_the_value_that_it_had_at_the_call():
    lines = ["def test_0():", "a = 1", "m.f(a)", "b = [a]", "a = 2", "m.f(a, b)", "m.g(a)", "m.f(*b)", "m.f(**a)"]
    text = "\n    ".join(lines)
    assert calls_in_tests(text, "f") == ["f(1)", "f(2, [1])"]


@pytest.mark.parametrize(
    "text", ["", "def test_0(:", "\0", "f(", "(" * 5_000, "Traceback (most recent call last):\n  boom"]
)
def test_what_is_no_program_and_no_call_gives_none(text):
    assert calls_in_tests(text, "f") == calls_in_lines(text, "f") == calls_after_marks(text, "f") == []


def test_a_line_with_an_object_or_a_cut_end_is_passed_over_and_repeats_are_dropped():
    assert calls_in_lines("f(1)\nf(object())\nf(x)\ng(2)\n+ f(3)\nf( 1 )\nf(nan)\nf([1, 2", "f") == ["f(1)"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 2], "int"),
        ([1, 2.5], "float"),
        ([True, "a"], "bool | str"),
        ([[], [1]], "list[int]"),
        ([[]], "list[int]"),
        ([[[1]], [["a"]]], "list[list[int | str]]"),
        ([{"a": 1}, {}], "dict[str, int]"),
        ([(1, "a"), (2, "b")], "tuple[int, str]"),
        ([(1,), (1, 2)], "tuple[int, ...]"),
        ([None, {1}], "None | set[int]"),
    ],
)
def test_a_type_covers_all_values(values, text):
    assert type_text(values) == text


def test_parameters_get_the_types_of_example_calls_and_keep_their_own():
    source = "def f(a, b: str, c=None, d=1):\n    return a\n"
    found = annotated(source, "f", ["assert f([1], 'x', c=2) == 1", "assert f([2], 'y', {}[0]) == 1", "not python ("])
    assert found.splitlines()[0] == "def f(a: list[int], b: str, c: int=None, d=1):"
    assert annotated(source, "missing", ["assert f(1) == 1"]) == source
