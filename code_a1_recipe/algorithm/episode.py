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
    ExtraProgram,
    PromptTooLongError,
    Response,
    Sampler,
    ScriptedTester,
    SuiteResult,
)
from .hooks import Extension, JudgedQuestion
from .prompts import PromptSettings, render
from .question import Question, request_for
from .rewards import QuestionRewards, RewardSettings
from .sampling import sampling_seed
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
    tester: ScriptedTester | None = None
    """Writes the suites in place of ``test``."""
    extensions: Sequence[Extension] = ()
    """Ideas beside the paper; they see a judged question in this order."""

    def __post_init__(self) -> None:
        num_cases = self.episode.cases_per_suite
        self._question_rewards = QuestionRewards(self.rewards, num_cases=num_cases)
        self._buggy_program_rewards = QuestionRewards(self.rewards.by_the_paper(), num_cases=num_cases)
        self._rewards_pool = self.rewards.code_tests == "pooled"

    async def run(self, task: EpisodeTask) -> Episode:
        """All C candidates at once; each goes on to its suites and the judge as soon as it is there.

        An outage is recorded in the candidate it hit and masks that candidate alone. Any other exception (a lost
        server) ends the episode and reaches the trainer.
        """
        # All at once: greedy and buggy programs need nothing of the candidates, and keep the servers busy.
        candidates, greedy, buggy_programs = await asyncio.gather(
            self._candidates(task), self._greedy_candidate(task), self._buggy_programs(task)
        )
        work = JudgedQuestion(runner=self, task=task, candidates=candidates)
        programs: tuple[ExtraProgram, ...] = ()
        kept = {}
        for extension in self.extensions:
            found = await extension.after_verdicts(work)
            programs += found.programs
            if found.kept is not None:
                kept[extension.name] = found.kept
        if not self._rewards_pool:
            # Records hold these cases only where they are what the reward is made of.
            candidates = tuple(replace(one, pooled=None) for one in candidates)
        return Episode(
            task=task,
            candidates=candidates,
            extra_programs=programs,
            found=kept,
            greedy=greedy,
            buggy_programs=buggy_programs,
        )

    async def _candidates(self, task: EpisodeTask) -> tuple[CandidateResult, ...]:
        """All candidates, rewarded together."""
        found = await asyncio.gather(*[self._candidate(task, c) for c in range(task.num_candidates)])
        # The pool is known when the last suite of the question is there, so programs are judged on it a second time.
        if self._rewards_pool or any(extension.needs_all_cases(task) for extension in self.extensions):
            found = await asyncio.gather(*[self.pooled(task, one, found) for one in found])
        return self.rewarded(task, found)

    def rewarded(self, task: EpisodeTask, results: Sequence[CandidateResult]) -> tuple[CandidateResult, ...]:
        """Judged programs of the question with the run's rewards."""
        return self._question_rewards.apply(task.question, results)

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
        return tested if tested.is_too_long_to_test else await self.judged(task, tested)

    async def _candidate(self, task: EpisodeTask, c: int) -> CandidateResult:
        written = await self.write(task, c, self.prompts.code_template, task.question.prompt_fields)
        # Hidden tests need not be written, so the program meets them while its suites are.
        tested, hidden = await asyncio.gather(self._tested(task, c, written), self.hidden(task, written))
        return await self.judged(task, replace(tested, **hidden))

    async def hidden(self, task: EpisodeTask, written: CandidateResult) -> dict[str, Any]:
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

    async def write(
        self, task: EpisodeTask, name: int | str, template: str, fields: Mapping[str, Any]
    ) -> CandidateResult:
        """A program of the Code LLM; ``name`` tells its sampling seed from those of the question's others."""
        started = time.time()
        seed = sampling_seed(task.seed, "code", task.step, task.question.id, name)
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
        if self.tester is not None:
            sizes = {
                "num_suites": task.num_suites,
                "num_cases": cases,
                "seed": sampling_seed(task.seed, "test", *key),
            }
            texts = self.tester(task.question.prompt, source, **sizes)
            return tuple(suite_result(Response.scripted(text)) for text in texts)

        async def suite(s: int) -> SuiteResult:
            started = time.time()
            seed = sampling_seed(task.seed, "test", *key, s)
            response = await self.test.sample(messages, seed=seed, session=session)
            return replace(suite_result(response), span=task.span_since(started))

        return tuple(await asyncio.gather(*[suite(s) for s in range(task.num_suites)]))

    async def judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        """The program with its verdict on its suites (or the given tests) and the replays, or with an outage."""
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

    async def pooled(
        self, task: EpisodeTask, result: CandidateResult, among: Sequence[CandidateResult]
    ) -> CandidateResult:
        """The program with its verdict on all cases written for the programs ``among``; its suites keep theirs.

        An outage takes the verdict away where it is rewarded, and else nothing.
        """
        if result.verdict is None or result.is_too_long_to_test:
            return result
        started = time.time()
        pool = tuple(dict.fromkeys(text for one in among for suite in one.suites for text in suite.asserts))
        request = request_for(task.question, result.source, pool)
        try:
            pooled = (await self._ask(request)).suites[0]
        except (SandboxUnavailableError, TimeoutError) as error:
            return replace(result, verdict=None, outage=_outage(error)) if self._rewards_pool else result
        return replace(result, pooled=pooled, pooled_span=task.span_since(started))

    async def _ask(self, request: JudgeRequest) -> CandidateVerdict:
        async with asyncio.timeout(self.judge_timeout_seconds):
            return await self.judge.judge(request)


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
