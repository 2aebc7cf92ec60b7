"""The first visible card, as nvidia-smi shows it; nothing here makes a CUDA context of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True, kw_only=True)
class Card:
    """Sizes in bytes."""

    name: str
    driver: str
    total: int
    used: int


def read_card() -> Card | None:
    """The card now; None where nvidia-smi is not there or shows none."""
    if shutil.which("nvidia-smi") is None:
        return None
    number = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    fields = "name,driver_version,memory.total,memory.used"
    command = ["nvidia-smi", "-i", number, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
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
    """Look at the card's memory about twice a second while the block runs."""
    peak, ended = Peak(), threading.Event()

    def look() -> None:
        while card is not None and not ended.wait(0.5):
            now = read_card()
            peak.used = max(peak.used, now.used if now else 0)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()
