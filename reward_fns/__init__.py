"""Rewards for code and for tests, as functions of a judge's verdicts.

Knows the standard library and ``sandbox``, nothing of verl or torch. ``reward_fns.verl_entry`` is the
entry for any verl job.
"""

from .breakdown import Breakdown
from .code_reward import code_reward, pass_rate
from .extract import ExtractionFailure, extract_candidate, extract_suite
from .interface import CodeReward, JudgedCandidate, QuestionVerdicts, TestReward
from .lookup import lookup
from .registry import (
    CODE_REWARDS,
    TEST_REWARDS,
    find_code_reward,
    find_test_reward,
    reward_code,
    reward_file,
    reward_suites,
)
from .suite_reward import ADVERSARIAL_READINGS, test_reward, validity

__all__ = [
    "ADVERSARIAL_READINGS",
    "CODE_REWARDS",
    "TEST_REWARDS",
    "Breakdown",
    "CodeReward",
    "ExtractionFailure",
    "JudgedCandidate",
    "QuestionVerdicts",
    "TestReward",
    "code_reward",
    "extract_candidate",
    "extract_suite",
    "find_code_reward",
    "find_test_reward",
    "lookup",
    "pass_rate",
    "reward_code",
    "reward_file",
    "reward_suites",
    "test_reward",
    "validity",
]
