"""Rewards for code and for tests, as functions of a judge's verdicts.

The package imports the standard library and ``sandbox``, but neither verl nor torch. Any verl job can call
``reward_fns.verl_entry.compute_score``.
"""

from .breakdown import Breakdown as Breakdown
from .code_llm_reward import code_llm_reward as code_llm_reward, pass_rate as pass_rate
from .extract import (
    ExtractionFailure as ExtractionFailure,
    asked_names as asked_names,
    extract_candidate as extract_candidate,
    extract_suite as extract_suite,
)
from .interface import (
    CodeReward as CodeReward,
    JudgedCandidate as JudgedCandidate,
    QuestionVerdicts as QuestionVerdicts,
    TestReward as TestReward,
)
from .lookup import lookup as lookup
from .registry import (
    CODE_REWARDS as CODE_REWARDS,
    TEST_REWARDS as TEST_REWARDS,
    find_code_reward as find_code_reward,
    find_test_reward as find_test_reward,
    load_module as load_module,
    reward_code as reward_code,
    reward_file as reward_file,
    reward_suites as reward_suites,
)
from .test_llm_reward import (
    ADVERSARIAL_READINGS as ADVERSARIAL_READINGS,
    test_llm_reward as test_llm_reward,
    validity as validity,
)
from .weighted_reward import AdversarialReward as AdversarialReward
