"""Where programs run, by the name of ``sandbox.runner``: what each needs in the settings, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox import LocalRunner, Runner, SandboxConfigError, SandboxUnavailableError
from sandbox.fusion import SandboxFusionRunner

from .settings import SandboxSettings, SettingsError

HIGHEST_LOCAL_TIER = 2
"""Tiers of confinement that are made on this side; a service's are its own."""
_GREETING_TRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerKind:
    """One way to run programs."""

    make: Callable[[SandboxSettings], Runner]
    """Called in each judge process. Raises SandboxConfigError or SandboxUnavailableError."""
    cpus_per_judge: Callable[[SandboxSettings], int]
    """CPUs that Ray sets aside for a judge process itself."""
    is_remote_service: bool = False
    """Needs ``sandbox.url``, and confines by its own means."""


def _local_options(settings: SandboxSettings) -> dict[str, Any]:
    """What every ``LocalRunner`` is given beside its size; an option at its default is left out."""
    options: dict[str, Any] = {"limits": settings.limits}
    if settings.tier:
        options["tier"] = settings.tier
    if settings.allow_missing:
        options["allow_missing"] = tuple(settings.allow_missing)
    return options


def _make_local(settings: SandboxSettings) -> Runner:
    return LocalRunner(num_workers=settings.programs_per_worker, **_local_options(settings))


def _make_ray(settings: SandboxSettings) -> Runner:
    from .ray_runner import RayRunner, nodes_with_cpus

    options = _local_options(settings)
    limits = options.pop("limits")
    per_node = math.ceil(settings.programs_per_worker / max(1, len(nodes_with_cpus(1))))
    return RayRunner(programs_per_node=per_node, limits=limits, options=options)


def _make_fusion(settings: SandboxSettings) -> Runner:
    return SandboxFusionRunner(settings.url or "", num_workers=settings.programs_per_worker, limits=settings.limits)


RUNNERS: dict[str, RunnerKind] = {
    "local": RunnerKind(make=_make_local, cpus_per_judge=lambda settings: settings.programs_per_worker),
    "ray": RunnerKind(make=_make_ray, cpus_per_judge=lambda settings: 1),
    "fusion": RunnerKind(make=_make_fusion, cpus_per_judge=lambda settings: 1, is_remote_service=True),
}


def find_runner(name: str) -> RunnerKind:
    """The way to run programs of that name.

    Raises:
        SettingsError: there is none; names those there are.
    """
    if name not in RUNNERS:
        raise SettingsError(f"sandbox.runner: unknown name {name!r}; known: {', '.join(sorted(RUNNERS))}")
    return RUNNERS[name]


def check_runner(settings: SandboxSettings) -> None:
    """Refuse a runner that does not exist, or keys that contradict it. Starts nothing.

    Raises:
        SettingsError: rule, value, key and cure.
    """
    kind = find_runner(settings.runner)
    if not kind.is_remote_service:
        if settings.url is not None:
            raise SettingsError(
                f"sandbox.url belongs to sandbox.runner=fusion, got {settings.url!r} with "
                f"sandbox.runner={settings.runner}; set sandbox.runner=fusion or leave sandbox.url out"
            )
        if not 0 <= settings.tier <= HIGHEST_LOCAL_TIER:
            raise SettingsError(
                f"sandbox.tier must be 0 to {HIGHEST_LOCAL_TIER}, got {settings.tier}; a remote service is "
                "sandbox.runner=fusion"
            )
        return
    if not settings.url:
        raise SettingsError(
            f"sandbox.runner={settings.runner} needs the address of the service: sandbox.url=http://host:port"
        )
    for key, value, default in (("tier", settings.tier, 0), ("allow_missing", settings.allow_missing, ())):
        if value != default:
            raise SettingsError(
                f"sandbox.{key} is about confinement on our own nodes, got {value!r} with "
                f"sandbox.runner={settings.runner}, where the service confines; leave it out"
            )


def check_service(settings: SandboxSettings) -> None:
    """Ask a remote service to run one small program; nothing to do for the other runners.

    Raises:
        SettingsError: nothing usable answers there.
    """
    if not find_runner(settings.runner).is_remote_service:
        return
    try:
        SandboxFusionRunner(settings.url or "", limits=settings.limits, tries=_GREETING_TRIES).close()
    except (SandboxConfigError, SandboxUnavailableError) as error:
        raise SettingsError(
            f"sandbox.url={settings.url!r} cannot judge: {error}; start the service, correct the address, or use "
            "sandbox.runner=local"
        ) from error
