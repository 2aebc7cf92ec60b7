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
from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError, SuiteVerdict

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
    """Judge every candidate on the question's own tests as well, for metrics only."""
    with_greedy: bool = False
    """Validation: also one program at temperature 0, without suites."""
    num_probe_suites: int = 0
    """Validation: suites for each of the question's wrong programs."""


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
    """Of the generated suites (or the given tests) and the replays; None after an outage."""
    pooled: SuiteVerdict | None = None
    """Of all cases written for any program of the question, where the reward is made of those."""
    hidden: CandidateVerdict | None = None
    """Of the question's own tests, where they were asked for."""
    reward: Breakdown | None = None
    outage: str = ""
    generation_seconds: float = 0.0
    judge_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    task: EpisodeTask
    candidates: tuple[CandidateResult, ...]
    greedy: CandidateResult | None = None
    """Decoded at temperature 0 and judged on the hidden tests; in validation, where asked for."""
    probes: tuple[CandidateResult, ...] = ()
    """The question's wrong programs with the suites written for them, in validation."""

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
        black_box: bool = False,
        judge_timeout_seconds: float,
        greedy: Sampler | None = None,
    ) -> None:
        """``black_box``: the Test LLM is not shown the program. ``greedy``: the Code LLM at temperature 0."""
        self._code = code
        self._greedy = greedy
        self._test = test
        self._judge = judge
        self._episode = episode
        self._rewards = rewards
        self._judge_timeout_seconds = judge_timeout_seconds
        pair = find_prompt_pair(prompt_pair)
        self._code_template, self._test_template = pair.code, pair.black_box_test if black_box else pair.test

    async def run(self, task: EpisodeTask) -> Episode:
        """All C candidates at once; each goes on to its suites and the judge as soon as it is there.

        An outage is recorded in the candidate it hit and masks that candidate alone. Any other exception (a lost
        server) ends the episode and reaches the trainer.
        """
        candidates, greedy, probes = await asyncio.gather(
            self._candidates(task), self._greedy_candidate(task), self._probes(task)
        )
        return Episode(task=task, candidates=candidates, greedy=greedy, probes=probes)

    async def _candidates(self, task: EpisodeTask) -> tuple[CandidateResult, ...]:
        found = await asyncio.gather(*[self._candidate(task, c) for c in range(task.num_candidates)])
        if self._rewards.code_tests == "pooled":
            pool = dict.fromkeys(text for one in found for suite in one.suites for text in suite.asserts)
            found = await asyncio.gather(*[self._pooled(task, one, tuple(pool)) for one in found])
        return tuple(found)

    async def _greedy_candidate(self, task: EpisodeTask) -> CandidateResult | None:
        if not task.with_greedy or self._greedy is None:
            return None
        messages = render(self._code_template, prompt=task.question.prompt)
        response = await self._greedy.sample(messages, seed=0, session=task.question.id)
        result = candidate_result(response)
        try:
            request = request_for(task.question, result, history=())
            hidden = await self._ask(hidden_request(request, task.question))
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, outage=_outage(error))
        return replace(result, hidden=hidden)

    async def _probes(self, task: EpisodeTask) -> tuple[CandidateResult, ...]:
        programs = task.question.wrong_programs if task.num_probe_suites else ()
        return tuple(await asyncio.gather(*[self._probe(task, p, source) for p, source in enumerate(programs)]))

    async def _probe(self, task: EpisodeTask, p: int, source: str) -> CandidateResult:
        shown = Response(prompt_ids=(), token_ids=(), log_probs=(), text=source, weights_step=task.step)
        result = CandidateResult(response=shown, source=source)
        try:
            suites = await self._suites(task, f"probe{p}", source, num_suites=task.num_probe_suites)
        except PromptTooLongError:
            return replace(result, refusal=TEST_PROMPT_TOO_LONG)
        return await self._judged(replace(task, history=(), with_hidden_tests=False), replace(result, suites=suites))

    async def _candidate(self, task: EpisodeTask, c: int) -> CandidateResult:
        started = time.monotonic()
        key = (task.step, task.question.id, c)
        messages = render(self._code_template, prompt=task.question.prompt)
        response = await self._code.sample(
            messages, seed=sampling_seed(task.seed, "code", *key), session=task.question.id
        )
        result = candidate_result(response)
        if result.source is not None and task.num_suites:
            try:
                suites = await self._suites(task, c, result.source, num_suites=task.num_suites)
                result = replace(result, suites=suites)
            except PromptTooLongError:
                # Cutting the prompt would show the Test LLM half a program, so nothing is learned from this one.
                result = replace(result, refusal=TEST_PROMPT_TOO_LONG)
        result = replace(result, generation_seconds=time.monotonic() - started)
        return await self._judged(task, result)

    async def _suites(
        self, task: EpisodeTask, c: int | str, source: str, *, num_suites: int
    ) -> tuple[SuiteResult, ...]:
        cases = self._episode.cases_per_suite
        messages = render(self._test_template, prompt=task.question.prompt, candidate=source, num_cases=cases)
        key = (task.step, task.question.id, c)
        session = f"{task.question.id}/{c}"
        responses = await asyncio.gather(
            *[
                self._test.sample(messages, seed=sampling_seed(task.seed, "test", *key, s), session=session)
                for s in range(num_suites)
            ]
        )
        return tuple(suite_result(response) for response in responses)

    async def _judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        started = time.monotonic()
        request = request_for(task.question, result, history=task.history)
        if self._rewards.uses_given_tests:
            request = replace(request, suites=(given_tests(task.question, self._rewards),))
        try:
            verdict = await self._ask(request)
            hidden = None
            if task.with_hidden_tests and task.question.tests:
                hidden = await self._ask(hidden_request(request, task.question))
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, outage=_outage(error))
        result = replace(result, verdict=verdict, hidden=hidden, judge_seconds=time.monotonic() - started)
        return rewarded(result, rewards=self._rewards, num_cases=self._episode.cases_per_suite)

    async def _pooled(self, task: EpisodeTask, result: CandidateResult, pool: tuple[str, ...]) -> CandidateResult:
        """The candidate with a reward made of all the question's cases; its suites keep theirs."""
        if result.verdict is None or result.reward is None:
            return result
        request = replace(request_for(task.question, result, history=()), suites=(pool,))
        try:
            pooled = (await self._ask(request)).suites[0]
        except (SandboxUnavailableError, TimeoutError) as error:
            masked = tuple(replace(suite, reward=None) for suite in result.suites)
            return replace(result, suites=masked, verdict=None, reward=None, outage=_outage(error))
        return replace(result, pooled=pooled, reward=code_reward(replace(result.verdict, suites=(pooled,))))

    async def _ask(self, request: JudgeRequest) -> CandidateVerdict:
        async with asyncio.timeout(self._judge_timeout_seconds):
            return await self._judge.judge(request)


def _outage(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def given_tests(question: Question, rewards: RewardSettings) -> tuple[str, ...]:
    """The dataset's tests that the Code LLM is rewarded on, with ``code_tests`` "golden" or "hidden"."""
    return question.tests if rewards.code_tests == "hidden" else question.golden_tests[: rewards.num_golden]


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
