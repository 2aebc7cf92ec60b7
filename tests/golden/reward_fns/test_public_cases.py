"""Responses as public bug reports have them: what is read from each, judged for real."""

import json
from pathlib import Path

import pytest

from reward_fns.verl_entry import compute_score

FILE = Path(__file__).parents[2] / "data/public_cases.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
OPEN = {
    "suite_approx": "math.isclose and pytest.approx are no comparison that the gate reads",
    "suite_loop": "a loop over literals is not unrolled",
}
"""What is not read yet, and why."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_situation_has_its_right_value(case):
    scores = compute_score(**case["input"])
    found = {name: scores.get(name) for name in case["expect"]}
    assert (found == case["expect"]) is (case["id"] not in OPEN), case["why"]
