"""Both rewards with free weights, and with values of their own for unusable programs and suites.

They serve in a run by name, and by hand as :class:`AdversarialReward`.

    R_C = invalid_code                                                 where no program loads
          (Pass_hist + mean Pass_new) / 2, the paper's R_C             else
    R_T = invalid_test                                                 where a suite has no valid case
          validity_weight * Valid + difficulty_weight * Adv            else; 0 where the program does not load

Valid and Adv are the paper's, see :func:`~reward_fns.test_llm_reward.test_llm_reward`. With ``validity_weight=alpha``,
``difficulty_weight=1 - alpha`` and ``invalid_code=invalid_test=0`` this is Code-A1's reward for every suite that has a
valid case. Weights need not sum to 1, because GRPO divides by a group's spread: only their ratio counts, and their size
against the values of unusable programs and suites.

With ``overlong_limit`` and ``overlong_buffer`` both rewards fall by up to 1 where a response comes near its limit, see
:func:`overlong_penalty`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .breakdown import Breakdown
from .code_llm_reward import code_llm_reward
from .extract import ExtractionFailure, asked_names, extract_candidate, extract_suite
from .interface import JudgedCandidate, QuestionVerdicts
from .lookup import lookup
from .sandbox_seam import CandidateVerdict, JudgeRequest
from .test_llm_reward import ADVERSARIAL_READINGS, test_llm_reward
from .verl_entry import judge_here


def overlong_penalty(tokens: int, *, limit: int, buffer: int) -> float:
    """0 up to ``limit - buffer`` tokens, then a straight line down to -1 at ``limit`` (DAPO, arXiv 2503.14476, eq. 13).

    A response that its limit cuts off is mostly useless. The line teaches this before the limit is reached.

    Raises:
        ValueError: ``0 <= buffer <= limit`` does not hold, or one of them is no whole number.
    """
    if not (isinstance(limit, int) and isinstance(buffer, int) and 0 <= buffer <= limit):
        raise ValueError(f"overlong_buffer must be a number of tokens in [0, overlong_limit={limit!r}], got {buffer!r}")
    return -min(1.0, max(0, tokens - limit + buffer) / buffer) if buffer else 0.0


def weighted_code_rewards(
    question: QuestionVerdicts, *, invalid_code: float = -1.0, overlong_limit: int = 0, overlong_buffer: int = 0
) -> list[Breakdown | None]:
    """R_C of each candidate, by the formula above; ``rewards.code.name=weighted``.

    Returns:
        Parts ``history`` and ``new``, or ``invalid`` alone, and ``overlong`` with a buffer. None for a candidate
        without a verdict.

    Raises:
        ValueError: ``invalid_code`` is not a finite number, or :func:`overlong_penalty` refuses its numbers.
    """
    _check_finite(invalid_code=invalid_code)
    overlong_penalty(0, limit=overlong_limit, buffer=overlong_buffer)  # refuses wrong numbers
    rewards: list[Breakdown | None] = []
    for candidate in question.candidates:
        reward = None
        if candidate.code_verdict is not None:
            reward = _code(candidate.code_verdict, invalid_code)
            reward = _with_overlong(reward, candidate.response_tokens, overlong_limit, overlong_buffer)
        rewards.append(reward)
    return rewards


def weighted_test_rewards(
    question: QuestionVerdicts,
    *,
    validity_weight: float = 0.6,
    difficulty_weight: float = 0.4,
    invalid_test: float = -0.5,
    adversarial: str = "release",
    overlong_limit: int = 0,
    overlong_buffer: int = 0,
) -> list[list[Breakdown | None]]:
    """R_T of each suite, [C][S], by the formula above; ``rewards.test.name=weighted``.

    Weights are at least 0; ``adversarial`` is a name in ``ADVERSARIAL_READINGS``.

    Returns:
        Parts ``validity`` and ``adversarial``, or ``invalid`` alone, and ``overlong`` with a buffer. None for the
        suites of a candidate without a verdict.

    Raises:
        ValueError: a weight is negative, a number is not finite, the reading is unknown, or :func:`overlong_penalty`
            refuses its numbers.
    """
    weights = {"validity_weight": validity_weight, "difficulty_weight": difficulty_weight}
    _check_finite(**weights, invalid_test=invalid_test)
    if negative := {name: value for name, value in weights.items() if value < 0.0}:
        raise ValueError(f"weights of the Test LLM's reward must be at least 0, got {negative}")
    lookup(adversarial, ADVERSARIAL_READINGS, what="reading of the adversarial reward")
    overlong_penalty(0, limit=overlong_limit, buffer=overlong_buffer)  # refuses wrong numbers

    def reward_suite(candidate: JudgedCandidate, s: int) -> Breakdown | None:
        verdict = candidate.verdict
        if verdict is None:
            return None
        terms = test_llm_reward(verdict, s, num_cases=question.num_cases, adversarial=adversarial).terms
        parts = {
            "validity": terms["loaded"] * validity_weight * terms["valid"],
            "adversarial": terms["loaded"] * difficulty_weight * terms["adv"],
        }
        if not verdict.suites[s].cases:
            parts = {"invalid": invalid_test}
        reward = Breakdown(parts=parts, terms=terms)
        if not candidate.suite_tokens:  # a question made by hand may have no lengths
            return reward
        return _with_overlong(reward, candidate.suite_tokens[s], overlong_limit, overlong_buffer)

    return [
        [reward_suite(candidate, s) for s in range(len(candidate.suite_texts))] for candidate in question.candidates
    ]


@dataclass(frozen=True, kw_only=True)
class AdversarialReward:
    """The adversarial reward of a pair of programs and tests, judged in the sandbox; safe to call from many threads.

    >>> reward = AdversarialReward()
    >>> tests = "assert double(3) == 6\\nassert double(-1) == -2"
    >>> right, wrong = "def double(x): return 2 * x", "def double(x): return abs(2 * x)"
    >>> [reward.score_code(program, tests, reference=right).total for program in (right, wrong, "def double(")]
    [1.0, 0.5, -1.0]
    >>> reward.score_test(tests, wrong, right).parts  # both asserts are right, one breaks the program
    {'validity': 0.6, 'adversarial': 0.2}
    >>> float(reward.score_test("assert double() == 0", wrong, right))  # the reference raises
    -0.5

    In a run: ``AdversarialCodeTrainer(reward_fn=reward)``, or the keys of :meth:`settings`.

    Raises:
        ValueError: a value is out of its range.
    """

    validity_weight: float = 0.6
    difficulty_weight: float = 0.4
    invalid_code: float = -1.0
    """Reward of a response without a program that loads."""
    invalid_test: float = -0.5
    """Reward of a suite without a valid case."""
    adversarial: str = "release"
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``sandbox.LocalRunner``; the same for all rewards of a process, which share one judge."""

    def __post_init__(self) -> None:
        if not isinstance(self.sandbox, Mapping):
            raise ValueError(f"sandbox must hold arguments of sandbox.LocalRunner, got {self.sandbox!r}")
        # A question without candidates shows whether the values work.
        question = QuestionVerdicts(question_id="", num_cases=1, candidates=())
        weighted_code_rewards(question, invalid_code=self.invalid_code)
        weighted_test_rewards(question, **self._test_kwargs, adversarial=self.adversarial)

    @property
    def _test_kwargs(self) -> dict[str, Any]:
        return {
            "validity_weight": self.validity_weight,
            "difficulty_weight": self.difficulty_weight,
            "invalid_test": self.invalid_test,
        }

    def settings(self) -> dict[str, Any]:
        """Keys of a run that train with this reward; ``sandbox`` stays the run's own."""
        choice = {"name": "weighted", "path": None}
        return {
            "rewards.code": choice | {"kwargs": {"invalid_code": self.invalid_code}},
            "rewards.test": choice | {"kwargs": self._test_kwargs},
            "rewards.adversarial": self.adversarial,
        }

    def score_code(
        self,
        code: str,
        tests: str | Sequence[str],
        *,
        reference: str,
    ) -> Breakdown:
        """R_C of one program on given tests; ``float()`` of it is the reward.

        Args:
            code: a program, or a response with a program in a fenced block.
            tests: asserts in one text, or a list of asserts. A test that the reference does not confirm as valid does
                not count.
            reference: source of a correct solution without a fence; it decides which tests are valid.

        Raises:
            ValueError: an argument has a wrong type, or no test is valid, so that nothing is known about the program.
            sandbox.SandboxUnavailableError: the sandbox could not run something. An outage is no reward.
        """
        verdict, number = self._judge(code, tests, reference)
        suite = verdict.suites[0]
        if not suite.cases:
            reasons = [f"{rejection.reason}: {rejection.detail}" for rejection in suite.rejections] or ["there is none"]
            raise ValueError(
                f"tests must hold a valid one to score a program, got {number} of which none is: {reasons[0]}"
            )
        return _code(verdict, self.invalid_code)

    def score_test(
        self,
        test: str | Sequence[str],
        code: str,
        reference_code: str,
    ) -> Breakdown:
        """R_T of one suite against one program; K is the number of its asserts. Arguments as in :meth:`score_code`."""
        verdict, num_cases = self._judge(code, test, reference_code)
        candidate = JudgedCandidate(source=code, verdict=verdict, suite_texts=("",))
        question = QuestionVerdicts(
            question_id="",
            num_cases=max(1, num_cases),
            candidates=(candidate,),
        )
        [[reward]] = weighted_test_rewards(question, **self._test_kwargs, adversarial=self.adversarial)
        assert reward is not None  # since the candidate has a verdict
        return reward

    def _judge(self, code: str, tests: str | Sequence[str], reference: str) -> tuple[CandidateVerdict, int]:
        """The verdict with the tests as its only suite, and their number."""
        if not isinstance(code, str) or not isinstance(reference, str) or not isinstance(tests, str | list | tuple):
            got = ", ".join(type(argument).__name__ for argument in (code, tests, reference))
            raise ValueError(f"program and reference must be texts, tests a text or a list of asserts, got {got}")
        suite = extract_suite(tests) if isinstance(tests, str) else tuple(tests)
        texts = () if isinstance(suite, ExtractionFailure) else suite
        extracted = extract_candidate(code, names=asked_names((), reference, texts))
        program = None if isinstance(extracted, ExtractionFailure) else extracted
        request = JudgeRequest.from_mapping({"reference": reference, "candidate": program, "tests": texts})
        return judge_here(request, dict(self.sandbox)), len(texts)


def _code(verdict: CandidateVerdict, invalid_code: float) -> Breakdown:
    paper = code_llm_reward(verdict)
    return paper if verdict.loaded else Breakdown(parts={"invalid": invalid_code}, terms=paper.terms)


def _with_overlong(reward: Breakdown, tokens: int, limit: int, buffer: int) -> Breakdown:
    """The reward with the penalty for a response of so many tokens; without a buffer, the reward itself."""
    if not buffer:
        return reward
    penalty = overlong_penalty(tokens, limit=limit, buffer=buffer)
    return replace(reward, parts={**reward.parts, "overlong": penalty})


def _check_finite(**values: float) -> None:
    # The bound leaves room for weighted sums in float32. True is an int, and a mistake here.
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e30 < value < 1e30:
            raise ValueError(f"{name} must be a finite number, got {value!r}")
