"""How prompts name what a program must define."""

import pytest

from code_a1_recipe.algorithm.question import UNNAMED, Question, entry_points_text

SOURCE = """
import math

def _helper(x):
    return x

def area(width: float, height: float = 1.0, *, unit="m"):
    return width * height

async def fetch(*names, **options):
    return names

class Stack:
    def __init__(self, items):
        self.items = items

    def push(self, value): ...

    def _grow(self): ...

    @staticmethod
    def of(value, /): ...
"""


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("area",), "`area(width, height, unit=...)`"),
        (("fetch", "area"), "`fetch(*names, **options)`, `area(width, height, unit=...)`"),
        (("Stack",), "`Stack(items).push(value)`, `Stack(items).of(value)`"),
        (("_helper",), "`_helper(x)`"),
        (("elsewhere",), "`elsewhere`"),
    ],
)
def test_signatures_as_they_are_called(names, text):
    assert entry_points_text(SOURCE, names) == text


def test_without_names_all_public_definitions():
    expected = "`area(width, height, unit=...)`, `fetch(*names, **options)`, "
    assert entry_points_text(SOURCE) == expected + "`Stack(items).push(value)`, `Stack(items).of(value)`"


@pytest.mark.parametrize(
    ("source", "names", "text"), [("def f(:", (), UNNAMED), ("def f(:", ("f",), "`f`"), ("", (), UNNAMED)]
)
def test_a_program_that_does_not_parse_has_names_only(source, names, text):
    assert entry_points_text(source, names) == text


def test_a_class_without_methods_is_named():
    assert entry_points_text("class Point:\n    x = 1") == "`Point`"


def test_a_questions_fields():
    question = Question(
        id="q", prompt="Add.", reference="def add(a, b):\n    return a + b\ndef other(): ...", entry_points=("add",)
    )
    assert question.prompt_fields == {"prompt": "Add.", "entry_points": "`add(a, b)`", "reads_input": False}
