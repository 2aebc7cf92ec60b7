"""Opponents: programs and suites of earlier policies, which today's suites and programs meet as well. Not in the paper.

A pool keeps for each question what earlier policies wrote, a hall of fame (Rosin and Belew 1997): today's Test LLM
writes suites for earlier programs too, and the calls of earlier suites are replayed beside the Mistake Book's, so that
neither policy forgets how to beat what it beat before. Texts are kept and not weights: they need no further server,
nothing is sampled, and a text takes a few hundred bytes. A generation is all that policies wrote within
``steps_per_generation`` steps.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from .settings_block import Block, Count, Rate, one_of

if TYPE_CHECKING:
    from .episode_types import Episode

_MAX_GENERATIONS = 64
"""Games of older ones are forgotten; those of their members count for the oldest that is known."""
_LEAST_WEIGHT = 1e-3
"""Added to a generation's weight, so that all are met now and then and their win rates stay known."""


class PoolSettings(Block):
    share: Rate = 0.0
    """Opponents that a question (a program) meets, as a share of its own candidates (suites), rounded up; 0: none."""
    max_per_question: Count = 16
    """Opponents kept of one question."""

    def num_drawn(self, of: int) -> int:
        return math.ceil(self.share * of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponent:
    """What an earlier policy wrote for a question."""

    texts: tuple[str, ...]
    """One program, or the calls of a suite."""
    generation: int
    """From 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponents:
    """Whom one question meets."""

    generation: int = 0
    """Of today's policies."""
    programs: tuple[Opponent, ...] = ()
    suites: tuple[Opponent, ...] = ()

    @property
    def calls(self) -> tuple[str, ...]:
        """Of all suites, each once."""
        return tuple(dict.fromkeys(call for one in self.suites for call in one.texts))


Games = dict[tuple[int, int], tuple[int, int]]
"""``{(Test LLM's generation, Code LLM's) -> (programs broken, programs met)}``, counted by suite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpponentUpdate:
    """What one question's episode adds to the pool."""

    programs: tuple[Opponent, ...] = ()
    suites: tuple[Opponent, ...] = ()
    games: Games = field(default_factory=dict)


def collect_opponents(episode: "Episode") -> OpponentUpdate:
    """Who met whom in an episode, and who enters the pool: programs that a case broke, suites that broke their program.

    Programs that do not load never ran: they neither count nor enter. A program's duplicates, and programs too long for
    the Test LLM, are left out.
    """
    opponents, today = episode.task.opponents, episode.task.opponents.generation
    met: Counter[tuple[int, int]] = Counter()
    broken: Counter[tuple[int, int]] = Counter()
    programs, suites = [], []
    generations = [today] * len(episode.candidates) + [one.generation for one in opponents.programs]
    for place, (result, program) in enumerate(zip(episode.tested, generations, strict=True)):
        verdict = result.verdict
        if verdict is None or not verdict.loaded or result.duplicate_of is not None or result.is_too_long_to_test:
            continue
        failed = {case.call for case in verdict.history if case.outcome.failed}
        games = [(today, suite.num_failed > 0) for suite in verdict.suites]
        games += [(one.generation, not failed.isdisjoint(one.texts)) for one in opponents.suites]
        for test, is_broken in games:
            met[test, program] += 1
            broken[test, program] += is_broken
        if place >= len(episode.candidates):
            continue
        if failed or any(suite.num_failed for suite in verdict.suites):
            programs.append(Opponent(texts=(result.source or "",), generation=today))
        suites += [
            Opponent(texts=tuple(case.call for case in suite.cases), generation=today)
            for suite in verdict.suites
            if suite.num_failed
        ]
    games_met = {pair: (broken[pair], number) for pair, number in met.items()}
    return OpponentUpdate(programs=tuple(programs), suites=tuple(suites), games=games_met)


def uniform(games: Games, *, is_code: bool) -> dict[int, float]:
    """Every generation alike."""
    return dict.fromkeys((pair[is_code] for pair in games), 1.0)


def prioritized(games: Games, *, is_code: bool) -> dict[int, float]:
    """``win rate ** 2`` of the opponent against all it met: the hardest most (AlphaStar, Nature 575, 2019)."""
    weights = {}
    for one in sorted({pair[is_code] for pair in games}):
        counts = [count for pair, count in games.items() if pair[is_code] == one]
        broken, met = (sum(column) for column in zip((1, 2), *counts, strict=True))  # Laplace's rule of succession
        weights[one] = (1 - broken / met if is_code else broken / met) ** 2
    return weights


def nash(games: Games, *, is_code: bool) -> dict[int, float]:
    """The opponents' equilibrium of the win-rate matrix (PSRO, arXiv 1711.00832).

    A pair that has not met has the win rate of its Bradley-Terry strengths.
    """
    from ..stats.bradley_terry import equilibria  # loads scipy, here and below only where it is asked for

    return equilibria(games)[is_code]


SAMPLINGS: dict[str, Callable[..., dict[int, float]]] = {"uniform": uniform, "prioritized": prioritized, "nash": nash}
"""``(games, *, is_code) -> {generation -> weight}`` by name, of the generations that met somebody."""


class OpponentSettings(Block):
    code: PoolSettings = PoolSettings()
    """Earlier programs, for which the Test LLM writes suites too: further groups of suites."""
    test: PoolSettings = PoolSettings()
    """Earlier suites, whose calls are replayed: they count in both rewards as the Mistake Book's cases do."""
    sampling: Annotated[str, one_of(SAMPLINGS)] = "uniform"
    """By which generations of opponents are drawn."""
    steps_per_generation: Count = 10
    """Training steps whose policies count as one."""

    @property
    def is_on(self) -> bool:
        return bool(self.code.share or self.test.share)

    def generation_at(self, step: int) -> int:
        return (max(step, 1) - 1) // self.steps_per_generation


class OpponentPool:
    """``{question id -> opponents}`` of both sides, each question's in the order they came, and who beat whom."""

    def __init__(self, settings: OpponentSettings | None = None) -> None:
        self._settings = settings or OpponentSettings()
        self._programs: dict[str, list[Opponent]] = {}
        self._suites: dict[str, list[Opponent]] = {}
        self._games: Games = {}
        self._weights: dict[bool, dict[int, float]] = {}
        """Of generations by side, while the games stay as they are."""

    def draw(self, question_id: str, *, step: int, num_candidates: int, num_suites: int, seed: int) -> Opponents:
        """Opponents of a question at a step, without repetition; they depend on the pool and the arguments alone.

        A generation is met in proportion to its weight, its members alike (Efraimidis and Spirakis 2006).
        """
        settings, generator = self._settings, Random(f"{seed}/opponents/{step}/{question_id}")

        def drawn(members: Sequence[Opponent], num: int, *, is_code: bool) -> tuple[Opponent, ...]:
            if not num or not members:
                return ()
            weights = self._weights_of(is_code)
            known = [max(one.generation, min(weights)) for one in members]
            sizes = Counter(known)
            clocks = [generator.expovariate((weights.get(one, 0.0) + _LEAST_WEIGHT) / sizes[one]) for one in known]
            return tuple(members[place] for place in heapq.nsmallest(num, range(len(clocks)), key=clocks.__getitem__))

        programs, suites = self._programs.get(question_id, []), self._suites.get(question_id, [])
        return Opponents(
            generation=settings.generation_at(step),
            programs=drawn(programs, settings.code.num_drawn(num_candidates), is_code=True),
            suites=drawn(suites, settings.test.num_drawn(num_suites), is_code=False),
        )

    def _weights_of(self, is_code: bool) -> dict[int, float]:
        if is_code not in self._weights:
            self._weights[is_code] = SAMPLINGS[self._settings.sampling](self._games, is_code=is_code) or {0: 1.0}
        return self._weights[is_code]

    def update(self, question_id: str, update: OpponentUpdate) -> None:
        """Take in what is new of a question; a text that is there already keeps its generation.

        Where a question has too many, the oldest one of the generation with most of them leaves, of equal ones of the
        oldest: so the pool spreads over the run.
        """
        _add(self._programs, question_id, update.programs, self._settings.code.max_per_question)
        _add(self._suites, question_id, update.suites, self._settings.test.max_per_question)
        self._weights.clear()
        newest = max((max(pair) for pair in (*self._games, *update.games)), default=0)
        oldest = newest - _MAX_GENERATIONS + 1
        for (test, code), (broken, met) in update.games.items():
            pair = max(test, oldest), max(code, oldest)
            before = self._games.get(pair, (0, 0))
            self._games[pair] = before[0] + broken, before[1] + met
        for pair in [pair for pair in self._games if min(pair) < oldest]:
            del self._games[pair]

    def metrics(self) -> dict[str, float]:
        """Sizes, and Elo points of the newest generation of either side above its first known one; {} without games.

        Strengths are those of :func:`fit_strengths` over all games. A pool keeps programs that were broken and suites
        that broke one, so old programs look weaker, and old suites stronger, than all that their generation wrote.
        """
        if not self._games:
            return {}
        from ..stats.bradley_terry import elo_ratings

        sizes = {"programs": self._programs, "suites": self._suites}
        metrics = {f"opponents/{name}": float(sum(map(len, pool.values()))) for name, pool in sizes.items()}
        for name, ratings in zip(("test", "code"), elo_ratings(self._games), strict=True):
            metrics[f"opponents/{name}_rating"] = ratings[max(ratings)] - ratings[min(ratings)]
        return metrics

    def state(self) -> dict[str, Any]:
        """For JSON; empty where nothing is kept."""
        if not self._games:
            return {}

        def plain(pool: Mapping[str, Sequence[Opponent]]) -> dict[str, list[dict[str, Any]]]:
            return {name: [asdict(one) for one in pool[name]] for name in sorted(pool)}

        games = [[*pair, *self._games[pair]] for pair in sorted(self._games)]
        return {"programs": plain(self._programs), "suites": plain(self._suites), "games": games}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take in ``state()``; with smaller bounds as ``update`` leaves out."""
        for side, pool, bound in (
            ("programs", self._programs, self._settings.code),
            ("suites", self._suites, self._settings.test),
        ):
            for name, members in state.get(side, {}).items():
                found = [Opponent(texts=tuple(one["texts"]), generation=one["generation"]) for one in members]
                _add(pool, name, found, bound.max_per_question)
        self._games |= {(test, code): (broken, met) for test, code, broken, met in state.get("games", ())}


def _add(pool: dict[str, list[Opponent]], question_id: str, new: Iterable[Opponent], most: int) -> None:
    members = pool.get(question_id, [])
    known = {one.texts for one in members}
    for one in new:
        if one.texts not in known:
            known.add(one.texts)
            members = pool.setdefault(question_id, members)
            members.append(one)
            if len(members) > most:
                sizes = Counter(member.generation for member in members)
                fullest = max(sizes, key=lambda generation: (sizes[generation], -generation))
                members.remove(next(member for member in members if member.generation == fullest))
