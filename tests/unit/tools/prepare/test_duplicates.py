"""Rows of one data set that repeat one another."""

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.duplicates import check_duplicates
from code_a1_recipe.tools.prepare.rows import Dropped, Entry
from code_a1_recipe.tools.prepare.texts import common_phrases


def entries_of(*prompts_and_references):
    return [
        Entry(file="a.jsonl", row=row, question=Question(id=f"q{row}", prompt=prompt, reference=reference))
        for row, (prompt, reference) in enumerate(prompts_and_references)
    ]


def dropped_of(*prompts_and_references):
    entries = entries_of(*prompts_and_references)
    phrases = common_phrases([entry.question.prompt for entry in entries])
    found = check_duplicates(entries, phrases)
    return {dropped.id: (dropped.reason, dropped.detail) for dropped in found if isinstance(dropped, Dropped)}


SUM = "Return the sum of all even numbers of a list, and zero where there is none"


def test_the_first_of_two_similar_prompts_stays():
    found = dropped_of(
        (SUM, "def f(x): return 1"), (f"{SUM}.", "def f(x): return 2"), ("Sort it.", "def f(x): return 3")
    )
    assert found == {"q1": ("near_duplicate", "of q0 (row 0 of a.jsonl), Jaccard similarity 1.00")}


def test_one_that_went_is_not_what_a_later_one_is_compared_with():
    words = SUM.split()
    second = " ".join([*words[:-1], "nothing"])  # shares 13 of 15 runs with either of the others
    third = " ".join(["Give", *words[1:-1], "nothing"])  # shares 12 of 16 with the first
    programs = ["def f(x): return 1", "def f(x): return 2", "def f(x): return 3"]
    assert list(dropped_of(*zip((SUM, second, third), programs, strict=True))) == ["q1"]
    assert list(dropped_of(*zip((second, SUM, third), programs, strict=True))) == ["q1", "q2"]


def test_the_same_program_is_a_duplicate_whatever_its_comments():
    found = dropped_of(
        ("Add one.", "def f(x):\n    return x + 1"), ("Give the next number.", "def f(x): return x+1 # so")
    )
    assert found == {"q1": ("duplicate_reference", "of q0 (row 0 of a.jsonl), the same program")}


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


@pytest.mark.parametrize(("num_before", "num_dropped"), [(4, 1), (5, 0)])
def test_a_statement_that_five_rows_have_is_no_longer_looked_at(num_before, num_dropped):
    """The last row has the statement of all of them, and half of the first one's code."""
    rows = [completion(number) for number in range(num_before)]
    lines = completion(0)[0].split("\n")
    other = completion(99)[0].split("\n")
    entries = entries_of(*rows, ("\n".join([*lines[:6], *other[6:]]), "def g(x): return 0"))
    found = check_duplicates(entries, frozenset())
    assert sum(isinstance(dropped, Dropped) for dropped in found) == num_dropped


def test_copies_under_other_names_are_duplicates_however_common_their_statement_is():
    """Six of eleven rows are copies, so that all their words are common phrases; the rest of their prompts differs."""

    def copy(number):
        code = " ".join(f"n{number}{place}" for place in range(10))
        return f"{SUM}\n\n```python\n{code}\n```", f"def f(x): return {number}"

    others = [(" ".join(f"w{row}{place}" for place in range(12)), f"def g(x): return {row}") for row in range(5)]
    assert list(dropped_of(*others, *map(copy, range(6)))) == [f"q{row}" for row in range(6, 11)]
