import types

import pytest

from reward_fns import ADVERSARIAL_READINGS, CODE_REWARDS, TEST_REWARDS, code_reward
from reward_fns import find_code_reward as code_reward_named
from reward_fns import find_test_reward as reward_of_suite_named
from reward_fns.sandbox_seam import check_is_ours


def test_the_papers_rewards_are_registered():
    assert code_reward_named("pass_rate") is code_reward
    assert list(CODE_REWARDS) == ["pass_rate"]
    assert list(TEST_REWARDS) == ["valid_and_adversarial"]
    assert list(ADVERSARIAL_READINGS) == ["release", "figure"]


def test_an_unknown_reward_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"^unknown code reward 'pass'; known: pass_rate$"):
        code_reward_named("pass")
    with pytest.raises(ValueError, match=r"known: valid_and_adversarial$"):
        reward_of_suite_named("valid")


def test_a_foreign_package_called_sandbox_is_refused_with_its_place_and_a_cure():
    foreign = types.ModuleType("sandbox")
    foreign.__file__ = "/elsewhere/sandbox/__init__.py"
    foreign.Judge = object
    with pytest.raises(ImportError, match=r"/elsewhere/sandbox.*lacks CandidateVerdict.*PYTHONPATH"):
        check_is_ours(foreign)
