"""Episode: one question from candidates and suites to verdicts and rewards, with as much concurrency as possible.

The code is pure asyncio and knows two samplers and a judge by small protocols, so tests need no servers.

Axes: C candidates of a question, S suites of a candidate, K cases of a suite.
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

    An outage of the sandbox is recorded in its candidate and masks that candidate alone. Any other exception, such as
    a lost server, ends the episode and reaches the trainer.

    Raises:
        SettingsError: a reward function does not exist, or does not take its arguments.
    """

    code_llm: Sampler
    test_llm: Sampler
    """In self-play the same servers as ``code_llm``."""
    judge: AsyncJudge
    settings: EpisodeSettings
    rewards: RewardSettings
    prompts: PromptSettings
    judge_timeout_seconds: float
    scripted_tester: ScriptedTester | None = None
    """Writes the suites in place of ``test_llm``."""
    extensions: Sequence[Extension] = ()
    """Ideas beside the paper; they see a judged question in this order."""

    def __post_init__(self) -> None:
        self._question_rewards = QuestionRewards(self.rewards, num_cases=self.settings.cases_per_suite)

    async def run(self, task: EpisodeTask) -> Episode:
        """Run one question. Each program goes on to its suites and the judge as soon as it is written."""
        candidates = await asyncio.gather(*[self._candidate(task, c) for c in range(task.num_candidates)])
        # All cases are known only now, when the last suite is written, so programs are judged on them a second time.
        if self.rewards.is_pooled or any(extension.needs_all_cases(task) for extension in self.extensions):
            candidates = await asyncio.gather(*[self.pooled(task, program, candidates) for program in candidates])
        rewarded = self.rewarded(task, candidates)
        judged = JudgedQuestion(
            runner=self,
            task=task,
            candidates=rewarded,
        )
        programs: tuple[ExtraProgram, ...] = ()
        kept = {}
        for extension in self.extensions:
            result = await extension.after_verdicts(judged)
            programs += result.programs
            if result.kept is not None:
                kept[extension.name] = result.kept
        if not self.rewards.is_pooled:
            # Only extensions needed these cases; without a part in the reward they stay out of the records.
            rewarded = tuple(replace(candidate, pooled=None) for candidate in rewarded)
        return Episode(
            task=task,
            candidates=rewarded,
            extra_programs=programs,
            found=kept,
        )

    def rewarded(self, task: EpisodeTask, results: Sequence[CandidateResult]) -> tuple[CandidateResult, ...]:
        """Judged programs of the question with the run's rewards."""
        return self._question_rewards.apply(task.question, results)

    async def _candidate(self, task: EpisodeTask, c: int) -> CandidateResult:
        written = await self.write(task, c, self.prompts.code_template, task.question.prompt_fields)
        # The hidden tests exist already, so the judge runs the program on them while the Test LLM writes.
        tested, hidden = await asyncio.gather(
            self.tested(task, c, written),
            self.hidden(task, written),
        )
        return await self.judged(task, replace(tested, **hidden))

    async def write(
        self, task: EpisodeTask, name: int | str, template: str, fields: Mapping[str, Any]
    ) -> CandidateResult:
        """Let the Code LLM write a program; each program of a question has a sampling seed of its own, by ``name``."""
        started = time.time()
        seed = sampling_seed(task.seed, "code", task.step, task.question.id, name)
        messages = render(template, **fields)
        response = await self.code_llm.sample(messages, seed=seed, session=f"{task.step}/{task.question.id}")
        return replace(candidate_result(response, task.question), span=task.span_since(started))

    async def tested(self, task: EpisodeTask, name: int | str, written: CandidateResult) -> CandidateResult:
        """The program with the suites that the Test LLM writes for it."""
        # Without a program, the prompt would have nothing to show, and R_T would be 0 for every suite.
        if written.source is None or not task.num_suites:
            return written
        try:
            return replace(written, suites=await self._suites(task, name, written.source))
        except PromptTooLongError:
            # A shorter prompt would show half a program, so neither policy learns from this one.
            return replace(written, is_too_long_to_test=True)

    async def _suites(self, task: EpisodeTask, name: int | str, source: str) -> tuple[SuiteResult, ...]:
        num_cases = self.settings.cases_per_suite
        key = (task.step, task.question.id, name)
        if self.scripted_tester is not None:
            texts = self.scripted_tester(
                task.question.prompt,
                source,
                num_suites=task.num_suites,
                num_cases=num_cases,
                seed=sampling_seed(task.seed, "test", *key),
            )
            return tuple(suite_result(Response.scripted(text)) for text in texts)

        messages = render(
            self.prompts.test_template,
            **task.question.prompt_fields,
            candidate=source,
            num_cases=num_cases,
        )
        # All suites of a program share a session, so that one server has their prompt in its prefix cache.
        session = "/".join(map(str, key))

        async def suite(s: int) -> SuiteResult:
            started = time.time()
            seed = sampling_seed(task.seed, "test", *key, s)
            response = await self.test_llm.sample(messages, seed=seed, session=session)
            return replace(suite_result(response), span=task.span_since(started))

        return tuple(await asyncio.gather(*[suite(s) for s in range(task.num_suites)]))

    async def hidden(self, task: EpisodeTask, written: CandidateResult) -> dict[str, Any]:
        """Fields of the program's result: its verdict on the hidden tests, or the outage, or nothing.

        In training this verdict is only a metric, so an outage loses the metric and does not mask the program.
        """
        if not (task.with_hidden_tests and task.question.tests):
            return {}
        started = time.time()
        hidden = await self.on_hidden_tests(task, written.source)
        if isinstance(hidden, str):
            return {"outage": hidden} if task.is_validation else {}
        return {"hidden": hidden, "hidden_span": task.span_since(started)}

    async def on_hidden_tests(self, task: EpisodeTask, source: str | None) -> CandidateVerdict | str:
        """The verdict on the question's hidden tests, or the reason of an outage."""
        question = task.question
        return await self._ask(request_for(question, source, question.tests, until_timeout=task.until_timeout))

    async def judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        """The program with its verdict on its suites (or the dataset's tests) and the replays, or with an outage."""
        if result.outage:
            return result
        started = time.time()
        suites = [suite.asserts for suite in result.suites]
        if self.rewards.uses_given_tests:
            suites = [given_tests(task.question, self.rewards)]
        request = request_for(task.question, result.source, *suites, history=task.history)
        verdict = await self._ask(request)
        if isinstance(verdict, str):
            return replace(result, outage=verdict)
        return replace(result, verdict=verdict, judge_span=task.span_since(started))

    async def pooled(
        self, task: EpisodeTask, result: CandidateResult, among: Sequence[CandidateResult]
    ) -> CandidateResult:
        """The program with a second verdict, in ``pooled``, on all cases written for the programs ``among``.

        An outage masks the program if the reward uses these cases; else ``pooled`` stays None.
        """
        if result.verdict is None or result.is_too_long_to_test:
            return result
        started = time.time()
        suites = [suite for program in among for suite in program.suites]
        # A dict, unlike a set, keeps the order of the asserts, which must not differ between two runs.
        asserts = tuple(dict.fromkeys(text for suite in suites for text in suite.asserts))
        verdict = await self._ask(request_for(task.question, result.source, asserts))
        if isinstance(verdict, str):
            return replace(result, verdict=None, outage=verdict) if self.rewards.is_pooled else result
        return replace(result, pooled=verdict.suites[0], pooled_span=task.span_since(started))

    async def _ask(self, request: JudgeRequest) -> CandidateVerdict | str:
        """The verdict, or the reason of an outage, which says nothing about the program."""
        try:
            # Without a limit, a lost judge would hold the whole step.
            async with asyncio.timeout(self.judge_timeout_seconds):
                return await self.judge.judge(request)
        except (SandboxUnavailableError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"


def given_tests(question: Question, rewards: RewardSettings) -> tuple[str, ...]:
    """The dataset's tests that the Code LLM is rewarded on, where ``code_tests`` is "golden" or "hidden"."""
    return question.tests if rewards.code_tests == "hidden" else question.golden_tests[: rewards.num_golden]


def candidate_result(response: Response, question: Question) -> CandidateResult:
    """The response with the program in it, or with the reason why it holds none."""
    extracted = extract_candidate(response.text, reads_input=question.reads_input, names=question.asked_names)
    if isinstance(extracted, ExtractionFailure):
        return CandidateResult(response=response, source=None, extraction_failure=extracted.reason)
    return CandidateResult(response=response, source=extracted)


def suite_result(response: Response) -> SuiteResult:
    """The response with the asserts in it, or with the reason why it holds none."""
    extracted = extract_suite(response.text)
    if isinstance(extracted, ExtractionFailure):
        return SuiteResult(response=response, asserts=(), extraction_failure=extracted.reason)
    return SuiteResult(response=response, asserts=extracted)
