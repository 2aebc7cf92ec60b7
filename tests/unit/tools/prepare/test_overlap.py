"""What counts as a question of an evaluation set, rule by rule, and what does not."""

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.prepare.overlap import EvalIndex
from code_a1_recipe.tools.prepare.rows import Dropped, Entry

THIRTEEN = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike"
LONG_PROGRAM = (
    "def f(xs):\n    total = 0\n    for x in xs:\n        if x % 2 == 0 and x > 10:\n            total += x * x - 1\n"
    "    return total\n"
)


def evaluated(**changes):
    fields = {"data_source": "eval", "id": "Eval/1", "prompt": "zulu yankee", "reference": "", "tests": ()}
    return Question(**(fields | changes))


def entry(row=0, **changes):
    fields = {"id": f"q{row}", "prompt": "whiskey victor uniform", "reference": "def g(y): return y"}
    return Entry(file="a.jsonl", row=row, question=Question(**(fields | changes)))


def found(entries, questions):
    """(row, id, how, detail) of every overlap."""
    checked = list(EvalIndex(questions).check(entries))
    assert [one.row for one in checked] == [one.row for one in entries]
    dropped = [one for one in checked if isinstance(one, Dropped)]
    return [(one.row, hit.id, hit.how, hit.detail) for one in dropped for hit in one.overlaps]


def found_in_prompts(prompt, evaluated_prompt):
    return found([entry(prompt=prompt)], [evaluated(prompt=evaluated_prompt)])


# ------------------------------ id ------------------------------


def test_an_id_counts_where_it_names_its_data_set():
    assert found([entry(id="MBPP/3")], [evaluated(id="MBPP/3")]) == [(0, "MBPP/3", "id", "the same id")]
    assert found([entry(id="3")], [evaluated(id="3")]) == []


# ------------------------------ prompt ------------------------------


def test_thirteen_words_in_a_row_are_an_overlap_and_twelve_are_none():
    prompt = "One two three. Alpha Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima {}! four five"
    evaluated_prompt = f"{THIRTEEN} november oscar"
    assert found_in_prompts(prompt.format("Mike"), evaluated_prompt) == [
        (0, "Eval/1", "prompt", f"13 words: {THIRTEEN}")
    ]
    assert found_in_prompts(prompt.format("x"), evaluated_prompt) == []


def test_a_short_statement_counts_where_the_whole_of_it_is_there():
    short = "Find the smallest missing positive number."
    longer = "A list is given. Find the smallest missing positive {} of it, quickly, in place."
    assert found_in_prompts(longer.format("number"), short) == [
        (0, "Eval/1", "prompt", "6 words: find the smallest missing positive number")
    ]
    assert found_in_prompts(longer.format("thing"), short) == []


def test_a_statement_of_five_words_counts_only_where_there_is_no_more():
    short = "Find the maximum of two."
    assert found_in_prompts("Without comparing, find the maximum of two numbers that are given", short) == []
    assert found_in_prompts("find the maximum of two", short) == [(0, "Eval/1", "prompt", "the same words")]


@pytest.mark.parametrize(
    ("shared", "num_found"),
    [
        ("0 1 2 3 4 5 6 7 8 9 10 11 12", 0),
        ("mn op qr st uv wx 6 7 8 9 10 11 12", 0),
        ("mn op qr st uv wx yz 7 8 9 10 11 12", 1),
    ],
)
def test_of_thirteen_words_seven_must_be_more_than_numbers_and_letters(shared, num_found):
    evaluated_prompt = f"hexadecimal 17 {shared} 18 sierra tango"
    assert len(found_in_prompts(f"wheels 27 {shared} 28 quebec papa oscar", evaluated_prompt)) == num_found


@pytest.mark.parametrize(("num_with", "num_found"), [(5, 5), (6, 0)])
def test_words_that_many_evaluation_prompts_share_do_not_count(num_with, num_found):
    """Six of one set's prompts are more than LEAST_QUESTIONS; 5 are not."""
    others = [" ".join(f"w{number}{k}" for k in range(9)) for number in range(num_with)]
    questions = [evaluated(id=f"Eval/{words[:2]}", prompt=f"{THIRTEEN} number {words}") for words in others]
    assert len(found([entry(prompt=f"{THIRTEEN} and then something else altogether")], questions)) == num_found


def test_words_that_many_prompts_of_different_sets_share_do_count():
    questions = [evaluated(data_source=f"s{n}", id=f"s/{n}", prompt=f"{THIRTEEN} number {n}") for n in range(4)]
    row = entry(prompt=f"{THIRTEEN} and then something else altogether")
    assert [hit[1] for hit in found([row], questions)] == ["s/0", "s/1", "s/2", "s/3"]


