"""Both rewards with free weights, and with separate values for unusable programs and suites.

A run chooses these rewards by name; :class:`AdversarialReward` scores programs and suites without a run.

    R_C = invalid_code                                                 if the program does not load
          (Pass_hist + mean Pass_new) / 2, the paper's R_C             otherwise
    R_T = invalid_test                                                 if the suite has no valid case
          0                                                            if the program does not load
          validity_weight * Valid + difficulty_weight * Adv            otherwise

Valid and Adv are the paper's terms, see :func:`~reward_fns.test_llm_reward.test_llm_reward`. With
``validity_weight=alpha``, ``difficulty_weight=1 - alpha`` and ``invalid_code=invalid_test=0``, both rewards are equal
to the paper's. The weights need not sum to 1, because GRPO divides the advantages of a group by the standard deviation
of its rewards. What counts is the ratio of the two weights, and their size compared with ``invalid_test``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox import CandidateVerdict, JudgeRequest

from .breakdown import Breakdown
from .code_llm_reward import code_llm_reward
from .extract import ExtractionFailure, asked_names, extract_candidate, extract_suite
from .interface import JudgedCandidate, QuestionVerdicts, lookup
from .test_llm_reward import ADVERSARIAL_READINGS, test_llm_reward
from .verl_entry import judge_here


def weighted_code_rewards(question: QuestionVerdicts, *, invalid_code: float = -1.0) -> list[Breakdown | None]:
    """R_C of each candidate, by the formula above; ``rewards.code.name=weighted``.

    Returns:
        Breakdowns with the parts ``history`` and ``new``, or with the part ``invalid`` alone. A candidate without a
        verdict gets None.

    Raises:
        ValueError: ``invalid_code`` is not a finite number.
    """
    _check_finite(invalid_code=invalid_code)
    verdicts = [candidate.code_verdict for candidate in question.candidates]
    return [None if verdict is None else _code(verdict, invalid_code) for verdict in verdicts]


def weighted_test_rewards(
    question: QuestionVerdicts,
    *,
    validity_weight: float = 0.6,
    difficulty_weight: float = 0.4,
    invalid_test: float = -0.5,
    adversarial: str = "release",
) -> list[list[Breakdown | None]]:
    """R_T of each suite, [C][S], by the formula above; ``rewards.test.name=weighted``.

    Weights are at least 0; ``adversarial`` is a name in ``ADVERSARIAL_READINGS``.

    Returns:
        Breakdowns with the parts ``validity`` and ``adversarial``, or with the part ``invalid`` alone. The suites of a
        candidate without a verdict get None.

    Raises:
        ValueError: a weight is negative, a number is not finite, or the reading is unknown.
    """
    weights = {"validity_weight": validity_weight, "difficulty_weight": difficulty_weight}
    _check_finite(**weights, invalid_test=invalid_test)
    if negative := {name: value for name, value in weights.items() if value < 0.0}:
        raise ValueError(f"weights of the Test LLM's reward must be at least 0, got {negative}")
    lookup(adversarial, ADVERSARIAL_READINGS, what="reading of the adversarial reward")

    def reward_suite(verdict: CandidateVerdict | None, s: int) -> Breakdown | None:
        if verdict is None:
            return None
        terms = test_llm_reward(verdict, s, num_cases=question.num_cases, adversarial=adversarial).terms
        parts = {
            "validity": terms["loaded"] * validity_weight * terms["valid"],
            "adversarial": terms["loaded"] * difficulty_weight * terms["adv"],
        }
        if not verdict.suites[s].cases:
            parts = {"invalid": invalid_test}
        return Breakdown(parts=parts, terms=terms)

    rewards = []
    for candidate in question.candidates:
        rewards.append([reward_suite(candidate.verdict, s) for s in range(len(candidate.suite_texts))])
    return rewards


@dataclass(frozen=True, kw_only=True)
class AdversarialReward:
    """Scores a program on tests, or a suite against a program, in the sandbox. It is thread-safe.

    >>> reward = AdversarialReward()
    >>> tests = "assert double(3) == 6\\nassert double(-1) == -2"
    >>> right, wrong = "def double(x): return 2 * x", "def double(x): return abs(2 * x)"
    >>> [reward.score_code(program, tests, reference=right).total for program in (right, wrong, "def double(")]
    [1.0, 0.5, -1.0]
    >>> reward.score_test(tests, wrong, right).parts  # both asserts are right, one breaks the program
    {'validity': 0.6, 'adversarial': 0.2}
    >>> float(reward.score_test("assert double() == 0", wrong, right))  # the reference raises
    -0.5

    A training run gets the same reward by ``AdversarialCodeTrainer(reward_fn=reward)``, or by the keys of
    :meth:`settings`.

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
    """Arguments of ``sandbox.LocalRunner``. All instances in a process share one judge, so all instances need the same
    arguments."""

    def __post_init__(self) -> None:
        if not isinstance(self.sandbox, Mapping):
            raise ValueError(f"sandbox must hold arguments of sandbox.LocalRunner, got {self.sandbox!r}")
        # These calls check the values, for a question without candidates.
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
        """Configuration keys for a run that trains with this reward. They do not change the run's ``sandbox``."""
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
        """R_C of one program on the given tests, as a ``Breakdown``; ``float`` converts it to a number.

        Args:
            code: a program, or a response with a program in a fenced block.
            tests: asserts in one text, or a list of asserts. Only tests that the reference shows to be valid count.
            reference: source of a correct solution, without a fence. The reference decides which tests are valid.

        Raises:
            ValueError: an argument has a wrong type, or no test is valid, so the tests say nothing about the program.
            sandbox.SandboxUnavailableError: the sandbox could not run a program. An outage earns no reward.
        """
        verdict, number = self._judge(code, tests, reference, given=True)
        suite = verdict.suites[0]
        if not suite.cases:
            reasons = [f"{rejection.reason}: {rejection.detail}" for rejection in suite.rejections]
            first_reason = reasons[0] if reasons else "no assert was found"
            raise ValueError(
                f"tests must hold at least one valid test to score a program, got {number}, none valid: {first_reason}"
            )
        return _code(verdict, self.invalid_code)

    def score_test(
        self,
        test: str | Sequence[str],
        code: str,
        reference_code: str,
    ) -> Breakdown:
        """R_T of one suite against one program. K is the number of asserts in the suite.

        The arguments have the same forms as in :meth:`score_code`.
        """
        verdict, num_cases = self._judge(code, test, reference_code, given=False)
        candidate = JudgedCandidate(source=code, verdict=verdict, suite_texts=("",))
        question = QuestionVerdicts(
            question_id="",
            num_cases=max(1, num_cases),
            candidates=(candidate,),
        )
        [[reward]] = weighted_test_rewards(question, **self._test_kwargs, adversarial=self.adversarial)
        assert reward is not None  # since the candidate has a verdict
        return reward

    def _judge(
        self, code: str, tests: str | Sequence[str], reference: str, *, given: bool
    ) -> tuple[CandidateVerdict, int]:
        """Return the program's verdict and the number of tests. The tests are the only suite of the verdict."""
        if not isinstance(code, str) or not isinstance(reference, str) or not isinstance(tests, str | list | tuple):
            got = ", ".join(type(argument).__name__ for argument in (code, tests, reference))
            raise ValueError(
                f"program and reference must be texts, and tests must be a text or a list of asserts, got {got}"
            )
        suite = extract_suite(tests) if isinstance(tests, str) else tuple(tests)
        texts = () if isinstance(suite, ExtractionFailure) else suite
        extracted = extract_candidate(code, names=asked_names((), reference, texts))
        program = None if isinstance(extracted, ExtractionFailure) else extracted
        request = JudgeRequest.from_mapping(
            {"reference": reference, "candidate": program, "suites": (texts,), "given": given}
        )
        return judge_here(request, dict(self.sandbox)), len(texts)


def _code(verdict: CandidateVerdict, invalid_code: float) -> Breakdown:
    paper = code_llm_reward(verdict)
    return paper if verdict.loaded else Breakdown(parts={"invalid": invalid_code}, terms=paper.terms)


def _check_finite(**values: float) -> None:
    # The bound leaves room for weighted sums in float32. Python takes True for an int, so booleans are refused first.
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e30 < value < 1e30:
            raise ValueError(f"{name} must be a finite number, got {value!r}")
