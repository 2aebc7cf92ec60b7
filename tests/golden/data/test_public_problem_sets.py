"""How many rows and tests of each public problem set are kept; a change here must be meant."""

import pytest

from code_a1_recipe.data.reader import read_questions

pytestmark = [
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # in the problem sets' own programs
]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("mbpp.jsonl", ("mbpp", 974, 2904, 18, 6)),
        ("HumanEval.jsonl.gz", ("humaneval", 164, 1117, 16, 5)),
        pytest.param(
            *("LeetCodeDataset-v0.2.0-train.jsonl.gz", ("leetcode", 1890, 4752, 0, 0)), marks=pytest.mark.nightly
        ),
        ("ULT_Lite.jsonl", ("unleaked", 200, 925, 75, 15)),
        pytest.param(
            *("evalplus_humaneval_mbpp.parquet", ("evalplus", 542, 160773, 3842, 20)), marks=pytest.mark.nightly
        ),
    ],
)
def test_a_public_problem_set_loads_whole(shared_dir, name, counts):
    loaded = read_questions(shared_dir / "data" / name)
    tests = [question.tests for question in loaded.questions]
    num_without_tests = tests.count(())
    assert (loaded.adapter, len(tests), sum(map(len, tests)), loaded.num_dropped_tests, num_without_tests) == counts
