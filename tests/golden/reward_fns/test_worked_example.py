"""The worked example of the paper's pipeline figure: K = 3, fail_hist = 1/2, alpha = 0.5."""

import pytest

from reward_fns import code_llm_reward, test_llm_reward as reward_of_suite


@pytest.fixture(scope="module")
def example(make_suite, make_verdict):
    """Suite 1: 3 valid, 1 failure. Suite 2: 2 of 3 valid, none. Suite N: 3 valid, 2 failures."""
    return make_verdict(
        make_suite(3, num_failed=1),
        make_suite(2, num_rejected=1),
        make_suite(3, num_failed=2),
        num_history=2,
        num_history_failed=1,
    )


@pytest.mark.parametrize(
    ("suite_index", "reading", "valid", "adv", "total"),
    [
        (0, "release", 1.0, 0.417, 0.708),
        (0, "figure", 1.0, 0.417, 0.708),
        (1, "release", 0.667, 0.25, 0.458),
        (1, "figure", 0.667, 0.0, 0.333),
        (2, "release", 1.0, 0.583, 0.792),
        (2, "figure", 1.0, 0.583, 0.792),
    ],
)
def test_each_suite_of_the_figure_earns_the_printed_reward(example, suite_index, reading, valid, adv, total):
    reward = reward_of_suite(example, suite_index, num_cases=3, alpha=0.5, adversarial=reading)
    assert round(reward.terms["valid"], 3) == valid
    assert round(reward.terms["adv"], 3) == adv
    assert round(reward.total, 3) == total


def test_the_candidate_of_the_figure_earns_the_mean_of_history_and_new_cases(example):
    # Pass_hist 1/2; Pass_new 2/3, 1 and 1/3, on average 2/3; (1/2 + 2/3) / 2 = 7/12.
    assert round(code_llm_reward(example).total, 4) == 0.5833
