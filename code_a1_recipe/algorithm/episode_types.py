"""Types of an episode: its task and results, and the protocols of its servers and judge.

Axes: C candidates of a question, S suites of a candidate.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reward_fns import Breakdown
from sandbox import CandidateVerdict, JudgeRequest, SuiteVerdict

from .question import Question
from .spans import Span


class ScriptedTester(Protocol):
    """Writes the suites of a program in place of the Test LLM. Returns S texts with asserts."""

    def __call__(self, question: str, program: str, *, num_suites: int, num_cases: int, seed: int) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A server's response to one prompt."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    """The log-probability of each response token, from the server that sampled it."""
    text: str
    """The whole answer: the beginning of the answer, if the prompt gives one, and then the decoded tokens."""
    policy_version: int
    """Number of the training step whose weights the server used."""
    cached_tokens: int = 0
    """Number of prompt tokens that the server found in its prefix cache."""
    is_truncated: bool = False
    """Whether the limit ``rollout.response_length`` cut the response off."""

    @classmethod
    def scripted(cls, text: str) -> "Response":
        """Make a response from a text that no policy sampled. The response has no tokens, so it trains no policy."""
        return cls(prompt_ids=(), token_ids=(), log_probs=(), text=text, policy_version=0)


Message = dict[str, str]
"""One chat message: ``{"role": ..., "content": ...}``."""


class PromptTooLongError(ValueError):
    """The rendered prompt does not fit the policy's ``rollout.prompt_length``."""


class Sampler(Protocol):
    """One policy's servers."""

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Draw one response. All prompts of a ``session`` go to one server, which caches their common prefix.

        Each step needs new sessions, because verl never moves a session to another server.

        Raises:
            PromptTooLongError: the prompt is longer than ``rollout.prompt_length``.
        """
        ...


class AsyncJudge(Protocol):
    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        """Judge one program.

        Raises:
            SandboxUnavailableError: the sandbox has an outage, so there is no verdict.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTask:
    """What the trainer asks a worker to do for one question."""

    question: Question
    history: tuple[str, ...] = ()
    """Calls from the Mistake Book that the candidates replay (``T_hist``)."""
    step: int
    seed: int
    num_candidates: int
    num_suites: int
    index: int = 0
    """Place of the question in its step."""
    with_hidden_tests: bool = False
    """Also judge every candidate on the question's hidden tests, for metrics only."""
    until_timeout: bool = False
    """After a program's first time-out in a hidden test, its remaining hidden tests are skipped."""
    is_validation: bool = False
    """Whether this is a validation. If so, an outage in the hidden tests is an outage of the candidate."""
    with_greedy: bool = False
    """In validation, also sample one program at temperature 0, without suites."""
    num_buggy_program_suites: int = 0
    """Number of suites for each of the question's buggy programs, in validation."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Data that an extension's instance in the trainer sends to its instances in workers, by the extension's name."""
    started_at: float = field(default_factory=time.time)
    """Start of the step in Unix seconds. All spans count from this time. The clocks of all nodes must agree."""

    def span_since(self, started: float) -> Span:
        """The span from ``started`` (Unix seconds) until now."""
        # Spans are rounded to milliseconds, which keeps records short.
        return round(started - self.started_at, 3), round(time.time() - self.started_at, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite written for one candidate."""

    response: Response
    asserts: tuple[str, ...]
    extraction_failure: str = ""
    """``ExtractionFailure.reason`` if the response holds no asserts; otherwise empty."""
    reward: Breakdown | None = None
    """The suite's reward; None before the suite is judged, and after an outage."""
    span: Span | None = None
    """Time of sampling, from the request to the last token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """One candidate, its suites and its verdicts."""

    response: Response
    source: str | None
    extraction_failure: str = ""
    """``ExtractionFailure.reason`` if the response holds no program; otherwise empty."""
    is_too_long_to_test: bool = False
    """The Test LLM's prompt has no room for the program, so the candidate is masked for both policies."""
    suites: tuple[SuiteResult, ...] = ()
    verdict: CandidateVerdict | None = None
    """The verdict on the candidate's suites (or the dataset's tests) and the replays; None after an outage."""
    pooled: SuiteVerdict | None = None
    """The verdict on all cases written for any program of the question, if the reward needs it."""
    hidden: CandidateVerdict | None = None
    """The verdict on the question's hidden tests, if the task asks for it."""
    reward: Breakdown | None = None
    outage: str = ""
    """The reason why the sandbox gave no verdict; empty without an outage."""
    span: Span | None = None
    """Time of sampling, from the request to the last token."""
    judge_span: Span | None = None
    """Time of judging, including the wait for a free judge."""
    hidden_span: Span | None = None
    """Time of judging on the hidden tests, during which the Test LLM may write the suites."""
    pooled_span: Span | None = None
    """Time of judging on the pooled cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    task: EpisodeTask
    candidates: tuple[CandidateResult, ...]
    found: Mapping[str, Any] = field(default_factory=dict)
    """Data for ``Extension.after_step``, by the extension's name."""
    greedy: CandidateResult | None = None
    """A program sampled at temperature 0 and judged on the hidden tests, if a validation task asks for it."""
    buggy_programs: tuple[CandidateResult, ...] = ()
    """The question's buggy programs with the suites written for them, in validation."""

    @property
    def judged_programs(self) -> tuple[CandidateResult, ...]:
        """All programs except the greedy one."""
        return (*self.candidates, *self.buggy_programs)

    def suite_rewards_CS(self) -> list[list[float | None]]:
        """[C, S] rewards of the candidates' suites; None for a suite without a reward."""
        reward_CS = []
        for candidate in self.candidates:
            rewards = [suite.reward for suite in candidate.suites]
            reward_CS.append([None if reward is None else reward.total for reward in rewards])
        return reward_CS
