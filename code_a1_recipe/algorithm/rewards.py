"""Composite reward: the reward functions that the configuration names, applied to a judged question.

``reward_fns`` has the formulas R_C and R_T. The keys ``rewards.code`` and ``rewards.test`` put a user's own functions
in their place.
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
    find_code_reward,
    find_test_reward,
    reward_code,
    reward_file,
    reward_suites,
)

from ..errors import SettingsError
from .episode_types import CandidateResult
from .question import Question, request_for
from .settings_block import Block, Count, NamedCode, Rate, one_of
from .user_code import user_code

CODE_TESTS = ("suites", "pooled", "golden", "hidden")
"""Tests that the Code LLM may be rewarded on (``rewards.code_tests``): the suites written for the same program, as in
the paper; every valid case written for any program of the question; the question's golden tests; its hidden tests, as
an upper bound."""

FULL_REWARD = 1.0 - 1e-6
"""Rewards above this count as 1, since float32 may round the last digits."""

CODE_REWARD, TEST_REWARD = "pass_rate", "valid_and_adversarial"
"""Names of the paper's two rewards."""


class RewardChoice(NamedCode):
    """The function that rewards one policy."""

    name: str
    """Name of a registered reward, or of a function at ``path``."""


class RewardSettings(Block):
    alpha: Rate
    """Weight of validity in the Test LLM's reward; the rest is adversarial difficulty."""
    adversarial: Annotated[str, one_of(ADVERSARIAL_READINGS)]
    nonprintable_penalty: bool
    code_tests: Annotated[str, one_of(CODE_TESTS)] = "suites"
    """Tests that reward the Code LLM."""
    num_golden: Count = 1
    """With "golden": how many of the question's golden tests count, from the first."""
    code: RewardChoice = RewardChoice(name=CODE_REWARD)
    test: RewardChoice = RewardChoice(name=TEST_REWARD)

    @property
    def parameters(self) -> dict[str, Any]:
        """The paper's parameters of R_T; a user's function gets the ones that it has a parameter for."""
        return self.model_dump(include={"alpha", "adversarial", "nonprintable_penalty"})

    @property
    def user_files(self) -> dict[str, Path]:
        """Python files with the user's own reward functions, by key."""
        paths = {"rewards.code.path": self.code.path, "rewards.test.path": self.test.path}
        return {key: file for key, path in paths.items() if path and (file := reward_file(path))}

    @property
    def uses_given_tests(self) -> bool:
        """The Code LLM is rewarded on tests of the dataset, and not on the Test LLM's."""
        return self.code_tests in ("golden", "hidden")

    @property
    def is_pooled(self) -> bool:
        """The Code LLM is rewarded on all cases written for any program of the question."""
        return self.code_tests == "pooled"

    def by_the_paper(self) -> "RewardSettings":
        """The same parameters with the paper's two functions, on each program's own suites."""
        code, test = RewardChoice(name=CODE_REWARD), RewardChoice(name=TEST_REWARD)
        return self.model_copy(update={"code": code, "test": test, "code_tests": "suites"})

    def problems(self) -> Iterator[str]:
        """One message for each function that cannot be used."""
        if repeated := sorted(self.parameters.keys() & self.test.kwargs.keys()):
            keys = " and ".join(f"rewards.{name}" for name in repeated)
            yield f"rewards.test.kwargs must be without {repeated}: those are {keys}, got {self.test.kwargs!r}"
            return
        for role in ("code", "test"):
            try:
                function = _find(role, self)
                # A question without programs shows whether the values work. A user's function may not expect it.
                if getattr(self, role).path is None:
                    function(QuestionVerdicts(question_id="", num_cases=1, candidates=()))
            except SettingsError as error:
                yield str(error)
            except ValueError as error:
                yield f"rewards.{role}.kwargs: {error}"


class QuestionRewards:
    """A run's two reward functions, called once for all candidates of a question."""

    def __init__(self, settings: RewardSettings, *, num_cases: int) -> None:
        """``num_cases`` is K.

        Raises:
            SettingsError: a function does not exist, or does not take its arguments.
        """
        self._settings = settings
        self._num_cases = num_cases
        self._code, self._test = _find("code", settings), _find("test", settings)

    def apply(self, question: Question, candidates: Sequence[CandidateResult]) -> tuple[CandidateResult, ...]:
        """The candidates of one question with their rewards and with the rewards of their suites.

        A candidate that met an outage, or for which the Test LLM's prompt had no room, has None for all of these.

        Raises:
            CodeA1Error: a reward function failed, or returned something else than rewards.
        """
        judged = QuestionVerdicts(
            question_id=question.id,
            num_cases=self._num_cases,
            candidates=tuple(self._judged(candidate) for candidate in candidates),
            reference=request_for(question, None),
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
            # The Test LLM could not see the program and wrote no suite, so the verdict says too little to reward it.
            verdict=None if candidate.is_too_long_to_test else candidate.verdict,
            suite_texts=tuple(suite.response.text for suite in candidate.suites),
            response_tokens=len(candidate.response.token_ids),
            is_truncated=candidate.response.is_truncated,
            suite_tokens=tuple(len(suite.response.token_ids) for suite in candidate.suites),
            suite_is_truncated=tuple(suite.response.is_truncated for suite in candidate.suites),
            # An extension may need this verdict too; it has a part in the reward only if the run says so.
            pooled=candidate.pooled if self._settings.is_pooled else None,
        )


def _called(role: str, choice: RewardChoice, function: Any, question: Question) -> AbstractContextManager[None]:
    where = f"{choice.path}:{choice.name}" if choice.path else choice.name
    # The registry returns a partial of the user's function.
    return user_code(f"rewards.{role}: {where} at question {question.id!r}", function.func)


def _find(role: str, settings: RewardSettings) -> Any:
    """The reward function of a policy, "code" or "test"."""
    code, test = settings.code, settings.test
    try:
        if role == "code":
            return find_code_reward(code.name, path=code.path, kwargs=code.kwargs)
        return find_test_reward(test.name, path=test.path, kwargs=test.kwargs, defaults=settings.parameters)
    except ValueError as error:
        raise SettingsError(f"rewards.{role}: {error}") from error
