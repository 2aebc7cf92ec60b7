"""``compute_score`` with the real judge, from response text to score."""

import pytest

from reward_fns import verl_entry
from reward_fns.verl_entry import compute_score

REFERENCE = "def largest(numbers):\n    return max(numbers)\n"
TRUTH = {
    "reference": REFERENCE,
    "tests": ["assert largest([1, 3, 2]) == 3", "assert largest([5]) == 5", "assert largest([-4, -2]) == -2"],
}
BROKEN = "def largest(numbers):\n    best = 0\n    for n in numbers:\n        best = max(best, n)\n    return best\n"


@pytest.fixture(scope="module", autouse=True)
def _close_the_judge_afterwards():
    yield
    verl_entry._SHARED.close()


@pytest.mark.parametrize(
    ("response", "score"),
    [
        (f"```python\n{REFERENCE}```", 1.0),
        (f"```python\n{BROKEN}```", 0.6666666865348816),
        ("```python\ndef largest(:\n```", 0.0),
        ("I would use max().", 0.0),
        ("```python\nclass E:\n    __eq__ = lambda s, o: True\ndef largest(numbers): return E()\n```", 0.0),
    ],
)
def test_a_program_scores_its_share_of_the_fixed_tests(response, score):
    assert compute_score("golden", response, TRUTH)["score"] == score


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("assert largest([-1]) == -1\nassert largest([2]) == 2", 0.75),  # both right, one of two breaks it
        ("assert largest([-1]) == 0\nassert largest([2]) == 2", 0.5),  # the incorrect assertion costs validity only
        ("assert largest([2]) == largest([2])\nassert largest([1]) != 2", 0.0),
        ("no tests", 0.0),
    ],
)
def test_a_suite_scores_by_validity_and_by_what_it_breaks(response, score):
    truth = {"reference": REFERENCE, "candidate": BROKEN}
    assert compute_score("golden", response, truth, {"role": "test"}, num_cases=2)["score"] == score


def test_the_judge_comes_back_after_it_was_closed():
    verl_entry._SHARED.close()
    assert compute_score("golden", f"```python\n{REFERENCE}```", TRUTH)["score"] == 1.0
