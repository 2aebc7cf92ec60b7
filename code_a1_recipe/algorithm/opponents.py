"""Opponents: programs and suites of earlier policies, which today's suites and programs meet as well. Not in the paper.

A pool keeps for each question what earlier policies wrote, a hall of fame (Rosin and Belew 1997): today's Test LLM
writes suites for earlier programs too, and today's programs meet earlier suites too, so that neither forgets how to
beat what it beat before. Texts are kept and not weights: they need no further server, nothing is sampled, and a text
takes a few hundred bytes. A generation is all that policies wrote within ``steps_per_generation`` steps.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from .settings_block import Block, Count, Rate, one_of

if TYPE_CHECKING:
    from .episode_types import CandidateResult, Episode

_MAX_GENERATIONS = 64
"""Games of older ones are forgotten, and their members drawn as those of the oldest that is known."""
_LEAST_WEIGHT = 1e-3
"""Added to a generation's weight, so that all are met now and then and their win rates stay known."""


class PoolSettings(Block):
    share: Rate = 0.0
    """Opponents that a question (a program) meets, as a share of its own candidates (suites), rounded up; 0: none."""
    max_per_question: Count = 16
    """Opponents kept of one question."""

    def num_drawn(self, of: int) -> int:
        return -int(-self.share * of // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponent:
    """What an earlier policy wrote for a question."""

    texts: tuple[str, ...]
    """One program, or the asserts of a suite."""
    generation: int
    """From 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opponents:
    """Whom one question meets."""

    generation: int = 0
    """Of today's policies."""
    programs: tuple[Opponent, ...] = ()
    suites: tuple[Opponent, ...] = ()


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

    Programs that do not load never ran: they neither count nor enter. A program's duplicates are left out.
    """
    opponents = episode.task.opponents
    today = opponents.generation
    games: Counter[tuple[int, int]] = Counter()
    broken: Counter[tuple[int, int]] = Counter()
    programs, suites = [], []

    def count(result: "CandidateResult", program: int) -> None:
        assert result.verdict is not None
        for suite, verdict in zip(result.suites, result.verdict.suites, strict=True):
            pair = (today if suite.generation is None else suite.generation, program)
            games[pair] += 1
            broken[pair] += verdict.num_failed > 0

    for victim, one in zip(episode.victims, opponents.programs, strict=True):
        if victim.verdict is not None and victim.verdict.loaded:
            count(victim, one.generation)
    for candidate in episode.candidates:
        verdict = candidate.verdict
        if candidate.source is None or verdict is None or not verdict.loaded or candidate.duplicate_of is not None:
            continue
        count(candidate, today)
        if any(suite.num_failed for suite in verdict.suites) or any(case.outcome.failed for case in verdict.history):
            programs.append(Opponent(texts=(candidate.source,), generation=today))
        suites += [
            Opponent(texts=suite.asserts, generation=today)
            for suite, judged in zip(candidate.suites, verdict.suites, strict=True)
            if suite.generation is None and judged.num_failed
        ]
    met = {pair: (broken[pair], number) for pair, number in games.items()}
    return OpponentUpdate(programs=tuple(programs), suites=tuple(suites), games=met)


def uniform(games: Games, generations: Sequence[int], *, is_code: bool) -> dict[int, float]:
    """Every opponent alike."""
    del games, is_code
    return dict.fromkeys(generations, 1.0)


def prioritized(games: Games, generations: Sequence[int], *, is_code: bool) -> dict[int, float]:
    """``win rate ** 2`` of the opponent against all it met: the hardest most (AlphaStar, Nature 575, 2019)."""
    weights = {}
    for one in generations:
        counts = [count for pair, count in games.items() if pair[is_code] == one]
        broken, met = (sum(column) for column in zip((1, 2), *counts, strict=True))  # Laplace's rule of succession
        weights[one] = (1 - broken / met if is_code else broken / met) ** 2
    return weights


def nash(games: Games, generations: Sequence[int], *, is_code: bool) -> dict[int, float]:
    """The opponents' equilibrium of the win-rate matrix (PSRO, arXiv 1711.00832).

    A pair that has not met has the win rate of its Bradley-Terry strengths.
    """
    from ..stats.bradley_terry import equilibria  # loads scipy, here and below only where it is asked for

    mixture = equilibria(games)[is_code]
    return {one: mixture.get(one, 0.0) for one in generations}


SAMPLINGS: dict[str, Callable[..., dict[int, float]]] = {"uniform": uniform, "prioritized": prioritized, "nash": nash}
"""``(games, generations, *, is_code) -> {generation -> weight}`` by name."""


class OpponentSettings(Block):
    code: PoolSettings = PoolSettings()
    """Earlier programs, for which the Test LLM writes suites too: further groups of suites."""
    test: PoolSettings = PoolSettings()
    """Earlier suites, which programs meet too: they count in the Code LLM's reward like new ones."""
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

    def draw(self, question_id: str, *, step: int, num_candidates: int, num_suites: int, seed: int) -> Opponents:
        """Opponents of a question at a step, without repetition; they depend on the pool and the arguments alone.

        Of those with weights w by ``sampling`` in proportion to w (Efraimidis and Spirakis 2006).
        """
        settings, generator = self._settings, Random(f"{seed}/opponents/{step}/{question_id}")
        weigh = SAMPLINGS[settings.sampling]

        def drawn(members: Sequence[Opponent], num: int, *, is_code: bool) -> tuple[Opponent, ...]:
            weights = weigh(self._games, sorted({one.generation for one in members}), is_code=is_code) if num else {}
            clocks = [generator.expovariate(weights[one.generation] + _LEAST_WEIGHT) for one in members] if num else []
            return tuple(members[place] for place in heapq.nsmallest(num, range(len(clocks)), key=clocks.__getitem__))

        programs, suites = self._programs.get(question_id, []), self._suites.get(question_id, [])
        return Opponents(
            generation=settings.generation_at(step),
            programs=drawn(programs, settings.code.num_drawn(num_candidates), is_code=True),
            suites=drawn(suites, settings.test.num_drawn(num_suites), is_code=False),
        )

    def update(self, question_id: str, update: OpponentUpdate) -> None:
        """Take in what is new of a question; a text that is there already keeps its generation.

        Where a question has too many, the oldest one of the generation with most of them leaves, of equal ones of the
        oldest: so the pool spreads over the run.
        """
        _add(self._programs, question_id, update.programs, self._settings.code.max_per_question)
        _add(self._suites, question_id, update.suites, self._settings.test.max_per_question)
        for pair, (broken, met) in update.games.items():
            before = self._games.get(pair, (0, 0))
            self._games[pair] = before[0] + broken, before[1] + met
        newest = max((max(pair) for pair in update.games), default=0)
        for pair in [pair for pair in self._games if min(pair) <= newest - _MAX_GENERATIONS]:
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
