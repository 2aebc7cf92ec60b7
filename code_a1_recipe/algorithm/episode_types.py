"""Types of an episode: its task, responses, suites and candidates, and the protocols of whom it asks.

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
"""``(question, program, *, num_suites, num_cases, seed) -> suites``: prompt and program to S texts of asserts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What a policy's server returned for one prompt."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    """One per response token, from the server that sampled it."""
    text: str
    """The answer: what the tokens say, after the beginning that the prompt gave, if it gave one."""
    policy_version: int
    """Training step whose weights the server held."""
    cached_tokens: int = 0
    """Prompt tokens that the server found in its prefix cache."""
    is_truncated: bool = False
    """It ends where there was no room for more (``rollout.response_length``)."""

    @classmethod
    def scripted(cls, text: str) -> "Response":
        """What no policy sampled: without tokens, so that nothing is trained on it."""
        return cls(prompt_ids=(), token_ids=(), log_probs=(), text=text, policy_version=0)


Message = dict[str, str]
"""One chat message: ``{"role": ..., "content": ...}``."""


class PromptTooLongError(ValueError):
    """The rendered prompt does not fit the policy's ``rollout.prompt_length``."""


class Sampler(Protocol):
    """One policy's servers."""

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Draw one response; ``session`` keeps prompts that share a prefix on one server.

        A session is for one step: verl pins it to one server for ever, so that recurring questions would pile up there.

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
    """What the trainer dispatches for one question."""

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
    """Judge every candidate on the question's own tests as well, for metrics only."""
    until_timeout: bool = False
    """A program that times out in a hidden test is asked no further one."""
    is_validation: bool = False
    """Its hidden tests are what is measured: an outage of theirs is one of the program."""
    with_greedy: bool = False
    """Validation: also one program at temperature 0, without suites."""
    num_buggy_program_suites: int = 0
    """Validation: suites for each of the question's buggy programs."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What extensions of the trainer tell those of the workers, by name."""
    started_at: float = field(default_factory=time.time)
    """When the step began (Unix seconds): the zero of all spans. Clocks of nodes are taken to agree."""

    def span_since(self, started: float) -> Span:
        """From ``started`` (Unix seconds) until now."""
        return round(started - self.started_at, 3), round(time.time() - self.started_at, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite written for one candidate."""

    response: Response
    asserts: tuple[str, ...]
    extraction_failure: str = ""
    """Why the response holds no asserts: ``ExtractionFailure.reason``."""
    reward: Breakdown | None = None
    """None while unjudged or after an outage."""
    span: Span | None = None
    """When it was written, from the request to its last token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """One candidate, its suites and what the judge said."""

    response: Response
    source: str | None
    extraction_failure: str = ""
    """Why the response holds no program: ``ExtractionFailure.reason``."""
    is_too_long_to_test: bool = False
    """The Test LLM's prompt has no room for the program: it is masked, not scored."""
    suites: tuple[SuiteResult, ...] = ()
    verdict: CandidateVerdict | None = None
    """Of the generated suites (or the given tests) and the replays; None after an outage."""
    pooled: SuiteVerdict | None = None
    """Of all cases written for any program of the question, where the reward is made of those."""
    hidden: CandidateVerdict | None = None
    """Of the question's own tests, where they were asked for."""
    reward: Breakdown | None = None
    outage: str = ""
    span: Span | None = None
    """When the program was written, from the request to its last token."""
    judge_span: Span | None = None
    """When it was judged, the wait for a judge included."""
    hidden_span: Span | None = None
    """When it was judged on the hidden tests, where that happened while its suites were written."""
    pooled_span: Span | None = None
    """When it was judged on all cases written for any program of the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraProgram:
    """A program that an extension had written beside the candidates."""

    kind: str
    """Names it in rollout records."""
    candidate: int
    """Number of the candidate that it began with."""
    turn: int
    """From 1."""
    before: CandidateResult
    """The program that was shown: the candidate, or what the turn before made of it."""
    result: CandidateResult
    """Judged on the suites that were written for the candidate; it has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    task: EpisodeTask
    candidates: tuple[CandidateResult, ...]
    extra_programs: tuple[ExtraProgram, ...] = ()
    """Extension by extension."""
    found: Mapping[str, Any] = field(default_factory=dict)
    """What extensions keep of it, by name."""
    greedy: CandidateResult | None = None
    """Decoded at temperature 0 and judged on the hidden tests; in validation, where asked for."""
    buggy_programs: tuple[CandidateResult, ...] = ()
    """The question's buggy programs with the suites written for them, in validation."""

    @property
    def judged_programs(self) -> tuple[CandidateResult, ...]:
        """All programs but the greedy one."""
        return (*self.candidates, *self.buggy_programs, *(extra.result for extra in self.extra_programs))

    def suite_rewards_CS(self) -> list[list[float | None]]:
        """[C, S] rewards of the suites written for the candidates; None for a suite without a reward."""
        return [
            [None if suite.reward is None else suite.reward.total for suite in candidate.suites]
            for candidate in self.candidates
        ]
