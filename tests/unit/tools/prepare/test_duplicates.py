"""Rows of one data set that repeat one another."""

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.overlap import check_duplicates
from code_a1_recipe.tools.prepare.rows import Dropped, Entry


def dropped_of(*prompts_and_references):
    entries = [
        Entry(file="a.jsonl", row=row, question=Question(id=f"q{row}", prompt=prompt, reference=reference))
        for row, (prompt, reference) in enumerate(prompts_and_references)
    ]
    found = check_duplicates(entries)
    return {dropped.id: (dropped.reason, dropped.detail) for dropped in found if isinstance(dropped, Dropped)}


SUM = "Return the sum of all even numbers of a list, and zero where there is none"


def test_the_first_of_two_prompts_with_the_same_words_stays():
    found = dropped_of(
        (SUM, "def f(x): return 1"), (f"{SUM.upper()}.", "def f(x): return 2"), ("Sort it.", "def f(x): return 3")
    )
    assert found == {"q1": ("duplicate_prompt", "of q0 (row 0 of a.jsonl)")}


def test_one_that_went_is_not_what_a_later_one_is_compared_with():
    program = "def f(x): return 1"
    rows = [(SUM, program), ("Sort it.", program), ("Sort it.", "def f(x): return 3")]
    assert dropped_of(*rows) == {"q1": ("duplicate_reference", "of q0 (row 0 of a.jsonl)")}


def test_the_same_program_is_a_duplicate_whatever_its_comments():
    found = dropped_of(
        ("Add one.", "def f(x):\n    return x + 1"), ("Give the next number.", "def f(x): return x+1 # so")
    )
    assert found == {"q1": ("duplicate_reference", "of q0 (row 0 of a.jsonl)")}


def completion(number):
    lines = "\n".join(f"    x{number}{line} = {number * line}" for line in range(6))
    return (
        f"Fill in the body of this function\n```python\ndef f{number}(x):\n{lines}\n```",
        f"def f{number}(x): return {number}",
    )


@pytest.mark.parametrize("num_rows", [2, 4, 12])
def test_a_statement_that_says_nothing_makes_no_duplicates(num_rows):
    assert dropped_of(*map(completion, range(num_rows))) == {}


def test_behind_a_statement_that_says_nothing_duplicates_are_found_by_the_whole():
    rows = [*map(completion, range(12)), (completion(11)[0] + "\n", "def g(x): return 0")]
    assert list(dropped_of(*rows)) == ["q12"]


def test_copies_under_other_names_are_duplicates():
    rows = [(f"{SUM}\n\nName the function `f{row}(x)`.", f"def f{row}(x): return {row}") for row in range(6)]
    assert list(dropped_of(*rows)) == [f"q{row}" for row in range(1, 6)]


def test_prompts_without_words_are_duplicates_only_where_they_are_equal():
    rows = [(prompt, f"def f(x): return {row}") for row, prompt in enumerate(["+", "-", "+"])]
    assert list(dropped_of(*rows)) == ["q2"]
