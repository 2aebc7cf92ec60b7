"""Rewards for code and for tests, as functions of a judge's verdicts.

Knows the standard library and ``sandbox``, nothing of verl or torch. ``reward_fns.verl_entry`` is the
entry for any verl job.
"""

from .breakdown import Breakdown
from .code_reward import code_reward
from .extract import Refusal, extract_candidate, extract_suite
from .lookup import lookup
from .registry import ADVERSARIAL_READINGS, CODE_REWARDS, TEST_REWARDS, find_code_reward, find_test_reward
from .test_reward import test_reward

__all__ = [
    "ADVERSARIAL_READINGS",
    "CODE_REWARDS",
    "TEST_REWARDS",
    "Breakdown",
    "Refusal",
    "code_reward",
    "extract_candidate",
    "extract_suite",
    "find_code_reward",
    "find_test_reward",
    "lookup",
    "test_reward",
]
