"""What vLLM's servers leave behind when Ray ends them: shared memory, noted while they run, and sockets."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

_FOLDER = "/dev/shm/"
_PREFIX = _FOLDER + "psm_"
"""Names that Python's ``multiprocessing.shared_memory`` gives."""


_SOCKETS_PREFIX = "code-a1-"


@dataclass
class Leftovers:
    """What outlives the processes of a run on this machine."""

    sockets: Path
    """Folder of vLLM's sockets; removed if ``make_sockets_folder`` made it, left if the user named it."""
    segments: set[Path] = field(default_factory=set)
    """Shared memory; whoever has a segment mapped keeps it."""

    def remove(self) -> None:
        """Remove what is still there; may be called again."""
        for segment in self.segments:
            with contextlib.suppress(OSError):
                segment.unlink()
        if self.sockets.name.startswith(_SOCKETS_PREFIX):
            shutil.rmtree(self.sockets, ignore_errors=True)


def make_sockets_folder() -> str:
    """A folder of the run's own, since vLLM leaves its sockets behind."""
    return tempfile.mkdtemp(prefix=_SOCKETS_PREFIX)


def segments_below(pid: int) -> set[Path]:
    """Segments in ``/dev/shm`` that processes started by ``pid``, directly or not, have mapped on this machine."""
    found: set[Path] = set()
    for child in _descendants(pid):
        # A process that has just ended has no maps, nor has one of another user.
        with contextlib.suppress(OSError), open(f"/proc/{child}/maps", encoding="utf-8", errors="replace") as handle:
            names = {line[line.index(_PREFIX) :].strip() for line in handle if _PREFIX in line}
            found |= {Path(name) for name in names if not name.endswith("(deleted)")}
    return found


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
