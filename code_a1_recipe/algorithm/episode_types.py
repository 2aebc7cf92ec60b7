"""Types of an episode: its task, responses, suites and candidates, and protocols of the servers and the judge.

Axes: C candidates of a question, S suites of a candidate.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reward_fns import Breakdown
from sandbox import CandidateVerdict, JudgeRequest, SuiteVerdict

from .question import Question
from .spans import Span

ScriptedTester = Callable[..., list[str]]
"""``(question, program, *, num_suites, num_cases, seed) -> suites``, a list of S texts with asserts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A server's response to one prompt."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    """One per response token, from the server that sampled it."""
    text: str
    """The whole answer: the beginning that the prompt gave, if any, and the decoded tokens."""
    policy_version: int
    """Training step whose weights the server held."""
    cached_tokens: int = 0
    """Prompt tokens that the server found in its prefix cache."""
    is_truncated: bool = False
    """The limit ``rollout.response_length`` cut it off."""

    @classmethod
    def scripted(cls, text: str) -> "Response":
        """A text that no policy sampled. It has no tokens, so that nothing is trained on it."""
        return cls(prompt_ids=(), token_ids=(), log_probs=(), text=text, policy_version=0)


Message = dict[str, str]
"""One chat message: ``{"role": ..., "content": ...}``."""


class PromptTooLongError(ValueError):
    """The rendered prompt does not fit the policy's ``rollout.prompt_length``."""


class Sampler(Protocol):
    """One policy's servers."""

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Draw one response; ``session`` keeps prompts that share a prefix on one server.

        Each step needs sessions of its own, because verl binds a session to one server for ever.

        Raises:
            PromptTooLongError: the prompt exceeds the configured length.
        """
        ...


class AsyncJudge(Protocol):
    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        """Raises SandboxUnavailableError on an outage, which is never a verdict."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTask:
    """The trainer's order to a worker for one question."""

    question: Question
    history: tuple[str, ...] = ()
    """Calls from the Mistake Book to replay (``T_hist``)."""
    step: int
    seed: int
    num_candidates: int
    num_suites: int
    index: int = 0
    """Place of the question in its step."""
    with_hidden_tests: bool = False
    """Also judge every candidate on the question's hidden tests, for metrics only."""
    until_timeout: bool = False
    """A program that times out in one hidden test is not asked the others."""
    is_validation: bool = False
    """The hidden tests are what is measured, so their outage counts as the candidate's outage."""
    with_greedy: bool = False
    """Validation: also one program at temperature 0, without suites."""
    num_buggy_program_suites: int = 0
    """Validation: suites for each of the question's buggy programs."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Messages of the trainer's extensions to the workers' extensions, by the extension's name."""
    started_at: float = field(default_factory=time.time)
    """Start of the step in Unix seconds, the zero of all spans. The clocks of all nodes are assumed to agree."""

    def span_since(self, started: float) -> Span:
        """From ``started`` (Unix seconds) until now."""
        # Milliseconds are enough, and keep records short.
        return round(started - self.started_at, 3), round(time.time() - self.started_at, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite written for one candidate."""

    response: Response
    asserts: tuple[str, ...]
    extraction_failure: str = ""
    """Why the response holds no asserts: ``ExtractionFailure.reason``."""
    reward: Breakdown | None = None
    """Its reward; None before it is judged, and after an outage."""
    span: Span | None = None
    """When it was sampled, from the request to its last token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """One candidate, its suites and what the judge said."""

    response: Response
    source: str | None
    extraction_failure: str = ""
    """Why the response holds no program: ``ExtractionFailure.reason``."""
    is_too_long_to_test: bool = False
    """The Test LLM's prompt has no room for the program, so the candidate is masked for both policies."""
    suites: tuple[SuiteResult, ...] = ()
    verdict: CandidateVerdict | None = None
    """The verdict on its suites (or the dataset's tests) and the replays; None after an outage."""
    pooled: SuiteVerdict | None = None
    """The verdict on all cases written for any program of the question, where the reward or an extension needs it."""
    hidden: CandidateVerdict | None = None
    """The verdict on the question's hidden tests, where the task asks for it."""
    reward: Breakdown | None = None
    outage: str = ""
    """Why the sandbox gave no verdict; empty without an outage."""
    span: Span | None = None
    """When the program was sampled, from the request to its last token."""
    judge_span: Span | None = None
    """When it was judged, the wait for a judge included."""
    hidden_span: Span | None = None
    """When it was judged on the hidden tests, where its suites were sampled at the same time."""
    pooled_span: Span | None = None
    """When it was judged on the pooled cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraProgram:
    """A program that the Code LLM wrote for an extension, beside the candidates."""

    kind: str
    """Its name in rollout records."""
    candidate: int
    """Number of the candidate from which it was made."""
    turn: int
    """Turn in which it was written, from 1."""
    before: CandidateResult
    """The program in the prompt: the candidate, or the program of the turn before."""
    result: CandidateResult
    """The new program, judged on the candidate's suites; it has no suites of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    task: EpisodeTask
    candidates: tuple[CandidateResult, ...]
    extra_programs: tuple[ExtraProgram, ...] = ()
    """Programs written for extensions, in the order of the extensions."""
    found: Mapping[str, Any] = field(default_factory=dict)
    """Results that extensions keep of the episode (``Found.kept``), by the extension's name."""
    greedy: CandidateResult | None = None
    """A program sampled at temperature 0 and judged on the hidden tests; in validation, where the task asks for it."""
    buggy_programs: tuple[CandidateResult, ...] = ()
    """The question's buggy programs with the suites written for them, in validation."""

    @property
    def judged_programs(self) -> tuple[CandidateResult, ...]:
        """All programs but the greedy one."""
        return (*self.candidates, *self.buggy_programs, *(extra.result for extra in self.extra_programs))

    def suite_rewards_CS(self) -> list[list[float | None]]:
        """[C, S] rewards of the candidates' suites; None for a suite without a reward."""
        return [
            [None if suite.reward is None else suite.reward.total for suite in candidate.suites]
            for candidate in self.candidates
        ]
