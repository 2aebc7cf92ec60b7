"""Validation: an episode that learns nothing, with two measures beside the paper's.

The Code LLM also writes one program at temperature 0, and the Test LLM also writes suites for the question's buggy
programs, which are the same for every Test LLM.
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
        # The paper's functions measure all Test LLMs alike, whatever reward function they learn from.
        settings, num_cases = self.rewards.by_the_paper(), self.settings.cases_per_suite
        self._buggy_program_rewards = QuestionRewards(settings, num_cases=num_cases)

    async def run(self, task: EpisodeTask) -> Episode:
        """Run one question, and what the task asks for beside it."""
        # All at once: greedy and buggy programs need nothing of the candidates, and keep the servers busy.
        episode, greedy, buggy_programs = await asyncio.gather(
            super().run(task), self._greedy_candidate(task), self._buggy_programs(task)
        )
        return replace(episode, greedy=greedy, buggy_programs=buggy_programs)

    async def _greedy_candidate(self, task: EpisodeTask) -> CandidateResult | None:
        if not task.with_greedy:
            return None
        # Any seed will do, since the likeliest token is always the same.
        messages = render(self.prompts.code_template, **task.question.prompt_fields)
        response = await self.greedy.sample(messages, seed=0, session=f"{task.step}/{task.question.id}")
        result = candidate_result(response, task.question)
        hidden = await self.on_hidden_tests(task, result.source)
        return replace(result, outage=hidden) if isinstance(hidden, str) else replace(result, hidden=hidden)

    async def _buggy_programs(self, task: EpisodeTask) -> tuple[CandidateResult, ...]:
        programs = task.question.buggy_programs if task.num_buggy_program_suites else ()
        # Replays would make one Test LLM's programs harder to break than another's.
        task = replace(task, history=(), num_suites=task.num_buggy_program_suites)
        found = await asyncio.gather(*[self._buggy_program(task, p, source) for p, source in enumerate(programs)])
        return self._buggy_program_rewards.apply(task.question, found)

    async def _buggy_program(self, task: EpisodeTask, number: int, source: str) -> CandidateResult:
        given = CandidateResult(response=Response.scripted(source), source=source)
        tested = await self.tested(task, f"probe{number}", given)  # the name is part of the suites' sampling seeds
        # Without suites there is nothing to measure; a candidate would still meet its replays.
        return tested if tested.is_too_long_to_test else await self.judged(task, tested)
