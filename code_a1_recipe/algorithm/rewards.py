"""Composite reward: the configuration names two reward functions, and this module applies them to judged questions.

``reward_fns`` has the formulas R_C and R_T. The keys ``rewards.code`` and ``rewards.test`` replace these formulas by a
user's own functions.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from reward_fns import (
    ADVERSARIAL_READINGS,
    JudgedCandidate,
    QuestionVerdicts,
    find_reward,
    reward_code,
    reward_file,
    reward_suites,
)

from ..errors import SettingsError
from .episode_types import CandidateResult
from .question import Question
from .settings_block import Block, Count, NamedCode, Rate, one_of
from .user_code import user_code

CODE_TESTS = ("suites", "pooled", "golden", "hidden")
"""Tests that may reward the Code LLM (``rewards.code_tests``). "suites": the suites written for the same program, as in
the paper; "pooled": every valid case written for any program of the question; "golden": the question's golden tests;
"hidden": the question's hidden tests, which give an upper bound."""

FULL_REWARD = 1.0 - 1e-6
"""Rewards above this value count as 1, because float32 rounds the last digits."""

CODE_REWARD, TEST_REWARD = "pass_rate", "valid_and_adversarial"
"""Names of the paper's two reward functions."""


class RewardChoice(NamedCode):
    """The choice of a function that rewards one policy."""

    name: str
    """Name of a shipped reward function, or of a function at ``path``."""


class RewardSettings(Block):
    alpha: Rate
    """Weight of validity in the Test LLM's reward; adversarial difficulty has the weight ``1 - alpha``."""
    adversarial: Annotated[str, one_of(ADVERSARIAL_READINGS)]
    nonprintable_penalty: bool
    code_tests: Annotated[str, one_of(CODE_TESTS)] = "suites"
    """Tests that reward the Code LLM."""
    num_golden: Count = 1
    """With "golden": number of the question's golden tests that count, beginning with the first."""
    code: RewardChoice = RewardChoice(name=CODE_REWARD)
    test: RewardChoice = RewardChoice(name=TEST_REWARD)

    @property
    def parameters(self) -> dict[str, Any]:
        """The paper's parameters of R_T. A user's function gets only those that its signature names."""
        return self.model_dump(include={"alpha", "adversarial", "nonprintable_penalty"})

    @property
    def user_files(self) -> dict[str, Path]:
        """Python files with the user's own reward functions, by key."""
        files = {}
        for key, choice in (("rewards.code.path", self.code), ("rewards.test.path", self.test)):
            file = reward_file(choice.path) if choice.path else None
            if file is not None:
                files[key] = file
        return files

    @property
    def uses_given_tests(self) -> bool:
        """The dataset's tests reward the Code LLM, instead of the Test LLM's suites."""
        return self.code_tests in ("golden", "hidden")

    @property
    def is_pooled(self) -> bool:
        """All cases written for any program of the question reward the Code LLM."""
        return self.code_tests == "pooled"

    def find(self, role: str) -> Any:
        """Find the reward function of a policy, "code" or "test".

        Raises:
            SettingsError: the function does not exist, or does not take its arguments.
        """
        choice, defaults = (self.code, {}) if role == "code" else (self.test, self.parameters)
        try:
            return find_reward(role, choice.name, path=choice.path, kwargs=choice.kwargs, defaults=defaults)
        except ValueError as error:
            raise SettingsError(f"rewards.{role}: {error}") from error

    def by_the_paper(self) -> "RewardSettings":
        """A copy with the paper's functions and the same parameters, which rewards each program on its own suites."""
        changes = {
            "code": RewardChoice(name=CODE_REWARD),
            "test": RewardChoice(name=TEST_REWARD),
            "code_tests": "suites",
        }
        return self.model_copy(update=changes)

    def problems(self) -> Iterator[str]:
        """One message for each function that cannot be used."""
        if repeated := sorted(self.parameters.keys() & self.test.kwargs.keys()):
            keys = " and ".join(f"rewards.{name}" for name in repeated)
            yield f"rewards.test.kwargs must not contain {repeated}; set {keys} instead, got {self.test.kwargs!r}"
            return
        for role in ("code", "test"):
            try:
                function = self.find(role)
                # A call with an empty question shows whether a shipped function accepts the values. A user's function
                # may not expect an empty question.
                if getattr(self, role).path is None:
                    function(QuestionVerdicts(question_id="", num_cases=1, candidates=()))
            except SettingsError as error:
                yield str(error)
            except ValueError as error:
                yield f"rewards.{role}.kwargs: {error}"


class QuestionRewards:
    """A run's two reward functions, called once for all candidates of a question."""

    def __init__(self, settings: RewardSettings, *, num_cases: int) -> None:
        """Find the functions; ``num_cases`` is K.

        Raises:
            SettingsError: a function does not exist, or does not take its arguments.
        """
        self._settings = settings
        self._num_cases = num_cases
        self._code, self._test = settings.find("code"), settings.find("test")

    def apply(self, question: Question, candidates: Sequence[CandidateResult]) -> tuple[CandidateResult, ...]:
        """Reward the candidates of one question and their suites.

        A candidate gets no rewards (None) if it met an outage, or if the Test LLM's prompt had no room for it.

        Raises:
            CodeA1Error: a reward function raised an error, or returned a value that is no list of rewards.
        """
        judged = QuestionVerdicts(
            question_id=question.id,
            num_cases=self._num_cases,
            candidates=tuple(self._judged(candidate) for candidate in candidates),
        )
        with _called("code", self._settings.code, self._code, question):
            code_rewards = reward_code(self._code, judged)
        with _called("test", self._settings.test, self._test, question):
            test_rewards = reward_suites(self._test, judged)
        rewarded = []
        for candidate, reward, suite_rewards in zip(candidates, code_rewards, test_rewards, strict=True):
            pairs = zip(candidate.suites, suite_rewards, strict=True)
            suites = tuple(replace(suite, reward=suite_reward) for suite, suite_reward in pairs)
            rewarded.append(replace(candidate, reward=reward, suites=suites))
        return tuple(rewarded)

    def _judged(self, candidate: CandidateResult) -> JudgedCandidate:
        return JudgedCandidate(
            source=candidate.source,
            # If no suite could be written for a program, its verdict covers too few cases for a reward.
            verdict=None if candidate.is_too_long_to_test else candidate.verdict,
            suite_texts=tuple(suite.response.text for suite in candidate.suites),
            response_tokens=len(candidate.response.token_ids),
            # The reward does not use a pooled verdict that only an extension needed.
            pooled=candidate.pooled if self._settings.is_pooled else None,
        )


def _called(role: str, choice: RewardChoice, function: Any, question: Question) -> AbstractContextManager[None]:
    where = f"{choice.path}:{choice.name}" if choice.path else choice.name
    # The registry returns a `functools.partial`, whose attribute `func` is the user's function.
    return user_code(f"rewards.{role}: {where} at question {question.id!r}", function.func)
