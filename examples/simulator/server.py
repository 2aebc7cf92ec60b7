"""A replica of a policy's server: continuous batching, jumping over runs of identical iterations."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from .engine import Action, Clock, Device, Job
from .rates import ServerRates
from .workload import Generation

# Of an iteration: what rounding may leave of one that has ended.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Request:
    generation: Generation
    prefix: Hashable
    action: Action


class Server:
    """Generates responses on a device; ``rates`` says what an iteration takes.

    Requests join between iterations. The one that admits a request also gives its first token, so a response of L
    tokens takes L iterations.
    """

    def __init__(self, clock: Clock, device: Device, rates: ServerRates) -> None:
        self.in_flight = 0
        """Requests that wait or run."""
        self.generated_tokens = 0
        self.prefilled_tokens = 0
        self._clock = clock
        self._device = device
        self._rates = rates
        self._waiting: deque[_Request] = deque()
        self._ends: list[tuple[int, int, _Request, int]] = []
        self._numbers = itertools.count()
        self._prefixes: dict[Hashable, int] = {}
        self._iteration = 0
        self._context_tokens = 0
        self._kv_tokens = 0
        self._planned = 0
        self._job: Job | None = None
        self._will_start = False

    def submit(self, generation: Generation, *, prefix: Hashable, action: Action) -> None:
        """Ask for a response; ``action`` runs with its last token.

        Args:
            prefix: requests that share it have the same prompt, which is prefilled once.
        """
        request = _Request(generation, prefix, action)
        self.in_flight += 1
        self._waiting.append(request)
        if self._job is None:
            if not self._will_start:
                self._will_start = True
                self._clock.when_settled(self._start)
        elif self._planned > 1 and self._has_room_for(request):
            self._shorten()

    def _start(self) -> None:
        self._will_start = False
        self._go_on()

    def _go_on(self) -> None:
        """At the boundary of two iterations: admit what fits, then run until the next response can end or begin."""
        rates = self._rates
        admitted, prefill = 0, 0
        while self._waiting and prefill < rates.max_num_batched_tokens and self._has_room_for(self._waiting[0]):
            prefill += self._admit(self._waiting.popleft())
            admitted += 1
        if not self._ends:
            self._job = None
            return
        self._planned = 1 if admitted else self._ends[0][0] - self._iteration
        seconds = self._seconds(self._planned)
        seconds += rates.admission_seconds * admitted + rates.prefill_token_seconds * prefill
        self._job = self._device.start(seconds, self._ended, demand=rates.demand)

    def _admit(self, request: _Request) -> int:
        """Returns the prompt tokens to prefill."""
        generation = request.generation
        prefill = self._prefill_tokens(request)
        self._prefixes[request.prefix] = self._cacheable_tokens(generation)
        end = self._iteration + generation.response_tokens
        heapq.heappush(self._ends, (end, next(self._numbers), request, prefill))
        self._context_tokens += generation.prompt_tokens
        self._kv_tokens += prefill
        self.prefilled_tokens += prefill
        return prefill

    def _cacheable_tokens(self, generation: Generation) -> int:
        """Whole blocks before the prompt's last token, which is always computed: the answer begins there."""
        block = self._rates.cache_block_tokens
        return (generation.prompt_tokens - 1) // block * block

    def _prefill_tokens(self, request: _Request) -> int:
        cached = min(self._prefixes.get(request.prefix, 0), self._cacheable_tokens(request.generation))
        return request.generation.prompt_tokens - cached

    def _has_room_for(self, request: _Request) -> bool:
        if not self._ends:
            return True
        fits = self._kv_tokens + self._prefill_tokens(request) <= self._rates.kv_tokens
        return len(self._ends) < self._rates.max_num_seqs and fits

    def _seconds(self, iterations: int) -> float:
        """Of iterations in which nobody joins or leaves; each adds a token to every context.

        ``sum_i (a + b * n + c * (t + n * i))`` for i in [0, iterations).
        """
        first, growth = self._first_and_growth()
        return iterations * first + growth * iterations * (iterations - 1) / 2

    def _first_and_growth(self) -> tuple[float, float]:
        rates, running = self._rates, len(self._ends)
        first = rates.iteration_seconds + rates.request_seconds * running
        return first + rates.context_token_seconds * self._context_tokens, rates.context_token_seconds * running

    def _shorten(self) -> None:
        """A request came while several iterations were planned: stop at the end of the one that runs now."""
        assert self._job is not None
        done = self._device.done(self._job)
        first, growth = self._first_and_growth()
        # The smallest i with i * first + growth * i * (i - 1) / 2 >= done.
        exact = done / first
        if growth > 0:
            linear = first - growth / 2
            exact = (math.sqrt(linear * linear + 2 * growth * done) - linear) / growth
        running = min(self._planned, max(1, math.ceil(exact - _ROUNDING)))
        if running < self._planned:
            self._planned = running
            self._device.resize(self._job, self._seconds(running))

    def _ended(self) -> None:
        """The planned iterations are behind us; responses may be complete."""
        tokens = self._planned * len(self._ends)
        self._iteration += self._planned
        self._context_tokens += tokens
        self._kv_tokens += tokens
        self.generated_tokens += tokens
        finished = []
        while self._ends and self._ends[0][0] <= self._iteration:
            _, _, request, prefill = heapq.heappop(self._ends)
            self._context_tokens -= request.generation.prompt_tokens + request.generation.response_tokens
            self._kv_tokens -= prefill + request.generation.response_tokens
            finished.append(request)
        self.in_flight -= len(finished)
        self._go_on()
        for request in finished:
            request.action()


class Replicas:
    """All servers of a policy: a session stays on the replica that had the fewest requests when it began."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self._sessions: dict[Hashable, Server] = {}

    def submit(self, generation: Generation, *, session: Hashable, action: Action) -> None:
        """Ask for a response; the prompts of one session are the same, so it is their prefix too."""
        if session not in self._sessions:
            self._sessions[session] = min(self.servers, key=lambda server: server.in_flight)
        self._sessions[session].submit(generation, prefix=session, action=action)
