"""The first visible card, as nvidia-smi shows it; nothing here makes a CUDA context of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
_POLL_MILLISECONDS = 200


@dataclass(frozen=True, kw_only=True)
class Card:
    """Sizes in bytes."""

    name: str
    driver: str
    total: int
    used: int


def _query(fields: str) -> list[str]:
    number = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return ["nvidia-smi", "-i", number, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]


def read_card() -> Card | None:
    """The card now; None where nvidia-smi is not there or shows none."""
    if shutil.which("nvidia-smi") is None:
        return None
    command = _query("name,driver_version,memory.total,memory.used")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        return None
    name, driver, total, used = (part.strip() for part in done.stdout.splitlines()[0].split(","))
    return Card(name=name, driver=driver, total=int(total) * MIB, used=int(used) * MIB)


class Peak:
    """Most memory that was in use at a time; 0 where there is no card."""

    used = 0


@contextmanager
def watched_peak(card: Card | None) -> Iterator[Peak]:
    """Look at the card's memory five times a second while the block runs."""
    peak = Peak()
    if card is None:
        yield peak
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "used"
        with log.open("w") as handle:
            watcher = subprocess.Popen([*_query("memory.used"), f"-lms={_POLL_MILLISECONDS}"], stdout=handle)
            try:
                yield peak
            finally:
                watcher.terminate()
                watcher.wait(10)
        lines = [line.strip() for line in log.read_text().splitlines()]
        peak.used = max((int(line) * MIB for line in lines if line.isdecimal()), default=0)
