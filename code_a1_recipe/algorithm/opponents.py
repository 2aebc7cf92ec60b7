"""Opponents: programs and suites of earlier policies, which today's suites and programs meet as well. Not in the paper.

A pool keeps for each question what earlier policies wrote, a hall of fame (Rosin and Belew 1997): today's Test LLM
writes suites for earlier programs too, and the calls of earlier suites are replayed beside the Mistake Book's, so that
neither policy forgets how to beat what it beat before. Texts are kept and not weights: they need no further server, and
a text takes a few hundred bytes. A generation is all that policies wrote within ``steps_per_generation`` steps.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return tuple(dict.fromkeys(call for suite in self.suites for call in suite.texts))


def collect_opponents(episode: "Episode") -> Opponents:
    """Find the programs that a case broke, and the suites that broke their program.

    Programs that do not load, or are too long for the Test LLM, do not enter: no later suite could learn from them.
    """
    generation = episode.task.opponents.generation
    programs, suites = [], []
    for candidate in episode.candidates:
        verdict = candidate.verdict
        if verdict is None or not verdict.loaded or candidate.is_too_long_to_test:
            continue
        breaking = [suite for suite in verdict.suites if suite.num_failed]
        for suite in breaking:
            suites.append(Opponent(texts=tuple(case.call for case in suite.cases), generation=generation))
        if breaking or any(case.outcome.failed for case in verdict.history):
            programs.append(Opponent(texts=(candidate.source or "",), generation=generation))
    return Opponents(generation=generation, programs=tuple(programs), suites=tuple(suites))


class OpponentPool:
    """Programs and suites by question, each question's in the order they came."""

    def __init__(self, settings: OpponentSettings | None = None) -> None:
        self._settings = settings or OpponentSettings()
        self._sides: dict[str, dict[str, list[Opponent]]] = {"programs": {}, "suites": {}}

    def draw(self, question_id: str, *, step: int, num_candidates: int, num_suites: int, seed: int) -> Opponents:
        """Opponents of a question at a step; they depend on the pool and the arguments alone."""
        settings, generator = self._settings, Random(f"{seed}/opponents/{step}/{question_id}")
        programs, suites = (pool.get(question_id, []) for pool in self._sides.values())
        return Opponents(
            generation=(max(step, 1) - 1) // settings.steps_per_generation,
            programs=_draw(programs, settings.code.num_drawn(num_candidates), generator),
            suites=_draw(suites, settings.test.num_drawn(num_suites), generator),
        )

    def update(self, question_id: str, update: Opponents) -> None:
        """Take in what is new of a question; a text that is there already keeps its generation."""
        self._add("programs", question_id, update.programs, self._settings.code.max_per_question)
        self._add("suites", question_id, update.suites, self._settings.test.max_per_question)

    def metrics(self) -> dict[str, float]:
        """Numbers of programs and suites in the pool; empty where nothing is kept."""
        sizes = {f"opponents/{side}": float(sum(map(len, pool.values()))) for side, pool in self._sides.items()}
        return sizes if any(sizes.values()) else {}

    def state(self) -> dict[str, Any]:
        """The pool as plain values for JSON; empty where nothing is kept."""
        return {
            side: {question_id: [asdict(member) for member in pool[question_id]] for question_id in sorted(pool)}
            for side, pool in self._sides.items()
            if pool
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take in ``state()``; where bounds are smaller now, opponents are left out as by ``update``."""
        bounds = {"programs": self._settings.code, "suites": self._settings.test}
        for side, pool in state.items():
            for question_id, rows in pool.items():
                members = [Opponent(texts=tuple(row["texts"]), generation=row["generation"]) for row in rows]
                self._add(side, question_id, members, bounds[side].max_per_question)

    def _add(self, side: str, question_id: str, new: Iterable[Opponent], most: int) -> None:
        for opponent in new:
            # A text that comes again stays what it was: an old trick, and not a new one.
            members = self._sides[side].setdefault(question_id, [])
            if any(opponent.texts == member.texts for member in members):
                continue
            members.append(opponent)
            if len(members) > most:
                # The oldest of the fullest generation leaves, so that the pool spreads over the run.
                sizes = Counter(member.generation for member in members)
                fullest = max(sizes, key=lambda generation: (sizes[generation], -generation))
                members.remove(next(member for member in members if member.generation == fullest))


def _draw(members: Sequence[Opponent], num: int, generator: Random) -> tuple[Opponent, ...]:
    """At most ``num`` members without repetition: every generation alike, and within one every member alike.

    The first events of exponential clocks are such a sample (Efraimidis and Spirakis 2006).
    """
    # A rate of 1 / size for each member makes 1 for each generation, however many it left.
    sizes = Counter(member.generation for member in members)
    clocks = [generator.expovariate(1 / sizes[member.generation]) for member in members]
    drawn = heapq.nsmallest(num, range(len(members)), key=clocks.__getitem__)
    return tuple(members[number] for number in drawn)
