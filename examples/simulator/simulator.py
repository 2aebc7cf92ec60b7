"""One training step: episodes as discrete events, then both updates, by formula."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from .engine import Action, Clock, Device, Queue
from .rates import PolicyRates, Rates
from .server import Replicas, Server
from .workload import Program, StepWork

POLICIES = ("code", "test")
STREAMING, BARRIER = "streaming", "barrier"
MODES = (STREAMING, BARRIER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which GPUs hold which policy."""

    name: str
    """"colocated": both policies on all GPUs; "separate": each on its own."""
    code_gpus: int
    test_gpus: int

    @classmethod
    def colocated(cls, gpus: int) -> Layout:
        """Both policies' servers on every GPU while episodes run; updates one after another, each on all GPUs."""
        return cls(name="colocated", code_gpus=gpus, test_gpus=gpus)

    @classmethod
    def separate(cls, code_gpus: int, test_gpus: int) -> Layout:
        """Servers and trainer of a policy on its own GPUs; the two updates run at the same time."""
        return cls(name="separate", code_gpus=code_gpus, test_gpus=test_gpus)

    @property
    def is_shared(self) -> bool:
        return self.name == "colocated"

    @property
    def gpus(self) -> int:
        return self.code_gpus if self.is_shared else self.code_gpus + self.test_gpus

    def gpus_of(self, policy: str) -> int:
        """GPUs that policy "code" or "test" trains and generates on."""
        return self.code_gpus if policy == "code" else self.test_gpus

    def joined(self, seconds: Iterable[float]) -> float:
        """Of both policies' updates: on shared GPUs one after another, on GPUs of their own at the same time."""
        return sum(seconds) if self.is_shared else max(seconds, default=0.0)

    def text(self) -> str:
        """``8`` or ``3 + 5``."""
        return str(self.gpus) if self.is_shared else f"{self.code_gpus} + {self.test_gpus}"


@dataclass(slots=True, kw_only=True)
class EpisodeTimes:
    """When what happened, in seconds since the step's start."""

    written: list[list[float]]
    """[Q][C] each program, when its client has it."""
    tested: list[list[float]]
    """[Q][C] each program's last suite; its program's own time where it has no suites."""
    judged: list[list[float]]
    """[Q][C] its verdict, and behind a barrier that on the hidden tests; without what is pooled."""
    seconds: float = 0.0
    """All episodes."""
    idle_frac: float = 0.0
    """Share of the GPUs' time without a request, in [0, 1]."""
    generated_tokens: dict[str, int] = field(default_factory=dict)
    """By policy."""
    prefilled_tokens: dict[str, int] = field(default_factory=dict)
    """By policy; what the prefix cache held is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPrediction:
    """Seconds of one step."""

    layout: Layout
    mode: str
    episodes: float
    updates: float
    """Of the policies that update, and freeing both policies' servers' memory before."""
    sync: float
    """New weights to both policies' servers."""
    other: float
    idle_frac: float
    """Of GPU time while episodes run, in [0, 1]."""

    @property
    def seconds(self) -> float:
        return self.episodes + self.updates + self.sync + self.other

    @property
    def steps_per_gpu_hour(self) -> float:
        return 3600 / (self.seconds * self.layout.gpus)


