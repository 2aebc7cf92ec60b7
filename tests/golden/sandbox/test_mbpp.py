"""Each reference of MBPP is judged as a candidate. A failed case is a bug of the judge."""

import json

import pytest

from sandbox import Judge, JudgeRequest, LocalRunner

# The gate refuses the tests of these tasks: they build objects, pass types, compute the expected output, or cut the
# result with int(). Task 798 tests the private name `_sum`, which is an entry point only if the request names it.
OUTSIDE_THE_GATE = {367, 533, 596, 601, 798, 912, 927}
NUM_SAMPLED = 60


@pytest.mark.shared
def test_every_reference_passes_its_own_acceptable_tests(shared_dir, share_of):
    rows = [json.loads(line) for line in (shared_dir / "data/mbpp.jsonl").read_text().splitlines()]
    wrong = []
    with LocalRunner(num_workers=2) as runner:
        judge = Judge(runner)
        for row in share_of(rows, NUM_SAMPLED):
            suite = judge.judge(
                JudgeRequest(
                    question_id=str(row["task_id"]),
                    reference=row["code"],
                    candidate=row["code"],
                    prelude=row["test_setup_code"],
                    suites=(tuple(row["test_list"]),),
                )
            ).suites[0]
            is_outside = row["task_id"] in OUTSIDE_THE_GATE
            if bool(suite.num_valid) is is_outside or suite.num_failed or suite.num_expected_incorrect:
                wrong.append((row["task_id"], suite))
    assert wrong == []
