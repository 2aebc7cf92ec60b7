"""Responses as public bug reports have them: what is read from each, judged for real."""

import json
from pathlib import Path

import pytest

from reward_fns.verl_entry import compute_score
from sandbox import Judge, JudgeRequest, LocalRunner

FILE = Path(__file__).parents[2] / "data/public_cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]


def of_kind(kind):
    return pytest.mark.parametrize("case", [one for one in CASES if one["kind"] == kind], ids=lambda case: case["id"])


@of_kind("judge")
def test_a_program_is_judged_as_at_a_contest(case):
    (request,) = case["input"]
    with LocalRunner(num_workers=1) as runner:
        verdict = Judge(runner).judge(JudgeRequest.from_mapping({"question_id": request.pop("id"), **request}))
    results = verdict.suites[0].cases
    found = {
        "valid": len(results),
        "expected_correct": sum(result.expected_correct for result in results),
        "passed": sum(result.outcome == "passed" for result in results),
    }
    assert found == case["expect"], case["why"]


@of_kind("reward")
def test_a_situation_has_its_right_value(case):
    scores = compute_score(**case["input"])
    found = {name: scores.get(name) for name in case["expect"]}
    assert found == case["expect"], case["why"]
