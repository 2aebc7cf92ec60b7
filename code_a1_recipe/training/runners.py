"""Where programs run, by the name of ``sandbox.runner``: what each needs in the settings, and how it is made."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sandbox import LocalRunner, Runner, SandboxConfigError, SandboxFusionRunner, SandboxUnavailableError

from ..algorithm.settings import RecipeSettings, SandboxSettings

_GREETING_TRIES = 2


@dataclass(frozen=True, kw_only=True)
class RunnerKind:
    """One way to run programs."""

    make: Callable[[SandboxSettings], Runner]
    """Called in each judge process. Raises SandboxConfigError or SandboxUnavailableError."""
    cpus_per_judge: Callable[[SandboxSettings], int]
    """CPUs that Ray sets aside for a judge process itself."""
    cpus_of_programs: Callable[[SandboxSettings, int], int] = lambda settings, num_nodes: 0
    """CPUs that it sets aside on all nodes together for the programs of one judge process."""


def _make_local(settings: SandboxSettings) -> Runner:
    return LocalRunner(num_workers=settings.programs_per_worker, limits=settings.limits, **_confinement(settings))


def _make_ray(settings: SandboxSettings) -> Runner:
    from .ray_runner import RayRunner, nodes_with_cpus

    # `programs_per_worker` is what one judge runs at once, on whatever nodes; each node takes its part of them.
    per_node = _programs_per_node(settings, len(nodes_with_cpus(1)))
    return RayRunner(programs_per_node=per_node, limits=settings.limits, options=_confinement(settings))


def _programs_per_node(settings: SandboxSettings, num_nodes: int) -> int:
    return math.ceil(settings.programs_per_worker / max(1, num_nodes))


def _confinement(settings: SandboxSettings) -> dict[str, Any]:
    return {"tier": settings.tier, "allow_missing": settings.allow_missing}


def _make_fusion(settings: SandboxSettings) -> Runner:
    return SandboxFusionRunner(settings.url or "", num_workers=settings.programs_per_worker, limits=settings.limits)


RUNNERS: dict[str, RunnerKind] = {
    "local": RunnerKind(make=_make_local, cpus_per_judge=lambda settings: settings.programs_per_worker),
    "ray": RunnerKind(
        make=_make_ray,
        cpus_per_judge=lambda settings: 1,
        cpus_of_programs=lambda settings, num_nodes: num_nodes * _programs_per_node(settings, num_nodes),
    ),
    "fusion": RunnerKind(make=_make_fusion, cpus_per_judge=lambda settings: 1),
}


def service_answers(config: RecipeSettings) -> Iterator[str]:
    """A rule: a remote service, if one is used, runs a small program now."""
    sandbox = config.sandbox
    if sandbox.runner != "fusion" or not sandbox.url:
        return
    # The runner greets the service when it is made; few tries, since a user waits for the answer.
    try:
        SandboxFusionRunner(sandbox.url, limits=sandbox.limits, tries=_GREETING_TRIES).close()
    except (SandboxConfigError, SandboxUnavailableError) as error:
        hint = "start the service, correct the address, or use sandbox.runner=local"
        yield f"sandbox.url={sandbox.url!r} cannot judge: {error}; {hint}"
