"""Named rewards, in plain dictionaries: a config names one, a plug-in adds one."""

from collections.abc import Callable

from .breakdown import Breakdown
from .code_reward import code_reward
from .lookup import lookup
from .test_reward import ADVERSARIAL_READINGS, test_reward

CODE_REWARDS: dict[str, Callable[..., Breakdown]] = {"pass_rate": code_reward}
"""``(verdict) -> Breakdown``. "pass_rate" is the paper's R_C."""

TEST_REWARDS: dict[str, Callable[..., Breakdown]] = {"valid_and_adversarial": test_reward}
"""``(verdict, suite_index, *, num_cases, ...) -> Breakdown``. "valid_and_adversarial" is the paper's R_T."""


def find_code_reward(name: str) -> Callable[..., Breakdown]:
    """The code reward called ``name``; ValueError with the known names when there is none."""
    return lookup(name, CODE_REWARDS, what="code reward")


def find_test_reward(name: str) -> Callable[..., Breakdown]:
    """The test reward called ``name``; ValueError with the known names when there is none."""
    return lookup(name, TEST_REWARDS, what="test reward")


__all__ = ["ADVERSARIAL_READINGS", "CODE_REWARDS", "TEST_REWARDS", "find_code_reward", "find_test_reward"]
