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
from sandbox import Call, CallResult, CallStatus, Case, CaseOutcome, ProgramResult, Runner, comparison, to_literal

from ...algorithm.episode_types import PromptTooLongError, Sampler
from ...algorithm.prompts import render
from ...algorithm.question import Question
from ...algorithm.repair import ShownFailure
from ...algorithm.sampling import sampling_seed
from ...files import fingerprint
from .answer_matrix import ask_programs, asking, read_cases

GREED = 20.0
"""C: how much the share of passed tests counts beside the uniform prior."""


@dataclass(slots=True, kw_only=True)
class Pool:
    """What was sampled for one question."""

    question: Question
    programs: list[str]
    """N; responses without a program are not among them."""
    suites: Sequence[Sequence[str]]
    """M suites of asserts, as written."""
    num_responses: int
    """N and those without a program."""
    repairs: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a program and what it became, in order; "" where the response holds no program."""

    @property
    def key(self) -> str:
        """Changes with the question, its tests, the programs and the suites: a choice is never that of others."""
        return f"{self.question.id} {fingerprint(repr(self))}"


@dataclass(slots=True, kw_only=True)
class RepairSearch:
    """The programs of one question are refined one at a time; each runs on the tests once."""

    pool: Pool
    seed: int
    too_long: set[str] = field(default_factory=set)
    """Programs for whose repair the model's prompt has no room."""
    _cases: list[Case] = field(init=False)
    _answers: dict[str, dict[Call, CallResult | ProgramResult]] = field(default_factory=dict)
    """By program and call; of a program that does not load, what it says of that."""

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
        passes_NM = np.array([self._passes(source, runner) for source in programs])
        places = [n for n, source in enumerate(programs) if source not in self.too_long]
        if passes_NM.all(axis=1).any() or not places:
            return None
        repairs = self.pool.repairs
        rng, refined = random.Random(f"{self.seed} {len(repairs)}"), [before for before, _ in repairs]
        draws_N = [
            rng.betavariate(1 + GREED * rate, 1 + GREED * (1 - rate) + refined.count(source))
            for source, rate in zip(programs, passes_NM.mean(axis=1), strict=True)
        ]
        n = max(places, key=draws_N.__getitem__)
        case = min((self._cases[m] for m in np.flatnonzero(~passes_NM[n])), key=lambda one: len(one.text))
        outcome, detail = _did(self._answers[programs[n]][case.call])
        return programs[n], ShownFailure.of(case.call.text, outcome, detail, expected=case.expected)

    def _passes(self, source: str, runner: Runner) -> list[bool]:
        """[M] whether the program gives the value that each test expects."""
        if source not in self._answers:
            calls = tuple(dict.fromkeys(case.call for case in self._cases))
            (answer,) = ask_programs([source], asking(self.pool.question, calls, runner), runner)
            answers = answer.results if answer.loaded else [answer] * len(calls)
            self._answers[source] = dict(zip(calls, answers, strict=True))
        same, answers_of = comparison(self.pool.question.kind, self.pool.question.checker), self._answers[source]
        return [
            isinstance(one := answers_of[case.call], CallResult)
            and one.status is CallStatus.VALUE
            and same(case.expected_value, one.value)
            for case in self._cases
        ]


def _did(answer: CallResult | ProgramResult) -> tuple[CaseOutcome, str]:
    if isinstance(answer, ProgramResult):
        return CaseOutcome.NOT_LOADED, answer.load_error
    if answer.status is not CallStatus.VALUE:
        return CaseOutcome(answer.status.value), answer.detail
    try:
        return CaseOutcome.WRONG_VALUE, to_literal(answer.value)
    except ValueError as error:
        return CaseOutcome.WRONG_VALUE, str(error)


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