class _Episodes:
    """The flow of one step's programs through client, servers and judge."""

    def __init__(self, rates: Rates, work: StepWork, *, layout: Layout, mode: str) -> None:
        machine = rates.machine
        self._rates = rates
        self._work = work
        self._is_streaming = mode == STREAMING
        self._clock = Clock()
        self._host = Device(self._clock, capacity=machine.host_cores)
        number = 0 if machine.servers_on_host else layout.gpus
        self._gpus = [Device(self._clock, capacity=machine.gpu_capacity) for _ in range(number)]
        self._code, self._test = (self._replicas(layout, policy) for policy in POLICIES)
        self._clients = [Queue(self._host) for _ in range(rates.client.workers)]
        slots = rates.judge.programs_per_worker
        self._judges = [Queue(self._host, slots=slots) for _ in range(rates.judge.workers)]
        self._held: list[tuple[int, int]] = []
        self._known_questions: set[int] = set()
        programs = len(work.programs)
        self._unwritten = self._untested = programs
        self._unjudged_Q = [len(question) for question in work.questions]
        self._unpooled_Q = [sum(program.pooled is not None for program in question) for question in work.questions]
        # What a verdict waits for: the last suite, and streaming also the hidden tests.
        self._awaited_QC = [
            [1 + (self._is_streaming and program.hidden is not None) for program in question]
            for question in work.questions
        ]
        self._left_QC = [[len(program.suites) for program in question] for question in work.questions]
        zeros = [[0.0] * len(question) for question in work.questions]
        self.times = EpisodeTimes(
            written=[list(row) for row in zeros], tested=[list(row) for row in zeros], judged=zeros
        )

    def _replicas(self, layout: Layout, policy: str) -> Replicas:
        first = 0 if layout.is_shared or policy == "code" else layout.code_gpus
        number = layout.gpus_of(policy)
        devices = self._gpus[first : first + number] or [self._host] * number
        server = getattr(self._rates, policy).server
        return Replicas([Server(self._clock, device, server) for device in devices])

    def run(self) -> EpisodeTimes:
        for q, question in enumerate(self._work.questions):
            for c in range(len(question)):
                self._client(q).add(self._rates.client.send_seconds, lambda q=q, c=c: self._ask_code(q, c))  # type: ignore[misc]
        self._clock.run()
        times = self.times
        times.seconds = self._clock.now
        if self._gpus and times.seconds > 0:
            busy = sum(device.busy_seconds for device in self._gpus)
            times.idle_frac = 1.0 - busy / (len(self._gpus) * times.seconds)
        for policy, replicas in zip(POLICIES, (self._code, self._test), strict=True):
            times.generated_tokens[policy] = sum(server.generated_tokens for server in replicas.servers)
            times.prefilled_tokens[policy] = sum(server.prefilled_tokens for server in replicas.servers)
        return times

    def _client(self, q: int) -> Queue:
        return self._clients[q % len(self._clients)]

    def _program(self, q: int, c: int) -> Program:
        return self._work.questions[q][c]

    def _ask_code(self, q: int, c: int) -> None:
        receive = self._rates.client.receive_seconds
        self._code.submit(
            self._program(q, c).written,
            session=q,
            action=lambda: self._client(q).add(receive, lambda: self._written(q, c)),
        )

    def _written(self, q: int, c: int) -> None:
        self.times.written[q][c] = self._clock.now
        self._unwritten -= 1
        if self._is_streaming:
            # The client sends the hidden tests first: suites are tasks of their own on its event loop.
            if (hidden := self._program(q, c).hidden) is not None:
                self._ask_judge(q, c, hidden, lambda: self._judge_when_all_is_there(q, c))
            self._ask_suites(q, c)
            return
        self._held.append((q, c))
        if not self._unwritten:
            held, self._held = sorted(self._held), []
            for program in held:
                self._ask_suites(*program)

    def _ask_suites(self, q: int, c: int) -> None:
        if not self._program(q, c).suites:
            self._tested(q, c)
        for s in range(len(self._program(q, c).suites)):
            self._client(q).add(self._rates.client.send_seconds, lambda s=s: self._ask_test(q, c, s))  # type: ignore[misc]

    def _ask_test(self, q: int, c: int, s: int) -> None:
        receive = self._rates.client.receive_seconds
        self._test.submit(
            self._program(q, c).suites[s],
            session=(q, c),
            action=lambda: self._client(q).add(receive, lambda: self._suite_written(q, c)),
        )

    def _suite_written(self, q: int, c: int) -> None:
        self._left_QC[q][c] -= 1
        if not self._left_QC[q][c]:
            self._tested(q, c)

    def _tested(self, q: int, c: int) -> None:
        self.times.tested[q][c] = self._clock.now
        self._untested -= 1
        if self._is_streaming:
            self._judge_when_all_is_there(q, c)
            return
        self._held.append((q, c))
        if not self._untested:
            held, self._held = sorted(self._held), []
            for program in held:
                self._judge(*program)

    def _judge_when_all_is_there(self, q: int, c: int) -> None:
        self._awaited_QC[q][c] -= 1
        if not self._awaited_QC[q][c]:
            self._judge(q, c)

    def _judge(self, q: int, c: int) -> None:
        judged = self._program(q, c).judged
        if judged is None:
            self._judged(q, c)
        else:
            self._ask_judge(q, c, judged, lambda: self._verdict(q, c))

    def _ask_judge(self, q: int, c: int, asserts: int, action: Action) -> None:
        """A request about the program: client, judge, client again; ``action`` runs when that has the answer."""
        self._client(q).add(self._rates.client.send_seconds, lambda: self._add_to_judge(q, asserts, action))

    def _add_to_judge(self, q: int, asserts: int, action: Action) -> None:
        rates = self._rates.judge
        seconds = rates.program_seconds + rates.case_seconds * asserts
        if q not in self._known_questions:
            self._known_questions.add(q)
            seconds += rates.question_seconds
        receive = self._rates.client.receive_seconds
        judge = self._judges[self._work.judges[q] % len(self._judges)]
        judge.add(seconds, lambda: self._client(q).add(receive, action))

    def _verdict(self, q: int, c: int) -> None:
        hidden = self._program(q, c).hidden
        if self._is_streaming or hidden is None:
            self._judged(q, c)
        else:
            self._ask_judge(q, c, hidden, lambda: self._judged(q, c))

    def _judged(self, q: int, c: int) -> None:
        self.times.judged[q][c] = self._clock.now
        self._unjudged_Q[q] -= 1
        if self._unjudged_Q[q]:
            return
        if not self._unpooled_Q[q]:
            self._end(q)
        for number, program in enumerate(self._work.questions[q]):
            if program.pooled is not None:
                self._ask_judge(q, number, program.pooled, lambda: self._pooled(q))

    def _pooled(self, q: int) -> None:
        self._unpooled_Q[q] -= 1
        if not self._unpooled_Q[q]:
            self._end(q)

    def _end(self, q: int) -> None:
        self._client(q).add(self._rates.client.question_seconds, lambda: None)


