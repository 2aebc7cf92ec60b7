"""MBPP against MBPP+: how much of a known overlap is found by the texts alone, and how little else."""

from collections import Counter
from dataclasses import replace

import pytest

from code_a1_recipe.curation.overlap import EvalIndex
from code_a1_recipe.curation.reading import read_eval_sets, read_inputs, readers_of
from code_a1_recipe.curation.reading import open_source
from code_a1_recipe.curation.texts import common_phrases

pytestmark = [
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # in the problem sets' own programs
    pytest.mark.filterwarnings("ignore:invalid decimal literal"),
]


def test_most_of_mbpp_plus_is_found_in_mbpp_without_its_ids(shared_dir):
    source = open_source(str(shared_dir / "data" / "mbpp.jsonl"))
    entries = read_inputs([source], readers_of([source]), limit=None).entries
    evaluated = read_eval_sets([open_source(str(shared_dir / "data" / "evalplus_humaneval_mbpp.parquet"))], {})
    ids = {question.id for question in evaluated.questions}
    nameless = [replace(entry, question=replace(entry.question, id=str(entry.row))) for entry in entries]
    phrases = common_phrases([entry.question.prompt for entry in entries])
    index = EvalIndex(evaluated.questions, data_phrases=phrases)
    rules: Counter[str] = Counter()
    others = 0
    for entry, (_, overlaps) in zip(entries, index.overlaps(nameless), strict=True):
        same = [overlap.how for overlap in overlaps if overlap.id == entry.question.id]
        rules.update(same[:1])
        others += bool(overlaps) and entry.question.id not in ids
    # Of the 378 many statements were rewritten, many signatures and answers changed.
    assert rules == {"prompt": 209, "reference": 44, "tests": 94}
    assert others == 21
