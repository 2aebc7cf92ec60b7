"""One question from dispatch to rewards, streaming: nothing waits for what it does not need.

Pure asyncio over three small protocols (two samplers and a judge), so the order of events can be tested without
servers. Axes: C candidates of a question, S suites of a candidate, K cases of a suite.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reward_fns import Breakdown, Refusal, code_reward, extract_candidate, extract_suite, test_reward
from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError

from .prompts import find_prompt_pair, render
from .questions import Question
from .settings import EpisodeSettings, RewardSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What a policy's server returned for one prompt."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    """One per response token, from the server that sampled it."""
    text: str
    weights_step: int
    """Training step whose weights the server held."""


Message = dict[str, str]
"""One chat message: ``{"role": ..., "content": ...}``."""


TEST_PROMPT_TOO_LONG = "test_prompt_too_long"
"""``CandidateResult.refusal`` of a program the Test LLM could not be shown; it is masked, not scored."""


class PromptTooLongError(ValueError):
    """The rendered prompt does not fit the policy's ``rollout.prompt_length``."""


class Sampler(Protocol):
    """One policy's servers."""

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        """Draw one response; ``session`` keeps prompts that share a prefix on one server.

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
    history: tuple[str, ...]
    """Calls of the Mistake Book to replay, taken when the question is dispatched."""
    step: int
    seed: int
    num_candidates: int
    num_suites: int
    with_hidden_tests: bool = False
    """Validation: judge every candidate on the question's own tests as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite written for one candidate."""

    response: Response
    asserts: tuple[str, ...]
    refusal: str = ""
    reward: Breakdown | None = None
    """None while unjudged or after an outage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """One candidate, its suites and what the judge said."""

    response: Response
    source: str | None
    refusal: str = ""
    suites: tuple[SuiteResult, ...] = ()
    verdict: CandidateVerdict | None = None
    """Of the generated suites and the replays; None after an outage."""
    hidden: CandidateVerdict | None = None
    """Of the question's own tests, in validation only."""
    reward: Breakdown | None = None
    outage: str = ""
    generation_seconds: float = 0.0
    judge_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    task: EpisodeTask
    candidates: tuple[CandidateResult, ...]

    @property
    def suite_rewards_CS(self) -> list[list[float] | None]:
        """Suite rewards per candidate; None where an outage or a refusal left a candidate without suites."""
        return [
            [suite.reward.total for suite in candidate.suites if suite.reward is not None] or None
            for candidate in self.candidates
        ]


