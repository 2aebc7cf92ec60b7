"""The two-phase barrier, for comparison: no suite before the step's last program, no verdict before its last suite."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import ray

from ..algorithm.episode_types import EpisodeTask

# Every question of a step may wait at once.
_MOST_WAITING = 1_000_000


@dataclass
class _Phase:
    arrived: set[int] = field(default_factory=set)
    is_open: asyncio.Event = field(default_factory=asyncio.Event)


class PhaseGate:
    """One per run: a question that ended a phase waits until all questions of its step have."""

    def __init__(self) -> None:
        self._phases: dict[tuple[float, str], _Phase] = defaultdict(_Phase)

    async def arrive(self, started_at: float, phase: str, index: int, expected: int) -> None:
        """Wait for the others.

        Args:
            started_at: the step, by the time it began.
            phase: name of the phase that ended.
            index: the question's place in the step; one that arrives twice (its worker died) counts once.
            expected: questions in the step.
        """
        current = self._phases[started_at, phase]
        current.arrived.add(index)
        if len(current.arrived) >= expected:
            current.is_open.set()
            for old in [key for key in self._phases if key[0] < started_at]:
                del self._phases[old]
        await current.is_open.wait()


class SharedGate:
    """A ``Gate`` of all episode workers."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def start(cls) -> "SharedGate":
        actor_class = ray.remote(PhaseGate).options(num_cpus=0, max_concurrency=_MOST_WAITING)
        return cls(actor_class.remote())

    async def wait(self, task: EpisodeTask, phase: str) -> None:
        await self._actor.arrive.remote(task.started_at, phase, task.index, task.num_questions)

    def close(self) -> None:
        ray.kill(self._actor)
