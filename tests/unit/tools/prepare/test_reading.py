"""Rows -> questions: one bad row costs itself."""

import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.tools.prepare.reading import open_sources, read_eval_sets, read_inputs
from code_a1_recipe.tools.prepare.rows import Dropped, Entry

GOOD = {"id": "q1", "prompt": "Add one.", "reference": "def f(x): return x + 1", "tests": ["assert f(1) == 2"]}


def read(*paths, limit=None, **options):
    """Entries, and the rows that were left out."""
    rows = list(read_inputs(open_sources(map(str, paths), **({"columns": {}} | options)), limit=limit))
    return [row for row in rows if isinstance(row, Entry)], [row for row in rows if isinstance(row, Dropped)]


def read_evaluated(*paths, **columns):
    return read_eval_sets(open_sources(map(str, paths), columns=columns, is_evaluation=True))


def test_good_rows_become_questions_and_bad_ones_are_counted_by_rule(write):
    entries, dropped = read(
        write(
            GOOD,
            GOOD | {"id": "q2", "reference": "def f(:"},
            GOOD | {"id": "q3", "reference": "def g(:"},
            GOOD | {"id": "q4", "prompt": None},
            GOOD | {"id": None},
            GOOD,
            GOOD | {"id": "q5", "prompt": "lone \ud800 surrogate"},
            GOOD | {"id": 0, "reference": "def f():\n    return " + "-" * 5000 + "1"},
        )
    )
    *dropped, deep = dropped
    assert deep.id == "0"
    assert deep.reason.startswith("unusable row: reference: "), "a program that is nested too deeply costs its row only"
    assert [(entry.row, entry.question.id) for entry in entries] == [(0, "q1")]
    assert [(one.row, one.id, one.reason) for one in dropped] == [
        (1, "q2", "unusable row: reference: must be Python 3"),
        (2, "q3", "unusable row: reference: must be Python 3"),
        (3, "q4", "unusable row: prompt: must be a string"),
        (4, "", "unusable row: id: must be a string that is not empty, or an integer"),
        (5, "q1", "unusable row: id: must be unique"),
        (6, "q5", "unusable row: prompt: must be text that can be written as UTF-8"),
    ]
    assert "invalid syntax" in dropped[0].detail


def test_the_limit_is_on_the_rows_of_each_source(write):
    rows = [GOOD | {"id": f"q{number}"} for number in range(5)]
    entries, _ = read(write(*rows), write(*rows, name="more.jsonl"), limit=2)
    assert [entry.question.id for entry in entries] == ["q0", "q1", "more/q0", "more/q1"]


def test_rows_of_two_sources_with_one_id_are_both_kept_and_of_one_source_the_first(write):
    one, other = write(GOOD, name="a.jsonl"), write(GOOD, GOOD, name="b.jsonl")
    entries, dropped = read(one, other)
    assert [entry.question.id for entry in entries] == ["q1", "b/q1"]
    assert [row.reason for row in dropped] == ["unusable row: id: must be unique"]


def test_columns_may_have_other_names(write):
    row = {"uid": 3, "text": "Add.", "gold": {"code": "def f(x): return x"}}
    columns = {"id": "uid", "prompt": "text", "reference": "gold.code"}
    ((entry,), _) = read(write(row), columns=columns)
    assert (entry.question.id, entry.question.reference) == ("3", "def f(x): return x")


def test_columns_that_nobody_knows_are_refused_with_the_options_that_name_them(write):
    with pytest.raises(InputError, match=r"no adapter knows these columns.*--columns id=COLUMN"):
        read(write({"a": 1}))
    with pytest.raises(InputError, match="'mbpp' adapter needs the columns"):
        read(write(GOOD), adapter="mbpp")


def test_tests_that_are_no_literal_asserts_are_counted(write):
    row = {"task_id": 1, "text": "t", "code": "def f(x): return x", "test_list": ["assert f(1) == 1", "assert f(y)"]}
    ((entry,), _) = read(write(row))
    assert entry.removed_tests == ("unwritable",)


def test_of_an_evaluation_set_the_prompt_is_enough(write):
    source = write({"title": "x", "content": "Sort."}, {"title": "y", "content": None}, name="lcb.jsonl")
    with pytest.raises(InputError, match=r"the prompt is enough: --against-columns prompt=COLUMN"):
        read_evaluated(source)
    ((question,), unreadable) = read_evaluated(source, prompt="content", id="title")
    assert (question.data_source, question.id, question.prompt, question.reference) == ("lcb", "x", "Sort.", "")
    assert unreadable == {str(source): 1}


def test_an_evaluation_set_that_is_recognised_needs_no_columns(write):
    source = write(GOOD | {"data_source": "mine", "reference": "broken ("})
    ((question,), _) = read_evaluated(source)
    assert (question.data_source, question.id, question.tests) == ("mine", "q1", ("assert f(1) == 2",))


def test_an_evaluation_set_without_any_prompt_is_refused(write):
    with pytest.raises(InputError, match="no row has a readable prompt"):
        read_evaluated(write(GOOD | {"prompt": " "}))


def test_rows_without_ids_of_two_evaluation_files_with_one_name_are_told_apart(write):
    row = {"prompt": "Sort."}
    a, b = write(row, name="a/test.jsonl"), write(row, row, name="b/test.jsonl")
    found = [(one.data_source, one.id) for one in read_evaluated(a, b, write(row, name="c.jsonl"))[0]]
    assert found == [(str(a), "row 0"), (str(b), "row 0"), (str(b), "row 1"), ("c", "row 0")]


def test_rows_without_ids_of_one_data_source_are_called_after_their_files(write):
    row = {"prompt": "Sort.", "data_source": "mine"}
    found = [one.id for one in read_evaluated(write(row, name="a.jsonl"), write(row, name="b.jsonl"))[0]]
    assert found == ["row 0 of a", "row 0 of b"]
