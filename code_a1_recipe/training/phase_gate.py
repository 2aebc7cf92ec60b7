"""The two-phase barrier: no suite before the step's last program, no verdict before its last suite."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from ..algorithm.episode_types import EpisodeTask


@dataclass
class _Phase:
    arrived: set[int] = field(default_factory=set)
    is_open: asyncio.Event = field(default_factory=asyncio.Event)


class PhaseGate:
    """A ``Gate`` of one episode worker: a question that ended a phase waits until all questions of its step have."""

    def __init__(self) -> None:
        self._phases: dict[tuple[float, str], _Phase] = defaultdict(_Phase)

    async def wait(self, task: EpisodeTask, phase: str) -> None:
        """Wait for the others; a question that arrives twice counts once."""
        current = self._phases[task.started_at, phase]
        current.arrived.add(task.index)
        if len(current.arrived) >= task.num_questions:
            current.is_open.set()
            for old in [key for key in self._phases if key[0] < task.started_at]:
                del self._phases[old]
        await current.is_open.wait()
