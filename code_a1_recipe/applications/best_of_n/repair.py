"""Repair turns of ``code-a1 select``: programs that fail tests are written again, the more promising ones more often.

Source: Tang et al., "Code Repair with LLMs gives an Exploration-Exploitation Tradeoff" (REx), arXiv 2405.17503: the
next program to refine has the largest draw from ``Beta(1 + C h, 1 + C (1 - h) + n)``, with ``h`` the share of tests
that it passes and ``n`` how often it was refined before. Nobody knows here whether a test is right.
"""

import asyncio
import random
from dataclasses import dataclass, field

import numpy as np

from reward_fns import extract_candidate
from sandbox import CallStatus, Case, CaseOutcome, ProgramResult, Runner

from ...algorithm.episode_types import PromptTooLongError, Sampler
from ...algorithm.prompts import render
from ...algorithm.question import Question
from ...algorithm.repair import ShownFailure
from ...algorithm.sampling import sampling_seed
from ...files import fingerprint
from .answer_matrix import answer_matrix, calls_of, literal_of, read_cases

GREED = 20.0
"""C: how much the share of passed tests counts beside the uniform prior."""


@dataclass(kw_only=True)
class Pool:
    """What was sampled for one question."""

    question: Question
    programs: list[str]
    """N; responses without a program are not among them."""
    num_responses: int
    """N and those without a program."""
    suites: list[tuple[str, ...]] = field(default_factory=list)
    """Suites of asserts, as written."""
    repairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a program and what it became, in order; "" where the response holds no program."""

    @property
    def key(self) -> str:
        """Changes with the question, its tests, the programs and the suites: a choice is never that of others."""
        return f"{self.question.id} {fingerprint(repr(self))}"


@dataclass(kw_only=True)
class RepairSearch:
    """The programs of one question are refined one at a time; each runs on the tests once."""

    pool: Pool
    seed: int
    too_long: set[str] = field(default_factory=set)
    """Programs for whose repair the model's prompt has no room."""
    _cases: list[Case] = field(init=False)
    _results: dict[str, ProgramResult] = field(default_factory=dict)
    """By program: what it answered."""

    def __post_init__(self) -> None:
        self._cases = read_cases(self.pool.programs, self.pool.suites, self.pool.question)

    def choose(self, runner: Runner) -> tuple[str, ShownFailure] | None:
        """The program to refine next, and its failed test with the shortest text.

        None where a program passes all tests, or there is no program that can be refined, or no test.

        Raises:
            SandboxUnavailableError: a program could not be run.
        """
        programs = list(dict.fromkeys(self.pool.programs))
        if not programs or not self._cases:
            return None
        passes_NM, _ = answer_matrix(programs, self._cases, runner, self.pool.question, known=self._results)
        places = [n for n, source in enumerate(programs) if source not in self.too_long]
        if passes_NM.all(axis=1).any() or not places:
            return None
        refined = [before for before, _ in self.pool.repairs]
        rng = random.Random(f"{self.seed} {len(refined)}")
        draws_N = []
        for source, rate in zip(programs, passes_NM.mean(axis=1), strict=True):
            draws_N.append(rng.betavariate(1 + GREED * rate, 1 + GREED * (1 - rate) + refined.count(source)))
        n = max(places, key=draws_N.__getitem__)
        failed = [self._cases[m] for m in np.flatnonzero(~passes_NM[n])]
        case = min(failed, key=lambda one: len(one.text))
        outcome, detail = self._did(programs[n], case)
        return programs[n], ShownFailure.of(case.call.text, outcome, detail, expected=case.expected)

    def _did(self, source: str, case: Case) -> tuple[CaseOutcome, str]:
        result = self._results[source]
        if not result.loaded:
            return CaseOutcome.NOT_LOADED, result.load_error
        answer = result.results[calls_of(self._cases).index(case.call)]
        if answer.status is not CallStatus.VALUE:
            return CaseOutcome(answer.status.value), answer.detail
        return CaseOutcome.WRONG_VALUE, literal_of(answer.value)


async def run_search(search: RepairSearch, sampler: Sampler, runner: Runner, *, template: str, num_turns: int) -> None:
    """Refine ``num_turns`` times, or until nothing is left to refine.

    Raises:
        InputError: the model cannot be asked.
        SandboxUnavailableError: a program could not be run.
    """
    pool, about = search.pool, search.pool.question
    while (turn := len(pool.repairs)) < num_turns:
        chosen = await asyncio.to_thread(search.choose, runner)
        if chosen is None:
            return
        before, failure = chosen
        messages = render(template, **about.prompt_fields, candidate=before, **failure.prompt_fields)
        seed = sampling_seed(search.seed, "repair", about.id, turn)
        try:
            response = await sampler.sample(messages, seed=seed, session=f"{about.id}/repair{turn}")
        except PromptTooLongError:
            search.too_long.add(before)
            continue
        written = extract_candidate(response.text, reads_input=about.reads_input)
        after = written if isinstance(written, str) else ""
        pool.repairs.append((before, after))
        pool.programs += [after] if after else []
        pool.num_responses += 1
