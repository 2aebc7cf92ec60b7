"""Limits on the time, memory and files of one program."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .errors import SandboxConfigError

MIB = 1 << 20
MIN_IDLE_SECONDS = 0.25
"""Smallest idle limit of a call, after any number of time-outs. A shorter wait is no sign of a hang."""
_MAX = 1 << 50
"""Highest value of any limit. A higher value would not fit into the kernel's numbers."""
_REFERENCE_BYTES = 64 * MIB
"""Longest source of a reference. A dataset may write its listed outputs into it as a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one program. CPU time decides the verdict; idle time only ends programs that wait without working.

    A call starts with the CPU limit ``max(cpu_seconds_per_case, reference_factor * t)``, where ``t`` is the
    reference's CPU time for the same call. Time-outs shorten the limits of the calls that follow:

    - The first time-out is free (the first two, if the program has answered no call yet). Each further time-out divides
      the limit by four.
    - The limit never falls below ``max(min_cpu_seconds_per_case, 5 * t, 5 * s)``, where ``s`` is the CPU time of the
      slowest call that the program has answered.
    - At the end, a call that timed out under a shortened limit is made again with its full limit. These last tries stop
      at the first one that times out.
    - A program that has answered nothing after several time-outs gets no further calls.

    A program that hangs in every call therefore costs about two seconds in all, and a program that hangs in some calls
    is caught in each of them. ``total_seconds`` bounds the sum.
    """

    cpu_seconds_per_case: float = 0.5
    """CPU seconds of one case, summed over the program's threads. A slow reference raises the limit."""
    min_cpu_seconds_per_case: float = 0.01
    """The CPU limit of a case never falls below this."""
    reference_cpu_seconds_per_case: float = 5.0
    """CPU seconds of one case for the reference. A call that takes longer is no valid case. Each time-out
    of the reference halves this limit, down to a quarter."""
    reference_factor: float = 10.0
    """How many times slower than the reference a program may be."""
    wall_seconds_per_case: float = 1.5
    """Idle seconds of one case: the program neither runs nor waits for a processor, because it sleeps or is
    deadlocked. The value belongs to a CPU limit of ``cpu_seconds_per_case`` and scales with the CPU limit."""
    load_cpu_seconds: float = 5.0
    """CPU seconds for executing the prelude and the program's top level, including imports."""
    load_idle_seconds: float = 10.0
    """Idle seconds for loading. Imports wait for the disk."""
    total_seconds: float = 30.0
    """CPU and idle seconds of one program over all its processes and loads. Waiting for a processor on a
    loaded machine does not count. Once they are spent, the remaining calls time out without being made. If twice
    the reference's time for the same calls is longer, that is the limit instead."""
    memory_bytes: int = 1024 * MIB
    """Address space of the program, beyond that of the interpreter. Bounds the number of threads too."""
    stack_bytes: int = 64 * MIB
    """Stack size of the main thread."""
    value_bytes: int = 1 * MIB
    """Size of one returned value, once it is encoded."""
    total_output_bytes: int = 16 * MIB
    """Size of all answers of one process, once they are encoded. A fresh process answers the remaining calls."""
    open_files: int = 64
    threads: int = 256
    """Threads of one process, including the main thread. Enforced if programs have a uid of their own (the
    judge runs as root) or a user namespace of their own (from tier 1 on). Otherwise only memory bounds them."""
    scratch_bytes: int = 64 * MIB
    """Size of the program's private folder, which exists from tier 1 on. The folder lies in memory, and does not
    count towards ``memory_bytes``."""
    scratch_files: int = 1024
    """Files, folders and links in that folder."""
    source_bytes: int = 1 * MIB
    """Longest program text, in UTF-8."""
    assert_chars: int = 65_536
    """Longest assert. A longer text is rejected without being parsed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = int if isinstance(field.default, int) else (int, float)
            # A bool is an integer in Python, but as a limit it is a mistake.
            if isinstance(value, bool) or not isinstance(value, wanted) or not 0 < value < math.inf:
                kind = "integer" if wanted is int else "number"
                raise SandboxConfigError(f"limits.{field.name} must be a positive finite {kind}, got {value!r}")
            if value > _MAX:
                raise SandboxConfigError(f"limits.{field.name} must be at most 2**50, got {value!r}")
        for small, large in (
            ("min_cpu_seconds_per_case", "cpu_seconds_per_case"),
            ("value_bytes", "total_output_bytes"),
        ):
            if getattr(self, small) > getattr(self, large):
                raise SandboxConfigError(
                    f"limits.{small} must not exceed limits.{large}, "
                    f"got {getattr(self, small)!r} > {getattr(self, large)!r}"
                )
        if self.open_files < 16:
            raise SandboxConfigError(
                f"limits.open_files must be at least 16 (imports and asyncio need some), got {self.open_files}"
            )

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], *, where: str) -> "Limits":
        """Read limits from a section of a configuration.

        Raises:
            SandboxConfigError: a key is unknown, or a value is outside its range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(str(key) for key in set(raw) - known):
            raise SandboxConfigError(f"unknown keys under {where}: {unknown}; known: {sorted(known)}")
        try:
            return cls(**raw)
        except SandboxConfigError as error:
            raise SandboxConfigError(f"{where}: {error}") from error

    def for_reference(self) -> "Limits":
        """Return the limits under which the reference runs."""
        seconds = self.reference_cpu_seconds_per_case
        # At least a quarter: the hanging calls of one suite must not make the valid calls of another suite time out.
        floor = min(seconds, max(seconds / 4, self.min_cpu_seconds_per_case))
        longest = max(self.source_bytes, _REFERENCE_BYTES)
        return replace(self, cpu_seconds_per_case=seconds, min_cpu_seconds_per_case=floor, source_bytes=longest)

    def wall_seconds(self, cpu_limit_seconds: float) -> float:
        """Return the idle limit that goes with a CPU limit.

        Both limits shrink in proportion, but the idle limit stays long enough for a short wait that is no hang.
        """
        least = min(MIN_IDLE_SECONDS, self.wall_seconds_per_case)
        return max(least, self.wall_seconds_per_case * cpu_limit_seconds / self.cpu_seconds_per_case)
