"""How many rows and tests of each public problem set are kept; a change here must be meant."""

import pytest

from code_a1_recipe.data.reader import read_questions

pytestmark = [
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # in the problem sets' own programs
]


@pytest.mark.parametrize(
    ("name", "adapter", "num_rows", "num_tests", "num_dropped", "num_without_tests"),
    [
        ("mbpp.jsonl", "mbpp", 974, 2904, 18, 6),
        ("HumanEval.jsonl.gz", "humaneval", 164, 1117, 16, 5),
        pytest.param(
            *("LeetCodeDataset-v0.2.0-train.jsonl.gz", "leetcode", 1890, 4752, 0, 0), marks=pytest.mark.nightly
        ),
        ("ULT_Lite.jsonl", "unleaked", 200, 925, 75, 15),
        pytest.param(
            *("evalplus_humaneval_mbpp.parquet", "evalplus", 542, 160773, 3842, 20), marks=pytest.mark.nightly
        ),
    ],
)
def test_a_public_problem_set_loads_whole(
    shared_dir, name, adapter, num_rows, num_tests, num_dropped, num_without_tests
):
    loaded = read_questions(shared_dir / "data" / name)
    assert loaded.adapter == adapter
    assert len(loaded.questions) == num_rows
    assert sum(len(question.tests) for question in loaded.questions) == num_tests
    assert loaded.num_dropped_tests == num_dropped
    assert sum(not question.tests for question in loaded.questions) == num_without_tests