@pytest.mark.parametrize("statement", [f"{THIRTEEN} november", "golf hotel india juliett", "reverse each list"])
def test_a_question_that_was_copied_often_is_found_in_every_copy(statement):
    """Copies under other names, with other programs: their statement is all that the data's prompts share."""
    rows = [
        entry(row, prompt=f"{statement}\n\nName the function `f{row}(x)`.", reference=f"def f{row}(x): return {row}")
        for row in range(12)
    ]
    assert len(found(rows, [evaluated(prompt=statement)])) == 12


def test_copies_of_one_evaluation_question_do_not_make_its_words_common():
    questions = [evaluated(id=f"Eval/{number}", prompt=THIRTEEN) for number in range(9)]
    assert len(found([entry(prompt=f"A tale. {THIRTEEN} and its end")], questions)) == 9


def test_a_statement_of_ten_words_counts_where_the_whole_of_it_is_there_and_not_where_its_start_is():
    """Six questions begin alike."""
    start = "papa quebec romeo sierra tango uniform"
    questions = [evaluated(id=f"Eval/{n}", prompt=f"{start} a{n}a b{n}b c{n}c d{n}d xx yy zz") for n in range(6)]
    questions[2] = evaluated(id="Eval/2", prompt=f"{start} whiskey yankee zulu alpha")
    rows = [entry(0, prompt=f"Once upon a time. {questions[2].prompt} and so on"), entry(1, prompt=f"{start} only")]
    assert found(rows, questions) == [(0, "Eval/2", "prompt", f"10 words: {questions[2].prompt}")]


def test_a_statement_that_many_questions_have_alone_makes_no_overlap():
    def prompt(name):
        lines = "\n".join(f"    {name}{line} = {name}" for line in range(8))
        return f"Fill in the body of this function now, please do\n```python\ndef {name}():\n{lines}\n```"

    questions = [evaluated(id=f"Eval/{number}", prompt=prompt(f"e{number}")) for number in range(7)]
    assert found([entry(prompt=prompt("d"))], questions) == []


def test_what_our_adapters_add_to_a_prompt_makes_no_overlap():
    added = "\n\nName the function `solve_all_of_it(first, second, third, fourth, fifth)`."
    assert found_in_prompts(f"Reverse it.{added}", f"Sort it.{added}") == []


# ------------------------------ reference ------------------------------


def test_the_same_program_under_other_names_is_an_overlap():
    renamed = LONG_PROGRAM.replace("total", "s").replace("xs", "numbers").replace("def f", "def g")
    assert found([entry(reference=renamed)], [evaluated(reference=LONG_PROGRAM)]) == [
        (0, "Eval/1", "reference", "the same program except for names")
    ]


def test_a_program_with_another_constant_is_no_overlap():
    other = LONG_PROGRAM.replace("- 1", "- 2")
    assert found([entry(reference=other)], [evaluated(reference=LONG_PROGRAM)]) == []


def test_a_common_statement_counts_with_the_code_behind_it():
    """Seven questions have one statement, so only the words of the whole prompt tell which of them is repeated."""
    questions = [evaluated(id=f"Eval/{n}", prompt=f"Fill it in please\n```\nx = {n}\n```") for n in range(7)]
    assert found([entry(prompt=questions[3].prompt)], questions) == [(0, "Eval/3", "prompt", "the same words")]


def test_programs_of_a_few_tokens_answer_different_questions():
    assert found([entry(reference="def g(y): return len(y)")], [evaluated(reference="def f(x): return len(x)")]) == []


# ------------------------------ tests ------------------------------


def test_two_shared_tests_are_an_overlap_and_one_is_none():
    question = evaluated(tests=("assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 4"))
    shared = entry(tests=("assert f(2)==3", "assert f( 1 ) == 2", "assert f(9) == 9"))
    assert found([shared], [question]) == [(0, "Eval/1", "tests", "2 tests or more, such as assert f( 1 ) == 2")]
    repeated = entry(tests=("assert f(2)==3", "assert f(2) == 3"))
    assert found([repeated], [question]) == []


# ------------------------------ all of them ------------------------------


def test_every_question_is_told_once_by_the_first_rule():
    questions = [evaluated(id=f"Eval/{number}", reference=LONG_PROGRAM) for number in range(7)]
    hits = found([entry(id="Eval/6", reference=LONG_PROGRAM)], questions)
    assert [hit[1:3] for hit in hits] == [("Eval/6", "id"), *((f"Eval/{number}", "reference") for number in range(6))]
