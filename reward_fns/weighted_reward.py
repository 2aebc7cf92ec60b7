"""Both rewards with free weights, and with a value of their own for what cannot be used: as run plug-in and by hand.

    R_C = invalid_code                                                 where no program loads
          (Pass_hist + mean Pass_new) / 2, the paper's R_C             else
    R_T = invalid_test                                                 where a suite has no valid case
          validity_weight * Valid + difficulty_weight * Adv            else; 0 where the program does not load

Valid and Adv are the paper's, see :func:`~reward_fns.test_llm_reward.test_llm_reward`; with ``validity_weight=alpha``,
``difficulty_weight=1 - alpha`` and ``invalid_code=invalid_test=0`` this is Code-A1's reward for every suite that has a
valid case. Weights need not sum to 1: GRPO divides by a group's spread, so only their ratio and what is invalid count.

With ``overlong_limit`` and ``overlong_buffer`` both sink by up to 1 where a response comes near its limit, see
:func:`overlong_penalty`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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

    A response that its limit cuts off is mostly no use, and one that says so only there teaches nothing about length.

    Raises:
        ValueError: not ``0 <= buffer <= limit``, or no whole numbers.
    """
    if not (isinstance(limit, int) and isinstance(buffer, int) and 0 <= buffer <= limit):
        raise ValueError(f"overlong_buffer must be a number of tokens in [0, overlong_limit={limit!r}], got {buffer!r}")
    return -min(1.0, max(0, tokens - limit + buffer) / buffer) if buffer else 0.0


