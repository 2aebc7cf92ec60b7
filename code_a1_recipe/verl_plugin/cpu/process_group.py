"""The one function of verl that a CPU run replaces."""

from __future__ import annotations

import functools
from typing import Any

import verl.utils.distributed as verl_distributed

_BACKEND = "cpu:gloo"


def use_gloo_only() -> None:
    """Let verl's Ray workers open a process group with ``cpu:gloo`` alone.

    ``verl.utils.distributed.initialize_global_process_group_ray`` builds ``cpu:gloo,<device>:<backend>``; with the
    device "cpu" that names one device twice, which torch refuses. An explicit backend of the caller is kept.
    """
    original = verl_distributed.initialize_global_process_group_ray
    if getattr(original, "code_a1_gloo_only", False):
        return

    @functools.wraps(original)
    def initialize(timeout_second: float | None = None, backend: str | None = None) -> Any:
        return original(timeout_second=timeout_second, backend=backend or _BACKEND)

    initialize.code_a1_gloo_only = True
    verl_distributed.initialize_global_process_group_ray = initialize
