"""What vLLM's servers leave behind when Ray ends them: shared memory, noted while they run, and sockets."""

import contextlib
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_PREFIX = "/dev/shm/psm_"
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
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended, or is another user's
            found |= {Path(mapped.path) for mapped in child.memory_maps() if mapped.path.startswith(_PREFIX)}
    return {segment for segment in found if segment.exists()}