def weighted_code_rewards(
    question: QuestionVerdicts, *, invalid_code: float = -1.0, overlong_limit: int = 0, overlong_buffer: int = 0
) -> list[Breakdown | None]:
    """R_C of each candidate, see the module; ``rewards.code.name=weighted``; None where one has no verdict.

    Parts are ``history`` and ``new``, or ``invalid`` alone, and ``overlong`` with a buffer.

    Raises:
        ValueError: ``invalid_code`` is not a finite number, or :func:`overlong_penalty` refuses its numbers.
    """
    _check_finite(invalid_code=invalid_code)
    shorten = _shortener(overlong_limit, overlong_buffer)
    return [
        None if one.code_verdict is None else shorten(_code(one.code_verdict, invalid_code), one.response_tokens)
        for one in question.candidates
    ]


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
    """R_T of each suite, [C][S], see the module; ``rewards.test.name=weighted``.

    Parts are ``validity`` and ``adversarial``, or ``invalid`` alone, and ``overlong`` with a buffer; None where a
    candidate has no verdict. Weights are at least 0; ``adversarial`` is a name in ``ADVERSARIAL_READINGS``.

    Raises:
        ValueError: a weight is negative, a number is not finite, the reading is unknown, or :func:`overlong_penalty`
            refuses its numbers.
    """
    weights = {"validity_weight": validity_weight, "difficulty_weight": difficulty_weight}
    _check_finite(**weights, invalid_test=invalid_test)
    if negative := {name: value for name, value in weights.items() if value < 0.0}:
        raise ValueError(f"weights of the Test LLM's reward must be at least 0, got {negative}")
    lookup(adversarial, ADVERSARIAL_READINGS, what="reading of the adversarial reward")
    shorten = _shortener(overlong_limit, overlong_buffer)

    def reward(candidate: JudgedCandidate, s: int) -> Breakdown | None:
        if candidate.verdict is None:
            return None
        found = of_suite(candidate.verdict, s)
        # Lengths are known in a run; a question made by hand has none.
        return shorten(found, candidate.suite_tokens[s]) if candidate.suite_tokens else found

    def of_suite(verdict: CandidateVerdict, s: int) -> Breakdown:
        paper = test_llm_reward(
            verdict,
            s,
            num_cases=question.num_cases,
            adversarial=adversarial,
        )
        if not verdict.suites[s].cases:
            return Breakdown(parts={"invalid": invalid_test}, terms=paper.terms)
        gate = paper.terms["loaded"]
        parts = {
            "validity": gate * validity_weight * paper.terms["valid"],
            "adversarial": gate * difficulty_weight * paper.terms["adv"],
        }
        return Breakdown(parts=parts, terms=paper.terms)

    return [[reward(one, s) for s in range(len(one.suite_texts))] for one in question.candidates]


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
    """Reward of what is no program, or does not load."""
    invalid_test: float = -0.5
    """Reward of a suite of which no test is valid."""
    adversarial: str = "release"
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``sandbox.LocalRunner``; the same for all rewards of a process, which share one judge."""

    def __post_init__(self) -> None:
        if not isinstance(self.sandbox, Mapping):
            raise ValueError(f"sandbox must hold arguments of sandbox.LocalRunner, got {self.sandbox!r}")
        nothing = QuestionVerdicts(question_id="", num_cases=1, candidates=())
        weighted_code_rewards(nothing, invalid_code=self.invalid_code)
        weighted_test_rewards(nothing, **self._of_test)

    @property
    def _of_test(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in ("invalid_code", "sandbox")}

    def settings(self) -> dict[str, Any]:
        """Keys of a run that train with this reward; ``sandbox`` is the run's own."""
        of_test = {name: value for name, value in self._of_test.items() if name != "adversarial"}
        choice = {"name": "weighted", "path": None}
        return {
            "rewards.code": choice | {"kwargs": {"invalid_code": self.invalid_code}},
            "rewards.test": choice | {"kwargs": of_test},
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
            code: a program, or a response with one in a fenced block.
            tests: asserts, in one text or a list with one in each item; those that the reference does not confirm as
                valid do not count.
            reference: source of a correct solution, which decides; a fence is no part of it.

        Raises:
            ValueError: an argument is of another type, or no test is valid: then nothing is known of the program.
            sandbox.SandboxUnavailableError: the sandbox could not run something. An outage is no reward.
        """
        verdict, number = self._judge(code, tests, reference)
        if not verdict.suites[0].cases:
            reason = next((f"{one.reason}: {one.detail}" for one in verdict.suites[0].rejections), "there is none")
            raise ValueError(f"tests must hold a valid one to score a program, got {number} of which none is: {reason}")
        return _code(verdict, self.invalid_code)

    def score_test(
        self,
        test: str | Sequence[str],
        code: str,
        reference_code: str,
    ) -> Breakdown:
        """R_T of one suite against one program; K is the number of its asserts. Arguments as in :meth:`score_code`."""
        verdict, num_cases = self._judge(code, test, reference_code)
        judged = JudgedCandidate(source=code, verdict=verdict, suite_texts=("",))
        question = QuestionVerdicts(
            question_id="",
            num_cases=max(1, num_cases),
            candidates=(judged,),
        )
        [[reward]] = weighted_test_rewards(question, **self._of_test)
        assert reward is not None  # it has a verdict
        return reward

    def _judge(self, code: str, tests: str | Sequence[str], reference: str) -> tuple[CandidateVerdict, int]:
        """The verdict with the tests as its only suite, and how many they are."""
        if not isinstance(code, str) or not isinstance(reference, str) or not isinstance(tests, str | list | tuple):
            got = ", ".join(type(one).__name__ for one in (code, tests, reference))
            raise ValueError(f"program and reference must be texts, tests a text or a list of asserts, got {got}")
        suite = extract_suite(tests) if isinstance(tests, str) else tuple(tests)
        texts = () if isinstance(suite, ExtractionFailure) else suite
        found = extract_candidate(code, names=asked_names((), reference, texts))
        program = None if isinstance(found, ExtractionFailure) else found
        request = JudgeRequest.from_mapping({"reference": reference, "candidate": program, "tests": texts})
        return judge_here(request, dict(self.sandbox)), len(texts)


def _code(verdict: CandidateVerdict, invalid_code: float) -> Breakdown:
    paper = code_llm_reward(verdict)
    return paper if verdict.loaded else Breakdown(parts={"invalid": invalid_code}, terms=paper.terms)


def _shortener(limit: int, buffer: int) -> Callable[[Breakdown, int], Breakdown]:
    """What adds the penalty to a reward for a response of so many tokens; without a buffer it adds nothing."""
    overlong_penalty(0, limit=limit, buffer=buffer)

    def shorten(reward: Breakdown, tokens: int) -> Breakdown:
        parts = {**reward.parts, "overlong": overlong_penalty(tokens, limit=limit, buffer=buffer)}
        return replace(reward, parts=parts) if buffer else reward

    return shorten


def _check_finite(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e30 < value < 1e30:
            raise ValueError(f"{name} must be a finite number, got {value!r}")
