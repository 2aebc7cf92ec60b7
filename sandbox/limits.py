"""Limits of one program: seconds, bytes and descriptors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .errors import SandboxConfigError

MIB = 1 << 20
MIN_IDLE_SECONDS = 0.25
"""A program that waits for less than this has waited for something, after any number of time-outs."""
_MAX = 1 << 50
_REFERENCE_BYTES = 64 * MIB
"""Highest value of any limit. A higher one would not fit into the kernel's numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one program. CPU time judges; wall time only ends programs that wait without working.

    The CPU limit of a case is ``max(cpu_seconds_per_case, reference_factor * t)`` with ``t`` the reference's own CPU
    seconds for the same call. Every time-out of a program after its first (its second, while it has answered nothing)
    takes it to a quarter, down to ``max(min_cpu_seconds_per_case, 5 * t, 5 * s)`` with ``s`` the slowest call that the
    program has answered. At the end calls that timed out so are asked once more under their own limit, until one does
    so again; a program that has answered nothing after some time-outs is asked no more. So one that hangs in every case
    costs about two seconds in all, and one that hangs in some is caught in each. ``total_seconds`` bounds the sum.
    """

    cpu_seconds_per_case: float = 0.5
    """CPU seconds of all threads of the program in one case, before the reference's own time is looked at."""
    min_cpu_seconds_per_case: float = 0.01
    """The CPU limit of a case never falls below this."""
    reference_cpu_seconds_per_case: float = 5.0
    """CPU seconds the reference itself gets; a call that takes it longer is no valid case. Each time-out
    halves this, down to a quarter."""
    reference_factor: float = 10.0
    """How many times slower than the reference a program may be."""
    wall_seconds_per_case: float = 1.5
    """Seconds a case may spend neither running nor waiting for a processor (asleep, deadlocked), while
    the CPU limit is ``cpu_seconds_per_case``; scales with the CPU limit."""
    load_cpu_seconds: float = 5.0
    """CPU seconds for executing the prelude and the program's top level, imports included."""
    load_idle_seconds: float = 10.0
    """Idle seconds for the same: imports wait for the disk, of a reference as of any other program."""
    total_seconds: float = 30.0
    """CPU and idle seconds of one program over all its processes and loads; waiting for a processor on a
    loaded machine does not count. Once they are spent, the remaining calls are timed out unasked. A program
    gets twice the reference's time for the same calls where that is more."""
    memory_bytes: int = 1024 * MIB
    """Address space a program may take beyond what the interpreter already has. Bounds threads too."""
    stack_bytes: int = 64 * MIB
    """Stack of the main thread."""
    value_bytes: int = 1 * MIB
    """Encoded size of one returned value."""
    total_output_bytes: int = 16 * MIB
    """Encoded size of everything one process may answer; a fresh process answers the remaining calls."""
    open_files: int = 64
    threads: int = 256
    """Threads of one process, the first included. Held wherever programs have a uid or a user namespace
    of their own (as root; from tier 1 on); elsewhere only memory bounds them."""
    scratch_bytes: int = 64 * MIB
    """Size of the private folder for files, held in memory beside ``memory_bytes``; from tier 1 on."""
    scratch_files: int = 1024
    """Files, folders and links in that folder."""
    source_bytes: int = 1 * MIB
    """Longest program text, UTF-8."""
    assert_chars: int = 65_536
    """Longest assert; above it the text is rejected unread."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = int if isinstance(field.default, int) else (int, float)
            # To Python a bool is an integer; as a limit it is a mistake.
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
        """Read limits from a config section; unknown keys are refused.

        Raises:
            SandboxConfigError: an unknown key or a value outside its range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(str(key) for key in set(raw) - known):
            raise SandboxConfigError(f"unknown keys under {where}: {unknown}; known: {sorted(known)}")
        try:
            return cls(**raw)
        except SandboxConfigError as error:
            raise SandboxConfigError(f"{where}: {error}") from error

    def for_reference(self) -> "Limits":
        """The limits under which the reference runs."""
        seconds = self.reference_cpu_seconds_per_case
        # Never below a quarter: the hanging calls of one suite must not refuse those of another.
        floor = min(seconds, max(seconds / 4, self.min_cpu_seconds_per_case))
        # A dataset's own text, which may be a table of listed outputs.
        longest = max(self.source_bytes, _REFERENCE_BYTES)
        return replace(self, cpu_seconds_per_case=seconds, min_cpu_seconds_per_case=floor, source_bytes=longest)

    def wall_seconds(self, cpu_limit_seconds: float) -> float:
        """Idle seconds that go with a CPU limit: the same proportion as between the two defaults, and a moment."""
        least = min(MIN_IDLE_SECONDS, self.wall_seconds_per_case)
        return max(least, self.wall_seconds_per_case * cpu_limit_seconds / self.cpu_seconds_per_case)
