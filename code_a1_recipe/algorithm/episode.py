"""Episode: one question from candidates and suites to verdicts and rewards; nothing waits for what it does not need.

Pure asyncio over three small protocols (two samplers and a judge), so the order of events can be tested without
servers. Axes: C candidates of a question, S suites of a candidate, K cases of a suite.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reward_fns import ExtractionFailure, extract_candidate, extract_suite
from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError

from .episode_types import (
    AsyncJudge,
    CandidateResult,
    Episode,
    EpisodeTask,
    PromptTooLongError,
    Repair,
    Response,
    Sampler,
    SuiteResult,
)
from .hindsight import HindsightSettings, Lesson, find_lessons
from .prompts import PromptSettings, render, template_for
from .question import Question, request_for
from .repair import repair_turns
from .rewards import QuestionRewards, RewardSettings
from .sampling import sampling_seed
from .scripted_tester import find_scripted_tester
from .settings import EpisodeSettings


@dataclass(kw_only=True, eq=False)
class EpisodeRunner:
    """Runs episodes with the given samplers and judge; one instance serves many questions at once.

    Raises:
        SettingsError: a reward function is not there, or does not take its arguments.
    """

    code: Sampler
    test: Sampler
    judge: AsyncJudge
    episode: EpisodeSettings
    rewards: RewardSettings
    prompts: PromptSettings
    judge_timeout_seconds: float
    greedy: Sampler | None = None
    """The Code LLM at temperature 0."""
    hindsight: HindsightSettings | None = None
    """Lessons are looked for, for which every program meets all cases of its question."""

    def __post_init__(self) -> None:
        num_cases, tester = self.episode.cases_per_suite, self.episode.tester
        self._question_rewards = QuestionRewards(self.rewards, num_cases=num_cases)
        self._buggy_program_rewards = QuestionRewards(self.rewards.by_the_paper(), num_cases=num_cases)
        self._rewards_pool = self.rewards.code_tests == "pooled"
        self._scripted = find_scripted_tester(tester) if tester is not None else None

    async def run(self, task: EpisodeTask) -> Episode:
        """All C candidates at once; each goes on to its suites and the judge as soon as it is there.

        An outage is recorded in the candidate it hit and masks that candidate alone. Any other exception (a lost
        server) ends the episode and reaches the trainer.
        """
        # All at once: greedy and buggy programs need nothing of the candidates, and keep the servers busy.
        (candidates, lessons), greedy, buggy_programs = await asyncio.gather(
            self._candidates(task), self._greedy_candidate(task), self._buggy_programs(task)
        )
        return Episode(
            task=task,
            candidates=candidates,
            repairs=await self._repairs(task, candidates),
            repair_turns=self.episode.repair_turns,
            greedy=greedy,
            buggy_programs=buggy_programs,
            lessons=lessons,
        )

    async def _candidates(self, task: EpisodeTask) -> tuple[tuple[CandidateResult, ...], tuple[Lesson, ...]]:
        """All candidates, rewarded together; and lessons of them."""
        lessons: tuple[Lesson, ...] = ()
        found = await asyncio.gather(*[self._candidate(task, c) for c in range(task.num_candidates)])
        # The pool is known when the last suite of the question is there, so programs are judged on it a second time.
        if self._rewards_pool or self.hindsight is not None:
            pool = _pool(found)
            found = await asyncio.gather(*[self._pooled(task, one, pool) for one in found])
        if self.hindsight is not None:
            cases = self.episode.cases_per_suite
            lessons = find_lessons(task.question, found, settings=self.hindsight, num_cases=cases)
        if not self._rewards_pool:
            found = [replace(new, pooled=None) for new in found]
        return self._question_rewards.apply(task.question, found), lessons

    async def _repairs(self, task: EpisodeTask, tested: Sequence[CandidateResult]) -> tuple[Repair, ...]:
        """The candidates among ``tested`` that failed a case, written again up to ``episode.repair_turns`` times."""

        async def write(c: int, turn: int, before: CandidateResult, failure: dict[str, str]) -> CandidateResult | None:
            fields = {**task.question.prompt_fields, "candidate": before.source, **failure}
            try:
                written = await self._written(task, f"{c}r{turn}", template_for("repair", self.prompts.name), fields)
            except PromptTooLongError:
                return None
            # The suites of the first program, so that both rewards compare.
            written = replace(written, suites=tested[c].suites, **await self._hidden(task, written))
            judged = await self._judged(task, written)
            if self._rewards_pool:
                judged = await self._pooled(task, judged, _pool(tested))
            return replace(judged, suites=())

        return await repair_turns(
            tested,
            num_turns=self.episode.repair_turns,
            write=write,
            reward=lambda results: self._question_rewards.apply(task.question, results),
        )

    async def _greedy_candidate(self, task: EpisodeTask) -> CandidateResult | None:
        if not task.with_greedy or self.greedy is None:
            return None
        # Any seed will do, since the likeliest token is always the same.
        messages = render(self.prompts.code_template, **task.question.prompt_fields)
        response = await self.greedy.sample(messages, seed=0, session=f"{task.step}/{task.question.id}")
        result = candidate_result(response, task.question)
        try:
            hidden = await self._ask(_on_hidden_tests(task, result.source))
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, outage=_outage(error))
        return replace(result, hidden=hidden)

    async def _buggy_programs(self, task: EpisodeTask) -> tuple[CandidateResult, ...]:
        """The question's buggy programs with suites for each: judged without replays, rewarded by the paper's rule.

        So every Test LLM is measured alike, whatever its Mistake Book holds and whatever function it learns from.
        """
        programs = task.question.buggy_programs if task.num_buggy_program_suites else ()
        # Replays would make one Test LLM's programs harder to break than another's.
        task = replace(
            task,
            history=(),
            num_suites=task.num_buggy_program_suites,
        )
        found = await asyncio.gather(
            *[self._buggy_program(task, f"probe{p}", source) for p, source in enumerate(programs)]
        )
        return self._buggy_program_rewards.apply(task.question, found)

    async def _buggy_program(self, task: EpisodeTask, name: str, source: str) -> CandidateResult:
        given = CandidateResult(response=Response.scripted(source), source=source)
        tested = await self._tested(task, name, given)
        return tested if tested.is_too_long_to_test else await self._judged(task, tested)

    async def _candidate(self, task: EpisodeTask, c: int) -> CandidateResult:
        written = await self._written(task, c, self.prompts.code_template, task.question.prompt_fields)
        # Hidden tests need not be written, so the program meets them while its suites are.
        tested, hidden = await asyncio.gather(self._tested(task, c, written), self._hidden(task, written))
        return await self._judged(task, replace(tested, **hidden))

    async def _hidden(self, task: EpisodeTask, written: CandidateResult) -> dict[str, Any]:
        """Fields of the program's result: the verdict on the hidden tests, or the outage that took its place.

        In training the verdict is for metrics only, and an outage takes nothing but that.
        """
        if not (task.with_hidden_tests and task.question.tests):
            return {}
        started = time.time()
        try:
            hidden = await self._ask(_on_hidden_tests(task, written.source))
        except (SandboxUnavailableError, TimeoutError) as error:
            return {"outage": _outage(error)} if task.is_validation else {}
        return {
            "hidden": hidden,
            "hidden_span": task.span_since(started),
        }

    async def _written(
        self, task: EpisodeTask, c: int | str, template: str, fields: Mapping[str, Any]
    ) -> CandidateResult:
        started = time.time()
        seed = sampling_seed(task.seed, "code", task.step, task.question.id, c)
        messages = render(template, **fields)
        response = await self.code.sample(messages, seed=seed, session=f"{task.step}/{task.question.id}")
        found = candidate_result(response, task.question)
        return replace(found, span=task.span_since(started))

    async def _tested(self, task: EpisodeTask, c: int | str, written: CandidateResult) -> CandidateResult:
        """The program with the suites that the Test LLM writes for it."""
        if written.source is None or not task.num_suites:
            return written
        try:
            return replace(written, suites=await self._suites(task, c, written.source))
        except PromptTooLongError:
            # Cutting the prompt would show the Test LLM half a program, so nothing is learned from this one.
            return replace(written, is_too_long_to_test=True)

    async def _suites(self, task: EpisodeTask, c: int | str, source: str) -> tuple[SuiteResult, ...]:
        cases = self.episode.cases_per_suite
        messages = render(
            self.prompts.test_template,
            **task.question.prompt_fields,
            candidate=source,
            num_cases=cases,
        )
        key = (task.step, task.question.id, c)
        # One session for all suites of a program: its prompt is then in one server's prefix cache.
        session = f"{task.step}/{task.question.id}/{c}"
        if self._scripted is not None:
            sizes = {
                "num_suites": task.num_suites,
                "num_cases": cases,
                "seed": sampling_seed(task.seed, "test", *key),
            }
            texts = self._scripted(task.question.prompt, source, **sizes)
            return tuple(suite_result(Response.scripted(text)) for text in texts)

        async def suite(s: int) -> SuiteResult:
            started = time.time()
            seed = sampling_seed(task.seed, "test", *key, s)
            response = await self.test.sample(messages, seed=seed, session=session)
            return replace(suite_result(response), span=task.span_since(started))

        return tuple(await asyncio.gather(*[suite(s) for s in range(task.num_suites)]))

    async def _judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        if result.outage:
            return result
        started = time.time()
        suites = [suite.asserts for suite in result.suites]
        if self.rewards.uses_given_tests:
            suites = [given_tests(task.question, self.rewards)]
        try:
            verdict = await self._ask(request_for(task.question, result.source, *suites, history=task.history))
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, outage=_outage(error))
        return replace(result, verdict=verdict, judge_span=task.span_since(started))

    async def _pooled(self, task: EpisodeTask, result: CandidateResult, pool: tuple[str, ...]) -> CandidateResult:
        """The candidate with its verdict on all the question's cases; its suites keep theirs.

        An outage takes the verdict away where it is rewarded; otherwise it takes a lesson at most.
        """
        if result.verdict is None or result.is_too_long_to_test:
            return result
        started = time.time()
        request = request_for(task.question, result.source, pool)
        try:
            pooled = (await self._ask(request)).suites[0]
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, verdict=None, outage=_outage(error)) if self._rewards_pool else result
        return replace(result, pooled=pooled, pooled_span=task.span_since(started))

    async def _ask(self, request: JudgeRequest) -> CandidateVerdict:
        async with asyncio.timeout(self.judge_timeout_seconds):
            return await self.judge.judge(request)


def _pool(programs: Sequence[CandidateResult]) -> tuple[str, ...]:
    """All asserts that were written for them, each once."""
    return tuple(dict.fromkeys(text for one in programs for suite in one.suites for text in suite.asserts))


def _on_hidden_tests(task: EpisodeTask, source: str | None) -> JudgeRequest:
    return request_for(task.question, source, task.question.tests, until_timeout=task.until_timeout)


def _outage(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def given_tests(question: Question, rewards: RewardSettings) -> tuple[str, ...]:
    """The dataset's tests that the Code LLM is rewarded on, with ``code_tests`` "golden" or "hidden"."""
    return question.tests if rewards.code_tests == "hidden" else question.golden_tests[: rewards.num_golden]


def candidate_result(response: Response, question: Question) -> CandidateResult:
    """The response with the program found in it, or why there is none."""
    extracted = extract_candidate(response.text, reads_input=question.reads_input, names=question.asked_names)
    if isinstance(extracted, ExtractionFailure):
        return CandidateResult(response=response, source=None, extraction_failure=extracted.reason)
    return CandidateResult(response=response, source=extracted)


def suite_result(response: Response) -> SuiteResult:
    """The response with the asserts found in it, or why there are none."""
    extracted = extract_suite(response.text)
    if isinstance(extracted, ExtractionFailure):
        return SuiteResult(response=response, asserts=(), extraction_failure=extracted.reason)
    return SuiteResult(response=response, asserts=extracted)
