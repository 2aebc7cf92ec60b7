"""Limits on the time, memory and files of one program."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .errors import SandboxConfigError

MIB = 1 << 20
MIN_IDLE_SECONDS = 0.25
"""Smallest idle limit of a call, after any number of time-outs. A program that waits for a shorter time need not be
stuck."""
_MAX = 1 << 50
"""Largest value of any limit. Some larger values would be too large for the kernel."""
_REFERENCE_BYTES = 64 * MIB
"""Longest source of a reference. The reference of a dataset may contain a table of all its outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one program. CPU time decides the verdict. The idle limit only ends programs that wait too long.

    The full CPU limit of a call is ``max(cpu_seconds_per_case, reference_factor * t)``, where ``t`` is the reference's
    CPU time for the same call. The program's first call has the full limit, and as long as it answers none, the second
    and third, too. Other calls have a short limit at first: the first of 0.1 s, 0.2 s and the full limit that is at
    least ``50 * t``.

    - The first time-out changes nothing, and neither does the second if the program has answered no call. Each further
      time-out divides the limits of later calls by four.
    - The limit never falls below ``max(min_cpu_seconds_per_case, 5 * t, 5 * s)``, where ``s`` is the CPU time of the
      slowest call that the program has answered.
    - At the end, the calls that less than their full limit has stopped are made again with the full limit. If one is
      answered, the program is slow, and it gets no short limits any more. If one times out and two or more are left,
      they time out, too.
    - A program that has answered nothing after several time-outs gets no further calls.
    - A program whose load takes more than 0.2 s, or whose calls import modules, gets no short limits.

    So a program that hangs in every call takes less than two seconds in all, and a program that hangs in some calls
    times out in each of these calls. ``total_seconds`` limits the sum.
    """

    cpu_seconds_per_case: float = 0.5
    """CPU seconds of one case, summed over the program's threads. If the reference is slow, the limit is higher."""
    min_cpu_seconds_per_case: float = 0.01
    """Smallest CPU limit of a case, after any number of time-outs."""
    reference_cpu_seconds_per_case: float = 5.0
    """CPU seconds of one case for the reference. A call that takes longer is not a valid case. Each time-out of the
    reference halves this limit, but never to less than a quarter of its first value."""
    reference_factor: float = 10.0
    """Factor by which a program may be slower than the reference."""
    wall_seconds_per_case: float = 1.5
    """Idle seconds of one case. A program is idle while it sleeps or is deadlocked, but not while it waits for a
    processor. If the CPU limit of a call differs from ``cpu_seconds_per_case``, the idle limit changes in
    proportion."""
    load_cpu_seconds: float = 5.0
    """CPU seconds for executing the prelude and the program's top level, including imports."""
    load_idle_seconds: float = 10.0
    """Idle seconds for executing the prelude and the program's top level. A program is idle while an import waits for
    the disk."""
    total_seconds: float = 30.0
    """CPU and idle seconds of one program, summed over all its processes and loads. Waiting for a processor on a busy
    machine does not count. After this time, the remaining calls time out without being made. If the reference is slow,
    the limit is twice the reference's time for the same calls."""
    memory_bytes: int = 1024 * MIB
    """Address space of the program, in addition to the interpreter's address space. This also limits the number of
    threads."""
    stack_bytes: int = 64 * MIB
    """Stack size of the main thread."""
    value_bytes: int = 1 * MIB
    """Encoded size of one returned value."""
    total_output_bytes: int = 16 * MIB
    """Encoded size of all answers of one process. After an excess, a new process answers the remaining calls."""
    open_files: int = 64
    """File descriptors that one process may have open."""
    threads: int = 256
    """Threads of one process, including the main thread. This limit only works if each program has its own uid (the
    judge runs as root) or its own user namespace (tier 1). Otherwise only ``memory_bytes`` limits the number
    of threads."""
    scratch_bytes: int = 64 * MIB
    """Size of the program's private folder, which exists at tier 1. The folder is in memory, but does not count towards
    ``memory_bytes``."""
    scratch_files: int = 1024
    """Number of files, folders and links in the private folder."""
    source_bytes: int = 1 * MIB
    """Length of the program's source in UTF-8."""
    assert_chars: int = 65_536
    """Length of an assert. A longer text is rejected without being parsed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = int if isinstance(field.default, int) else (int, float)
            # In Python a bool is an int, but a limit that is a bool is a mistake.
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
        # Hanging calls of one suite shorten the limit. A quarter must remain, so that the valid calls of another suite
        # do not time out.
        floor = min(seconds, max(seconds / 4, self.min_cpu_seconds_per_case))
        return replace(
            self,
            cpu_seconds_per_case=seconds,
            min_cpu_seconds_per_case=floor,
            source_bytes=max(self.source_bytes, _REFERENCE_BYTES),
        )

    def wall_seconds(self, cpu_limit_seconds: float) -> float:
        """Return the idle limit for a given CPU limit.

        Both limits shrink in proportion, but the idle limit has a minimum, because a program that waits for a short
        time need not be stuck.
        """
        least = min(MIN_IDLE_SECONDS, self.wall_seconds_per_case)
        return max(least, self.wall_seconds_per_case * cpu_limit_seconds / self.cpu_seconds_per_case)
