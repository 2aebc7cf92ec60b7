"""Shared memory that vLLM's servers leave behind when Ray ends them: noted while they run, removed afterwards."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from pathlib import Path

_FOLDER = "/dev/shm/"
_PREFIX = _FOLDER + "psm_"
"""Names that Python's ``multiprocessing.shared_memory`` gives."""


def segments_below(pid: int) -> set[Path]:
    """Segments in ``/dev/shm`` that processes started by ``pid``, directly or not, have mapped on this machine."""
    found: set[Path] = set()
    for child in _descendants(pid):
        # A process that has just ended has no maps, nor has one of another user.
        with contextlib.suppress(OSError), open(f"/proc/{child}/maps", encoding="utf-8", errors="replace") as handle:
            names = {line[line.index(_PREFIX) :].strip() for line in handle if _PREFIX in line}
            found |= {Path(name) for name in names if not name.endswith("(deleted)")}
    return found


def remove(segments: set[Path]) -> None:
    """Unlink what is still there of ``segments``; whoever has one mapped keeps it."""
    for segment in segments:
        with contextlib.suppress(OSError):
            segment.unlink()


def _descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as handle:
                # Behind the command's closing bracket: state, parent, ...
                parent = int(handle.read().rpartition(b")")[2].split()[1])
                children[parent].append(int(entry))
    found: set[int] = set()
    left = [pid]
    while left:
        below = [child for child in children[left.pop()] if child not in found]
        found.update(below)
        left += below
    return found
