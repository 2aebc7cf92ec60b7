"""A clock and devices that several jobs share: the discrete-event core of the simulator.

Time advances from event to event. A device gives all its jobs the same speed, so jobs end in the order of the virtual
time (seconds of undisturbed work since the device's start) at which they are due, and one event a device is planned at
any time.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable

Action = Callable[[], None]


class Clock:
    """Simulated seconds; runs what devices have planned, earliest first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Device, int]] = []
        self._numbers = itertools.count()
        self._changed: list[Device] = []
        self._settled: list[Action] = []

    def plan(self, seconds: float, device: Device, version: int) -> None:
        """Wake ``device`` at ``seconds`` unless its version has moved on by then."""
        heapq.heappush(self._events, (seconds, next(self._numbers), device, version))

    def changes(self, device: Device) -> None:
        """``device`` has other jobs than before: its next event is planned anew before time goes on."""
        self._changed.append(device)

    def when_settled(self, action: Action) -> None:
        """Run ``action`` when everything else that happens at this time has happened."""
        self._settled.append(action)

    def run(self) -> None:
        """Until nothing is left to happen."""
        while True:
            self._plan_changed()
            if self._settled and not (self._events and self._events[0][0] <= self.now):
                actions, self._settled = self._settled, []
                for action in actions:
                    action()
                continue
            if not self._events:
                return
            seconds, _, device, version = heapq.heappop(self._events)
            if version == device.version:
                self.now = max(self.now, seconds)
                device.wake()

    def _plan_changed(self) -> None:
        for device in self._changed:
            device.plan()
        self._changed = []


class Job:
    """Work on a device: seconds it takes where nothing else wants the device."""

    __slots__ = ("action", "demand", "due", "number", "started")

    def __init__(self, demand: float, action: Action) -> None:
        self.demand = demand
        self.action = action
        self.started = self.due = 0.0
        self.number = -1


class Device:
    """A GPU or a host that its jobs share evenly.

    Every job demands a part of it: 1 is a whole GPU, or one core of a host. A job alone runs at full speed. Several do
    while their demands add up to no more than ``capacity``; above that all are slowed by the same factor (processor
    sharing).

    Args:
        capacity: cores of a host; 1 for a GPU whose kernels of different processes take turns, less if that costs.
    """

    def __init__(self, clock: Clock, *, capacity: float) -> None:
        self.version = 0
        self._is_changed = False
        self.busy_seconds = 0.0
        """Time with at least one job."""
        self._clock = clock
        self._capacity = capacity
        self._demand = 0.0
        self._num_jobs = 0
        self._virtual = 0.0
        self._since = 0.0
        self._heap: list[tuple[float, int, Job]] = []
        self._numbers = itertools.count()

    @property
    def speed(self) -> float:
        """Work done in a second by each job, in (0, 1]."""
        alone = self._num_jobs <= 1
        return 1.0 if alone or self._demand <= self._capacity else self._capacity / self._demand

    def start(self, seconds: float, action: Action, *, demand: float = 1.0) -> Job:
        """Begin a job of ``seconds`` undisturbed work; ``action`` runs at its end."""
        self._advance()
        job = Job(demand, action)
        self._num_jobs += 1
        self._demand += demand
        job.started = self._virtual
        self._put(job, self._virtual + seconds)
        return job

    def done(self, job: Job) -> float:
        """Undisturbed seconds of the job's work that are behind it."""
        self._advance()
        return self._virtual - job.started

    def resize(self, job: Job, seconds: float) -> None:
        """The whole job now takes ``seconds`` undisturbed, what is behind it included."""
        self._advance()
        self._put(job, job.started + seconds)

    def wake(self) -> None:
        """End the job that is due."""
        self._advance()
        _, _, job = heapq.heappop(self._heap)
        job.number = -1
        self._num_jobs -= 1
        self._demand = self._demand - job.demand if self._num_jobs else 0.0
        self._change()
        job.action()

    def plan(self) -> None:
        """Tell the clock when the next job ends at the present speed."""
        self._is_changed = False
        while self._heap and self._heap[0][1] != self._heap[0][2].number:
            heapq.heappop(self._heap)
        if self._heap:
            left = max(0.0, self._heap[0][0] - self._virtual)
            self._clock.plan(self._since + left / self.speed, self, self.version)

    def _put(self, job: Job, due: float) -> None:
        job.due, job.number = due, next(self._numbers)
        heapq.heappush(self._heap, (due, job.number, job))
        self._change()

    def _change(self) -> None:
        if not self._is_changed:
            self._is_changed = True
            self.version += 1
            self._clock.changes(self)

    def _advance(self) -> None:
        elapsed = self._clock.now - self._since
        if elapsed > 0:
            self._since = self._clock.now
            if self._num_jobs:
                self._virtual += elapsed * self.speed
                self.busy_seconds += elapsed


class Queue:
    """Works off tasks on a device, in order, a few at a time: an event loop, or a judge with its slots."""

    def __init__(self, device: Device, *, slots: int = 1, demand: float = 1.0) -> None:
        self._device = device
        self._free = slots
        self._demand = demand
        self._waiting: deque[tuple[float, Action]] = deque()

    def add(self, seconds: float, action: Action) -> None:
        """A task of ``seconds`` undisturbed work; ``action`` runs at its end."""
        if self._free:
            self._begin(seconds, action)
        else:
            self._waiting.append((seconds, action))

    def _begin(self, seconds: float, action: Action) -> None:
        self._free -= 1

        def ended() -> None:
            self._free += 1
            if self._waiting:
                self._begin(*self._waiting.popleft())
            action()

        self._device.start(seconds, ended, demand=self._demand)
