"""Programs on every node of a Ray cluster: one actor a node, each with a local pool of confined interpreters.

A caller waits for a free place anywhere and takes the least loaded one, so no program queues behind a
busy node while another is idle. An actor or node that is lost costs nothing but time: what it ran is
run again elsewhere. Nodes that join get an actor of their own. Actors import no torch.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sandbox import (
    Closing,
    Limits,
    LocalRunner,
    Program,
    ProgramResult,
    Role,
    SandboxConfigError,
    SandboxUnavailableError,
)

logger = logging.getLogger(__name__)

START_SECONDS = 120.0
"""How long the first actor may take, and how long callers wait when every node is gone."""
LOOK_SECONDS = 5.0
"""Time between two looks at the cluster's nodes."""
_CLOSE_SECONDS = 10.0
_FAILED_SECONDS = 30.0
"""Pause before another start on a node where an actor could not start."""
_TRIES = 4
"""Places where a program may be lost before it counts as an outage."""
_OTHERS_SECONDS = 10.0
"""After the first actor's start; a node whose CPUs are taken joins when they are free."""


def nodes_with_cpus(num_cpus: float) -> set[str]:
    """Ids of the cluster's living nodes that have at least so many CPUs in all, busy ones included."""
    return {node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= num_cpus}


class RunnerActor:
    """One node's local pool; its methods run in as many threads as it may run programs."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._runner = LocalRunner(**options)

    def ready(self) -> bool:
        return True

    def run(self, program: Program, role: Role) -> ProgramResult:
        return self._runner.run(program, role=role)

    def close(self) -> None:
        """End the confined interpreters; the actor is of no use afterwards."""
        self._runner.close()


@dataclass(eq=False)
class _Member:
    """One node's actor, and how many programs it runs for us."""

    node_id: str
    actor: Any
    greeting: Any
    """Reference to the answer of ``ready``."""
    is_ready: bool = False
    num_running: int = 0


