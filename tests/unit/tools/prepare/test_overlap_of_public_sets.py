"""MBPP against MBPP+: how much of a known overlap is found by the texts alone, and how little else."""

from collections import Counter
from dataclasses import replace

import pytest

from code_a1_recipe.tools.prepare.overlap import EvalIndex
from code_a1_recipe.tools.prepare.reading import open_sources, read_eval_sets, read_inputs
from code_a1_recipe.tools.prepare.rows import Dropped, Entry

pytestmark = [
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # in the problem sets' own programs
    pytest.mark.filterwarnings("ignore:invalid decimal literal"),
]


@pytest.mark.nightly
def test_most_of_mbpp_plus_is_found_in_mbpp_without_its_ids(shared_dir):
    rows = read_inputs(open_sources([str(shared_dir / "data" / "mbpp.jsonl")], columns={}))
    entries = [row for row in rows if isinstance(row, Entry)]
    held_out = str(shared_dir / "data" / "evalplus_humaneval_mbpp.parquet")
    questions, _ = read_eval_sets(open_sources([held_out], columns={}, is_evaluation=True))
    ids = {question.id for question in questions}
    nameless = [replace(entry, question=replace(entry.question, id=str(entry.row))) for entry in entries]
    index = EvalIndex(questions)
    rules: Counter[str] = Counter()
    others = 0
    for entry, row in zip(entries, index.check(nameless), strict=True):
        overlaps = row.overlaps if isinstance(row, Dropped) else ()
        same = [overlap.how for overlap in overlaps if overlap.id == entry.question.id]
        rules.update(same[:1])
        others += bool(overlaps) and entry.question.id not in ids
    # Of the 378 many statements were rewritten, many signatures and answers changed.
    assert rules == {"prompt": 215, "reference": 43, "tests": 88}
    assert others == 23
