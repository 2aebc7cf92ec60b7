"""Episode: the candidates, suites, verdicts and rewards of one question, made concurrently where possible.

An episode runs with asyncio alone. The two samplers and the judge have small protocols, so tests need no servers.

Axes: C candidates of a question, S suites of a candidate, K cases of a suite.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reward_fns import ExtractionFailure, extract_candidate, extract_suite
from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError, SuiteVerdict

from .episode_types import (
    AsyncJudge,
    CandidateResult,
    Episode,
    EpisodeTask,
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

    An outage of the sandbox is recorded in the candidate that met it, and masks only this candidate. Any other
    exception, such as a lost server, ends the episode and reaches the trainer.

    Raises:
        SettingsError: a reward function does not exist, or does not take its arguments.
    """

    code_llm: Sampler
    test_llm: Sampler
    """The Test LLM. In self-play, it samples from the same servers as ``code_llm``."""
    judge: AsyncJudge
    settings: EpisodeSettings
    rewards: RewardSettings
    prompts: PromptSettings
    judge_timeout_seconds: float
    scripted_tester: ScriptedTester | None = None
    """A function that writes the suites in place of ``test_llm``."""
    extensions: Sequence[Extension] = ()
    """The run's extensions, in the order in which they see a judged question."""

    def __post_init__(self) -> None:
        self._question_rewards = QuestionRewards(self.rewards, num_cases=self.settings.cases_per_suite)

    async def run(self, task: EpisodeTask) -> Episode:
        """Run one question. Each program is tested and judged without waiting for the other programs."""
        candidates = await asyncio.gather(*[self._candidate(task, c) for c in range(task.num_candidates)])
        all_cases: Sequence[SuiteVerdict | None] = [None] * len(candidates)
        # All cases of a question are known only after its last suite is written, so each program is judged a second
        # time.
        if self.rewards.is_pooled or any(extension.needs_all_cases(task) for extension in self.extensions):
            asserts = written_asserts(candidates)
            judged = await asyncio.gather(*[self._on_all_cases(task, program, asserts) for program in candidates])
            candidates, all_cases = map(list, zip(*judged, strict=True))
        rewarded = self._question_rewards.apply(task.question, candidates)
        question = JudgedQuestion(task=task, candidates=rewarded, all_cases=all_cases)
        found = {extension.name: extension.after_verdicts(question) for extension in self.extensions}
        return Episode(
            task=task,
            candidates=rewarded,
            found={name: data for name, data in found.items() if data is not None},
        )

    async def _candidate(self, task: EpisodeTask, c: int) -> CandidateResult:
        written = await self._write(task, c)
        # The hidden tests exist already, so the judge runs the program on them while the Test LLM writes suites.
        tested, hidden = await asyncio.gather(
            self.tested(task, c, written),
            self._hidden(task, written),
        )
        return await self.judged(task, replace(tested, **hidden))

    async def _write(self, task: EpisodeTask, c: int) -> CandidateResult:
        """Let the Code LLM write candidate ``c``."""
        started = time.time()
        question = task.question
        response = await self.code_llm.sample(
            render(self.prompts.code_template, **question.prompt_fields),
            seed=sampling_seed(task.seed, "code", task.step, question.id, c),
            session=f"{task.step}/{question.id}",
        )
        return replace(candidate_result(response, question), span=task.span_since(started))

    async def tested(self, task: EpisodeTask, name: int | str, written: CandidateResult) -> CandidateResult:
        """Return the program with the suites that the Test LLM writes for it."""
        # Without a program, the prompt would have nothing to show, and R_T would be 0 for every suite.
        if written.source is None or not task.num_suites:
            return written
        try:
            suites = await self._suites(task, name, written.source)
        except PromptTooLongError:
            # A shortened prompt would show only a part of the program, so this program trains neither policy.
            return replace(written, is_too_long_to_test=True)
        return replace(written, suites=suites)

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
        # All suites of a program share a session, so that one server keeps their prompt in its prefix cache.
        session = "/".join(map(str, key))

        async def suite(s: int) -> SuiteResult:
            started = time.time()
            seed = sampling_seed(task.seed, "test", *key, s)
            response = await self.test_llm.sample(messages, seed=seed, session=session)
            return replace(suite_result(response), span=task.span_since(started))

        return tuple(await asyncio.gather(*[suite(s) for s in range(task.num_suites)]))

    async def _hidden(self, task: EpisodeTask, written: CandidateResult) -> dict[str, Any]:
        """Judge the program on the hidden tests, if the task asks for it.

        In training, the verdict on hidden tests is only used for metrics, so an outage does not mask the program.

        Returns:
            Fields of the program's ``CandidateResult``: the verdict and its span, or the outage, or no field.
        """
        if not task.with_hidden_tests or not task.question.tests:
            return {}
        started = time.time()
        hidden = await self.on_hidden_tests(task, written.source)
        if isinstance(hidden, str):
            return {"outage": hidden} if task.is_validation else {}
        return {"hidden": hidden, "hidden_span": task.span_since(started)}

    async def on_hidden_tests(self, task: EpisodeTask, source: str | None) -> CandidateVerdict | str | None:
        """Return the verdict on the question's hidden tests, or the reason of an outage.

        If no hidden test is valid, return None, as without hidden tests: the question then counts in no pass@1.
        """
        question = task.question
        request = request_for(
            question,
            source,
            question.tests,
            given=True,
            until_timeout=task.until_timeout,
        )
        verdict = await self._ask(request)
        return verdict if isinstance(verdict, str) or verdict.suites[0].num_valid else None

    async def judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        """Judge the program on its suites (or the dataset's tests) and the replays.

        Returns:
            The program with its verdict, or with an outage.
        """
        if result.outage:
            return result
        started = time.time()
        suites = [suite.asserts for suite in result.suites]
        given = self.rewards.uses_given_tests
        if given:
            suites = [given_tests(task.question, self.rewards)]
        request = request_for(task.question, result.source, *suites, history=task.history, given=given)
        verdict = await self._ask(request)
        if isinstance(verdict, str):
            return replace(result, outage=verdict)
        return replace(result, verdict=verdict, judge_span=task.span_since(started))

    async def _on_all_cases(
        self, task: EpisodeTask, result: CandidateResult, asserts: tuple[str, ...]
    ) -> tuple[CandidateResult, SuiteVerdict | None]:
        """Judge the program a second time, on all cases of its question.

        Returns:
            The program and the verdict. If the reward uses the verdict, the program keeps it in ``pooled``, and is
            masked after an outage.
        """
        if result.verdict is None or result.is_too_long_to_test:
            return result, None
        started = time.time()
        verdict = await self._ask(request_for(task.question, result.source, asserts))
        if isinstance(verdict, str):
            return replace(result, verdict=None, outage=verdict) if self.rewards.is_pooled else result, None
        [on_all] = verdict.suites
        pooled = on_all if self.rewards.is_pooled else None
        return replace(result, pooled=pooled, pooled_span=task.span_since(started)), on_all

    async def _ask(self, request: JudgeRequest) -> CandidateVerdict | str:
        """Return the verdict, or the reason of an outage. An outage says nothing about the program."""
        try:
            # Without this time limit, the whole step would wait for a judge process that has died.
            async with asyncio.timeout(self.judge_timeout_seconds):
                return await self.judge.judge(request)
        except (SandboxUnavailableError, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"


def written_asserts(candidates: Sequence[CandidateResult]) -> tuple[str, ...]:
    """The different asserts of all suites of a question."""
    # A dict keeps the order of the asserts, which must be the same in every run; a set would not keep it.
    asserts: dict[str, None] = {}
    for candidate in candidates:
        for suite in candidate.suites:
            asserts |= dict.fromkeys(suite.asserts)
    return tuple(asserts)


def given_tests(question: Question, rewards: RewardSettings) -> tuple[str, ...]:
    """The dataset's tests that reward the Code LLM if ``rewards.code_tests`` is "golden" or "hidden"."""
    if rewards.code_tests == "hidden":
        return question.tests
    return question.golden_tests[: rewards.num_golden]


def candidate_result(response: Response, question: Question) -> CandidateResult:
    """Extract the program from a response; the result has the program, or the reason why there is none."""
    extracted = extract_candidate(
        response.text,
        reads_input=question.reads_input,
        names=question.asked_names,
    )
    if isinstance(extracted, ExtractionFailure):
        return CandidateResult(response=response, source=None, extraction_failure=extracted.reason)
    return CandidateResult(response=response, source=extracted)


def suite_result(response: Response) -> SuiteResult:
    """Extract the asserts from a response; the result has the asserts, or the reason why there are none."""
    extracted = extract_suite(response.text)
    if isinstance(extracted, ExtractionFailure):
        return SuiteResult(response=response, asserts=(), extraction_failure=extracted.reason)
    return SuiteResult(response=response, asserts=extracted)