class RayRunner(Closing):
    """A runner over all nodes of the Ray cluster that this process is connected to.

    Args:
        programs_per_node: programs that one node runs at once.
        cpus_per_program: CPUs that Ray sets aside for each of them; nodes without them are left out.
        limits: used where a judge sets none.
        options: further arguments of each node's ``LocalRunner`` (``tier``, ``preload``...).

    Raises:
        SandboxConfigError: a number is out of its range, or this process is not connected to Ray.
        SandboxUnavailableError: no node could start an actor within ``START_SECONDS``; says why.
    """

    def __init__(
        self,
        *,
        programs_per_node: int = 2,
        cpus_per_program: float = 1.0,
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if programs_per_node < 1:
            raise SandboxConfigError(f"programs_per_node must be at least 1, got {programs_per_node!r}")
        if not ray.is_initialized():
            raise SandboxConfigError("RayRunner needs a connection to a Ray cluster; call ray.init(...) before")
        self.limits = limits if limits is not None else Limits()
        self.programs_per_node = programs_per_node
        self._num_cpus = cpus_per_program * programs_per_node
        self._options = {**(options or {}), "num_workers": programs_per_node, "limits": self.limits}
        self.tier: int = self._options.get("tier", 0)
        self._changed = threading.Condition()
        """Guards what follows."""
        self._members: dict[str, _Member] = {}
        """The actors by node."""
        self._failed: dict[str, float] = {}
        """When (monotonic seconds) a node's actor last failed to start."""
        self._last_error = "no node has a free CPU for it"
        self._is_closed = False
        self._look_now = threading.Event()
        self._look()
        # A thread of its own: nodes come and go while every caller waits for a program.
        self._watcher = threading.Thread(target=self._watch, name="ray-runner", daemon=True)
        self._watcher.start()
        try:
            self._await_start()
        except BaseException:
            self.close()  # actors that had started would keep their CPUs for as long as the cluster runs
            raise
        logger.info("sandbox runner=ray nodes=%d programs_per_node=%d", len(self.nodes()), programs_per_node)

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        """Run one program to its end; see ``Runner.run``."""
        started = time.monotonic()
        lost: list[str] = []
        avoided: set[str] = set()
        for _ in range(_TRIES):
            member = self._take(avoided)
            try:
                result: ProgramResult = ray.get(member.actor.run.remote(program, role))
            except SandboxUnavailableError as error:  # of that node's pool: another one may be able to
                lost.append(f"node {member.node_id[:8]}: {error.args[0] if error.args else error}")
            except RayTaskError:
                raise  # a bug of ours must not pass for an outage
            except RayError as error:
                lost.append(f"node {member.node_id[:8]}: {type(error).__name__}")
                self._lose(member)
            else:
                return replace(result, wall_seconds=time.monotonic() - started)
            finally:
                self._give_back(member)
            # Another node first: what made the program fail may be the node's own, such as its memory.
            avoided.add(member.node_id)
            logger.warning("a program was lost, %d of %d: %s", len(lost), _TRIES, lost[-1])
        raise SandboxUnavailableError(f"a program was lost {_TRIES} times: {'; '.join(lost)}")

    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes that take programs now."""
        with self._changed:
            return tuple(node for node, member in self._members.items() if member.is_ready)

    def close(self) -> None:
        """End every actor, and with it every program. Idempotent; a run in progress raises."""
        with self._changed:
            self._is_closed = True
            gone = list(self._members.values())
            self._members.clear()
            self._changed.notify_all()
        self._look_now.set()
        if closing := [member.actor.close.remote() for member in gone if member.is_ready]:
            ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
        for member in gone:
            ray.kill(member.actor)
        self._watcher.join(_CLOSE_SECONDS)

    def _take(self, avoided: Collection[str]) -> _Member:
        """The least loaded free place, not on an avoided node while there are others; waits for one."""
        deadline = time.monotonic() + START_SECONDS
        with self._changed:
            while True:
                if self._is_closed:
                    raise SandboxUnavailableError("the runner is closed")
                ready = [member for member in self._members.values() if member.is_ready]
                # Where all nodes are avoided, one of them is better than none.
                ready = [member for member in ready if member.node_id not in avoided] or ready
                chosen = min(ready, key=lambda member: member.num_running, default=None)
                if chosen is not None and chosen.num_running < self.programs_per_node:
                    chosen.num_running += 1
                    return chosen
                if ready:  # busy, not gone: a queue may be long, and only an empty cluster is an outage
                    deadline = time.monotonic() + START_SECONDS
                elif time.monotonic() >= deadline:
                    raise SandboxUnavailableError(
                        f"no node of the Ray cluster has run programs for {START_SECONDS:.0f} s: {self._last_error}"
                    )
                self._changed.wait(1.0)

    def _give_back(self, member: _Member) -> None:
        with self._changed:
            member.num_running -= 1
            self._changed.notify()

    def _lose(self, member: _Member) -> None:
        """Take a dead actor out; its node gets another one if it is still there."""
        with self._changed:
            self._drop(member)
        # Dead by all signs; but one that merely lost its connection must not go on with a program that runs elsewhere.
        with contextlib.suppress(RayError, ValueError):
            ray.kill(member.actor)
        self._look_now.set()

    def _drop(self, member: _Member) -> None:
        # Two callers may notice the same death, and by then the node may have another actor.
        if self._members.get(member.node_id) is member:
            del self._members[member.node_id]

    def _await_start(self) -> None:
        """Until every node's actor answers or fails; once one does, the others are not waited for much longer."""
        deadline = time.monotonic() + START_SECONDS
        with self._changed:
            while time.monotonic() < deadline:
                ready = [member.is_ready for member in self._members.values()]
                if all(ready):
                    break
                if any(ready):
                    deadline = min(deadline, time.monotonic() + _OTHERS_SECONDS)
                self._changed.wait(0.2)
            if not any(member.is_ready for member in self._members.values()):
                raise SandboxUnavailableError(
                    f"no node of the Ray cluster can run programs: {self._last_error}; each needs "
                    f"{self._num_cpus:g} free CPUs (programs_per_node * cpus_per_program)"
                )

    def _watch(self) -> None:
        while not self._is_closed:
            try:
                self._look()
            except RayError as error:  # the cluster's head may be out of reach for a moment
                logger.warning("cannot see the cluster's nodes: %s", error)
            is_starting = any(not member.is_ready for member in list(self._members.values()))
            self._look_now.wait(0.2 if is_starting else LOOK_SECONDS)
            self._look_now.clear()

    def _look(self) -> None:
        """Actors for nodes that joined, none for nodes that left, and who of the new ones answers by now."""
        alive = nodes_with_cpus(max(self._num_cpus, 1))
        with self._changed:
            if self._is_closed:
                return
            for node_id in set(self._members) - alive:
                logger.warning("node %s left the cluster", node_id[:8])
                del self._members[node_id]
            early = time.monotonic() - _FAILED_SECONDS
            for node_id in alive - set(self._members):
                if self._failed.get(node_id, early) <= early:
                    self._members[node_id] = self._start(node_id)
            starting = [member for member in self._members.values() if not member.is_ready]
        # Without the lock: a call to Ray may take long, and callers that give places back would wait for it.
        for member in starting:
            self._greet(member)

    def _start(self, node_id: str) -> _Member:
        actor_class = ray.remote(RunnerActor).options(
            num_cpus=self._num_cpus,
            max_concurrency=self.programs_per_node + 1,  # one thread more, so that `close` is heard while all run
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
        )
        actor = actor_class.remote(self._options)
        return _Member(node_id=node_id, actor=actor, greeting=actor.ready.remote())

    def _greet(self, member: _Member) -> None:
        try:
            ray.get(member.greeting, timeout=0)
        except GetTimeoutError:
            return
        except RayError as error:
            logger.warning("node %s cannot run programs: %s", member.node_id[:8], error)
            with self._changed:
                self._last_error = (str(error).strip() or type(error).__name__).splitlines()[-1]
                self._failed[member.node_id] = time.monotonic()
                self._drop(member)
                self._changed.notify_all()
            return
        with self._changed:
            member.is_ready = True
            self._changed.notify_all()