def simulate_episodes(rates: Rates, work: StepWork, *, layout: Layout, mode: str) -> EpisodeTimes:
    """All episodes of a step, from the first request to the last verdict.

    Args:
        mode: "streaming": a program goes on to its suites, beside them to the hidden tests, and then to its verdict,
            by itself. "barrier": no suite before the last program, no verdict before the last suite.
    """
    return _Episodes(rates, work, layout=layout, mode=mode).run()


def update_seconds(rates: Rates, work: StepWork, *, policy: str, gpus: int) -> float:
    """Of one policy's update on its own."""
    policy_rates: PolicyRates = getattr(rates, policy)
    trained = work.trained(policy)
    return policy_rates.update.seconds(
        rows=len(trained),
        tokens=sum(one.prompt_tokens + one.response_tokens for one in trained),
        mini_batches=work.mini_batches(policy),
        gpus=gpus,
    )


def simulate_step(
    rates: Rates, work: StepWork, *, layout: Layout, mode: str, updated: Collection[str] = POLICIES
) -> StepPrediction:
    """Episodes, then both policies sleep, then updates, then weights to the servers of both.

    Policies update one after another on shared GPUs and at the same time on GPUs of their own. In every layout they
    sleep and wake one after another, also one that does not update.

    Args:
        updated: the policies that update in this step.
    """
    times = simulate_episodes(rates, work, layout=layout, mode=mode)
    updates = [
        update_seconds(rates, work, policy=policy, gpus=layout.gpus_of(policy))
        for policy in POLICIES
        if policy in updated
    ]
    return StepPrediction(
        layout=layout,
        mode=mode,
        episodes=times.seconds,
        updates=rates.code.sleep_seconds + rates.test.sleep_seconds + layout.joined(updates),
        sync=rates.code.sync_seconds + rates.test.sync_seconds,
        other=rates.step_seconds,
        idle_frac=times.idle_frac,
    )