def sampling_seed(seed: int, *parts: object) -> int:
    """A seed in [0, 2**31) that depends on every part and on nothing else.

    Stable across processes and Python hash seeds, so a run can be repeated sample by sample.
    """
    digest = hashlib.sha256(repr((seed, *parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class EpisodeRunner:
    """Runs episodes with the given samplers and judge; one instance serves many questions at once."""

    def __init__(
        self,
        *,
        code: Sampler,
        test: Sampler,
        judge: AsyncJudge,
        episode: EpisodeSettings,
        rewards: RewardSettings,
        prompt_pair: str,
        judge_timeout_seconds: float,
    ) -> None:
        self._code = code
        self._test = test
        self._judge = judge
        self._episode = episode
        self._rewards = rewards
        self._judge_timeout_seconds = judge_timeout_seconds
        self._prompts = find_prompt_pair(prompt_pair)

    async def run(self, task: EpisodeTask) -> Episode:
        """All C candidates at once; each goes on to its suites and the judge as soon as it is there.

        An outage is recorded in the candidate it hit and masks that candidate alone. Any other exception (a lost
        server) ends the episode and reaches the trainer.
        """
        candidates = await asyncio.gather(*[self._candidate(task, c) for c in range(task.num_candidates)])
        return Episode(task=task, candidates=tuple(candidates))

    async def _candidate(self, task: EpisodeTask, c: int) -> CandidateResult:
        started = time.monotonic()
        key = (task.step, task.question.id, c)
        messages = render(self._prompts.code, prompt=task.question.prompt)
        response = await self._code.sample(
            messages, seed=sampling_seed(task.seed, "code", *key), session=task.question.id
        )
        result = candidate_result(response)
        if result.source is not None:
            try:
                result = replace(result, suites=await self._suites(task, c, result.source))
            except PromptTooLongError:
                # Cutting the prompt would show the Test LLM half a program, so nothing is learned from this one.
                result = replace(result, refusal=TEST_PROMPT_TOO_LONG)
        result = replace(result, generation_seconds=time.monotonic() - started)
        return await self._judged(task, result)

    async def _suites(self, task: EpisodeTask, c: int, source: str) -> tuple[SuiteResult, ...]:
        cases = self._episode.cases_per_suite
        messages = render(self._prompts.test, prompt=task.question.prompt, candidate=source, num_cases=cases)
        key = (task.step, task.question.id, c)
        session = f"{task.question.id}/{c}"
        responses = await asyncio.gather(
            *[
                self._test.sample(messages, seed=sampling_seed(task.seed, "test", *key, s), session=session)
                for s in range(task.num_suites)
            ]
        )
        return tuple(suite_result(response) for response in responses)

    async def _judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        started = time.monotonic()
        request = request_for(task.question, result, history=task.history)
        try:
            async with asyncio.timeout(self._judge_timeout_seconds):
                verdict = await self._judge.judge(request)
                hidden = None
                if task.with_hidden_tests and task.question.tests:
                    hidden = await self._judge.judge(hidden_request(request, task.question))
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, outage=f"{type(error).__name__}: {error}")
        result = replace(result, verdict=verdict, hidden=hidden, judge_seconds=time.monotonic() - started)
        return rewarded(result, rewards=self._rewards, num_cases=self._episode.cases_per_suite)


def request_for(question: Question, result: CandidateResult, *, history: tuple[str, ...]) -> JudgeRequest:
    """What the judge is asked about one candidate, its suites and the replayed calls."""
    return JudgeRequest(
        question_id=question.id,
        reference=question.reference,
        candidate=result.source,
        suites=tuple(suite.asserts for suite in result.suites),
        history=history,
        prelude=question.prelude,
        entry_points=question.entry_points,
    )


def hidden_request(request: JudgeRequest, question: Question) -> JudgeRequest:
    """The same candidate on the question's own tests."""
    return replace(request, suites=(question.tests,), history=())


def rewarded(result: CandidateResult, *, rewards: RewardSettings, num_cases: int) -> CandidateResult:
    """A judged candidate with its reward and its suites'; ``num_cases`` is K.

    None is given where the Test LLM could not be shown the program: nothing is learned from that one.
    """
    verdict = result.verdict
    assert verdict is not None
    if result.refusal == TEST_PROMPT_TOO_LONG:
        return result
    suites = tuple(
        replace(
            suite,
            reward=test_reward(
                verdict,
                s,
                num_cases=num_cases,
                alpha=rewards.alpha,
                adversarial=rewards.adversarial,
                response_text=suite.response.text,
                nonprintable_penalty=rewards.nonprintable_penalty,
            ),
        )
        for s, suite in enumerate(result.suites)
    )
    return replace(result, suites=suites, reward=code_reward(verdict))


def candidate_result(response: Response) -> CandidateResult:
    """The response with the program found in it, or why there is none."""
    extracted = extract_candidate(response.text)
    if isinstance(extracted, Refusal):
        return CandidateResult(response=response, source=None, refusal=extracted.reason)
    return CandidateResult(response=response, source=extracted)


def suite_result(response: Response) -> SuiteResult:
    """The response with the asserts found in it, or why there are none."""
    extracted = extract_suite(response.text)
    if isinstance(extracted, Refusal):
        return SuiteResult(response=response, asserts=(), refusal=extracted.reason)
    return SuiteResult(response=response, asserts=extracted)
