"""Opponents: programs and suites of earlier policies, which today's suites and programs meet as well. Not in the paper.

A pool is a hall of fame (Rosin and Belew 1997): today's Test LLM writes suites for earlier programs too, and the calls
of earlier suites are replayed beside the Mistake Book's, so that neither policy forgets how to beat what it once beat.
Texts are kept and not weights: they need no further server, and a text takes a few hundred bytes.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from .settings_block import Block, Count, Rate

if TYPE_CHECKING:
    from .episode_types import Episode


class PoolSettings(Block):
    share: Rate = 0.0
    """Opponents that a question (a program) meets, as a share of its own candidates (suites), rounded up; 0: none."""
    max_per_question: Count = 16
    """Opponents kept of one question."""

    def num_drawn(self, of: int) -> int:
        return math.ceil(self.share * of)


class OpponentSettings(Block):
    code: PoolSettings = PoolSettings()
    """Earlier programs, for which the Test LLM writes suites too: further groups of suites."""
    test: PoolSettings = PoolSettings()
    """Earlier suites, whose calls are replayed: they count in both rewards as the Mistake Book's cases do."""
    steps_per_generation: Count = 10
    """Training steps whose policies count as one generation."""

    @property
    def is_on(self) -> bool:
        return bool(self.code.share or self.test.share)


@dataclass(frozen=True, slots=True)
class Opponent:
    """One program or suite that an earlier policy wrote for a question."""

    texts: tuple[str, ...]
    """The program alone, or the calls of the suite."""
    generation: int
    """Generation of the policy that wrote it, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponents:
    """Programs and suites for one question: those that it meets in a step, or those that enter the pool after it."""

    generation: int = 0
    """Generation of today's policies, from 0."""
    programs: tuple[Opponent, ...] = ()
    suites: tuple[Opponent, ...] = ()

    @property
    def calls(self) -> tuple[str, ...]:
        """Calls of all suites, each once."""
        calls = (call for suite in self.suites for call in suite.texts)
        return tuple(dict.fromkeys(calls))


def collect_opponents(episode: "Episode") -> Opponents:
    """Find the programs that a case broke, and the suites that broke their program."""
    generation = episode.task.opponents.generation
    programs, suites = [], []
    for candidate in episode.candidates:
        verdict = candidate.verdict
        if verdict is None or not verdict.loaded or candidate.is_too_long_to_test:
            continue  # no later suite could learn from such a program
        breaking = [suite for suite in verdict.suites if suite.num_failed]
        for suite in breaking:
            calls = tuple(case.call for case in suite.cases)
            suites.append(Opponent(calls, generation))
        if breaking or any(case.outcome.failed for case in verdict.history):
            programs.append(Opponent((candidate.source or "",), generation))
    return Opponents(
        generation=generation,
        programs=tuple(programs),
        suites=tuple(suites),
    )


class OpponentPool:
    """Programs and suites of earlier policies, by question."""

    def __init__(self, settings: OpponentSettings | None = None) -> None:
        self._settings = settings or OpponentSettings()
        self._programs = _Side(self._settings.code)
        self._suites = _Side(self._settings.test)

    def draw(
        self,
        question_id: str,
        *,
        step: int,
        num_candidates: int,
        num_suites: int,
        seed: int,
    ) -> Opponents:
        """Opponents of a question at a step (from 1); they depend on the pool and the arguments alone."""
        chance = Random(f"{seed}/opponents/{step}/{question_id}")
        return Opponents(
            generation=(max(step, 1) - 1) // self._settings.steps_per_generation,
            programs=self._programs.draw(question_id, num_candidates, chance),
            suites=self._suites.draw(question_id, num_suites, chance),
        )

    def update(self, question_id: str, update: Opponents) -> None:
        """Take in the opponents of a question that are new."""
        self._programs.add(question_id, update.programs)
        self._suites.add(question_id, update.suites)

    def metrics(self) -> dict[str, float]:
        """Numbers of programs and suites in the pool; empty where nothing is kept."""
        programs, suites = len(self._programs), len(self._suites)
        if not programs and not suites:
            return {}
        return {"opponents/programs": float(programs), "opponents/suites": float(suites)}

    def state(self) -> dict[str, Any]:
        """The pool as plain values for JSON."""
        return {"programs": self._programs.state(), "suites": self._suites.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take in ``state()``; where bounds are smaller now, opponents are left out as by ``update``."""
        self._programs.restore(state["programs"])
        self._suites.restore(state["suites"])


class _Side:
    """Opponents of one side by question, each question's in the order they came."""

    def __init__(self, settings: PoolSettings) -> None:
        self._settings = settings
        self._members: dict[str, list[Opponent]] = {}

    def __len__(self) -> int:
        return sum(len(members) for members in self._members.values())

    def draw(self, question_id: str, num_own: int, chance: Random) -> tuple[Opponent, ...]:
        """Opponents without repetition: every generation alike, and within one every member alike.

        The first events of exponential clocks are such a sample (Efraimidis and Spirakis 2006).
        """
        members = self._members.get(question_id, [])
        sizes = Counter(member.generation for member in members)
        # A rate of 1 / size for each member makes 1 for each generation, however many it left.
        clocks = [chance.expovariate(1 / sizes[member.generation]) for member in members]
        numbers = range(len(members))
        drawn = heapq.nsmallest(self._settings.num_drawn(num_own), numbers, key=clocks.__getitem__)
        return tuple(members[number] for number in drawn)

    def add(self, question_id: str, new: Iterable[Opponent]) -> None:
        for opponent in new:
            members = self._members.setdefault(question_id, [])
            # A text that comes again keeps its generation: it is an old trick, and no new one.
            if any(opponent.texts == member.texts for member in members):
                continue
            members.append(opponent)
            if len(members) > self._settings.max_per_question:
                # Of the fullest generation the oldest leaves, so that the pool spreads over the run.
                sizes = Counter(member.generation for member in members)
                fullest = max(sizes, key=lambda generation: (sizes[generation], -generation))
                members.remove(next(member for member in members if member.generation == fullest))

    def state(self) -> dict[str, Any]:
        state = {}
        for question_id in sorted(self._members):
            state[question_id] = [asdict(member) for member in self._members[question_id]]
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        for question_id, rows in state.items():
            members = [Opponent(tuple(row["texts"]), row["generation"]) for row in rows]
            self.add(question_id, members)
