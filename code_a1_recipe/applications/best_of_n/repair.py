"""Repair turns of ``code-a1 select``: programs that fail tests are written again, the more promising ones more often.

Source: Tang et al., "Code Repair with LLMs gives an Exploration-Exploitation Tradeoff" (REx), arXiv 2405.17503: the
next program to refine has the largest draw from ``Beta(1 + C h, 1 + C (1 - h) + n)``, with ``h`` the share of tests
that it passes and ``n`` how often it was refined before. Nobody knows here whether a test is right.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reward_fns import extract_candidate
from sandbox import CallStatus, CaseOutcome, ProgramResult, Runner, to_literal

from ...algorithm.episode_types import PromptTooLongError, Sampler
from ...algorithm.prompts import render
from ...algorithm.question import Question
from ...algorithm.repair import ShownFailure
from ...algorithm.sampling import sampling_seed
from .answer_matrix import answer_matrix, ask_programs, asking, read_cases

GREED = 20.0
"""C: how much the share of passed tests counts beside the uniform prior."""


@dataclass(slots=True, kw_only=True)
class RepairSearch:
    """The programs of one question, which are refined one at a time."""

    question: Question
    programs: list[str]
    suites: Sequence[Sequence[str]]
    seed: int
    repairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a program and what it became, in order; "" where the response holds no program."""

    def choose(self, runner: Runner) -> tuple[str, ShownFailure] | None:
        """The program to refine next, and its failed test with the shortest text.

        None where a program passes all tests, or there is no program or no test.

        Raises:
            SandboxUnavailableError: a program could not be run.
        """
        about, programs = self.question, list(dict.fromkeys(self.programs))
        cases = read_cases(programs, self.suites, about)
        if not programs or not cases:
            return None
        passes_NM, _ = answer_matrix(programs, self.suites, runner, about)
        if passes_NM.all(axis=1).any():
            return None
        rng, refined = random.Random(f"{self.seed} {len(self.repairs)}"), [before for before, _ in self.repairs]
        draws_N = [
            rng.betavariate(1 + GREED * rate, 1 + GREED * (1 - rate) + refined.count(source))
            for source, rate in zip(programs, passes_NM.mean(axis=1), strict=True)
        ]
        n = int(np.argmax(draws_N))
        case = min((cases[m] for m in np.flatnonzero(~passes_NM[n])), key=lambda one: len(one.text))
        (answer,) = ask_programs(programs[n : n + 1], asking(about, (case.call,), runner), runner)
        outcome, detail = _did(answer)
        return programs[n], ShownFailure.of(case.call.text, outcome, detail, expected=case.expected)


def _did(answer: ProgramResult) -> tuple[CaseOutcome, str]:
    if not answer.loaded:
        return CaseOutcome.NOT_LOADED, answer.load_error
    (one,) = answer.results
    if one.status is not CallStatus.VALUE:
        return CaseOutcome(one.status.value), one.detail
    try:
        return CaseOutcome.WRONG_VALUE, to_literal(one.value)
    except ValueError as error:
        return CaseOutcome.WRONG_VALUE, str(error)


async def run_search(search: RepairSearch, sampler: Sampler, runner: Runner, *, template: str, num_turns: int) -> None:
    """Refine ``num_turns`` times, or until nothing is left to refine.

    Raises:
        InputError: the model cannot be asked.
        SandboxUnavailableError: a program could not be run.
    """
    about = search.question
    for turn in range(num_turns):
        chosen = await asyncio.to_thread(search.choose, runner)
        if chosen is None:
            return
        before, failure = chosen
        messages = render(template, **about.prompt_fields, candidate=before, **failure.prompt_fields)
        seed = sampling_seed(search.seed, "repair", about.id, turn)
        try:
            response = await sampler.sample(messages, seed=seed, session=f"{about.id}/repair{turn}")
        except PromptTooLongError:
            return
        written = extract_candidate(response.text, reads_input=about.reads_input)
        after = written if isinstance(written, str) else ""
        search.repairs.append((before, after))
        search.programs.extend([after] if after else [])
