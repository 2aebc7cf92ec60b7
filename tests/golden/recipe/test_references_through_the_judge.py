"""The references of public problem sets, judged on their own tests: an honest program loses nothing."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from code_a1_recipe.check_references import check_reference
from code_a1_recipe.questions import load_questions
from sandbox import Judge, LocalRunner

pytestmark = [
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # in the problem sets' own programs
]


@pytest.mark.parametrize(
    ("name", "num_good", "may_fail"),
    [
        # MBPP/123 sums amicable numbers up to 9,999: about a second, which is the limit of a case.
        ("mbpp.jsonl", 966, {"MBPP/123": "reference_timed_out"}),
        ("HumanEval.jsonl.gz", 154, {}),
    ],
)
def test_references_pass_all_of_their_own_tests(shared_dir, name, num_good, may_fail):
    questions = load_questions(shared_dir / "data" / name, min_tests=1)
    with LocalRunner(num_workers=2) as runner, Judge(runner) as judge, ThreadPoolExecutor(2) as threads:
        checks = list(threads.map(lambda question: check_reference(judge, question), questions))
    faults = {check.question_id: check.category for check in checks if check.reasons}
    assert faults.items() <= may_fail.items()
    assert sum(check.is_good for check in checks) >= num_good
