"""Validation: an episode that trains no policy, with two further measures.

First, the Code LLM also writes one program at temperature 0. Second, the Test LLM also writes suites for the question's
buggy programs, which are the same programs for every Test LLM.
"""

import asyncio
from dataclasses import dataclass, replace

from .episode import EpisodeRunner, candidate_result
from .episode_types import CandidateResult, Episode, EpisodeTask, Response, Sampler
from .prompts import render
from .rewards import QuestionRewards


@dataclass(kw_only=True, eq=False)
class ValidationRunner(EpisodeRunner):
    """Runs validation episodes."""

    greedy: Sampler
    """The Code LLM at temperature 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # Test LLMs may train with different reward functions. The paper's functions measure all Test LLMs in the same
        # way.
        self._buggy_program_rewards = QuestionRewards(
            self.rewards.by_the_paper(),
            num_cases=self.settings.cases_per_suite,
        )

    async def run(self, task: EpisodeTask) -> Episode:
        """Run one question, with the further measures that the task asks for."""
        # The greedy program and the buggy programs do not depend on the candidates, so all are processed at the same
        # time.
        episode, greedy, buggy_programs = await asyncio.gather(
            super().run(task),
            self._greedy_candidate(task),
            self._buggy_programs(task),
        )
        return replace(episode, greedy=greedy, buggy_programs=buggy_programs)

    async def _greedy_candidate(self, task: EpisodeTask) -> CandidateResult | None:
        if not task.with_greedy:
            return None
        messages = render(self.prompts.code_template, **task.question.prompt_fields)
        # The seed has no effect, because the server always takes the likeliest token.
        response = await self.greedy.sample(
            messages,
            seed=0,
            session=f"{task.step}/{task.question.id}",
        )
        program = candidate_result(response, task.question)
        hidden = await self.on_hidden_tests(task, program.source)
        if isinstance(hidden, str):
            return replace(program, outage=hidden)
        return replace(program, hidden=hidden)

    async def _buggy_programs(self, task: EpisodeTask) -> tuple[CandidateResult, ...]:
        sources = task.question.buggy_programs if task.num_buggy_program_suites else ()
        # A failed replay lowers R_T, so with replays, Test LLMs with different Mistake Books could not be compared.
        task = replace(task, history=(), num_suites=task.num_buggy_program_suites)
        judged = await asyncio.gather(
            *[self._buggy_program(task, number, source) for number, source in enumerate(sources)]
        )
        return self._buggy_program_rewards.apply(task.question, judged)

    async def _buggy_program(self, task: EpisodeTask, number: int, source: str) -> CandidateResult:
        program = CandidateResult(response=Response.scripted(source), source=source)
        # The name enters the suites' sampling seeds, so another name would change the suites of existing runs.
        tested = await self.tested(task, f"probe{number}", program)
        # Without suites, a buggy program has no case to be judged on, since it has no replays either.
        return tested if tested.is_too_long_to_test else await self.judged(task, tested)
