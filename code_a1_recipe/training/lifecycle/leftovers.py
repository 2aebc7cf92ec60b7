"""Removes shared memory and sockets that vLLM's servers leave behind when Ray ends them."""

import contextlib
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_PREFIX = "/dev/shm/psm_"
"""Beginning of the file names that Python's ``multiprocessing.shared_memory`` chooses."""
_SOCKETS_PREFIX = "code-a1-"


@dataclass
class Leftovers:
    """Files that outlive the processes of a run on this machine."""

    sockets: Path
    """Folder of vLLM's sockets. The folder is removed only if ``make_sockets_folder`` made it."""
    segments: set[Path] = field(default_factory=set)
    """Segments of shared memory that the servers use. A process can go on using a segment after its file is removed."""

    def remove(self) -> None:
        """Remove all files that still exist. Idempotent."""
        for segment in self.segments:
            with contextlib.suppress(OSError):
                segment.unlink()
        if self.sockets.name.startswith(_SOCKETS_PREFIX):
            shutil.rmtree(self.sockets, ignore_errors=True)


def make_sockets_folder() -> str:
    """Make a folder for the sockets of this run."""
    return tempfile.mkdtemp(prefix=_SOCKETS_PREFIX)


def segments_below(pid: int) -> set[Path]:
    """List the segments in ``/dev/shm`` that the descendants of process ``pid`` have mapped."""
    segments: set[Path] = set()
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # the child has just ended, or belongs to another user
            paths = [mapped.path for mapped in child.memory_maps()]
            segments.update(Path(path) for path in paths if path.startswith(_PREFIX))
    return {segment for segment in segments if segment.exists()}
