"""The references of public problem sets, judged on their own tests: an honest program loses nothing."""

import pytest

from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.jobs.judge_loop import in_parallel
from code_a1_recipe.tools.prepare.references import judged_row
from sandbox import JudgeProcesses

pytestmark = [
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # in the problem sets' own programs
]


NUM_SAMPLED = 40


@pytest.mark.parametrize(
    ("name", "num_questions", "may_fail"),
    [
        # MBPP/123 sums amicable numbers up to 9,999: about a second, which is the limit of a case.
        ("mbpp.jsonl", 968, 1),
        ("HumanEval.jsonl.gz", 159, 0),
    ],
)
def test_references_pass_all_of_their_own_tests(shared_dir, share_of, name, num_questions, may_fail):
    questions = [one for one in load_questions(shared_dir / "data" / name) if one.tests]
    assert len(questions) == num_questions
    questions = share_of(questions, NUM_SAMPLED)
    with JudgeProcesses(2) as judges:
        judged = in_parallel(questions, lambda one: judged_row(one, judges.judge_all), num_threads=8)
        rows = [row for _, row in judged]
    assert [row["outage"] for row in rows if row["outage"]] == []
    faulty = [row for row in rows if row["faults"]]
    assert len(faulty) <= may_fail
    assert len(rows) == len(questions)
