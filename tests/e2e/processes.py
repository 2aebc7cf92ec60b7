"""The processes of a run, as /proc shows them. One look takes about a millisecond: candidates live for few more."""

from __future__ import annotations

import os
import time
from pathlib import Path


def children_of() -> dict[int, list[int]]:
    """Child processes by parent, of everything that runs."""
    tree: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):  # it ended while we looked
                continue
            tree.setdefault(parent, []).append(int(entry.name))
    return tree


def descendants(pid: int) -> set[int]:
    """The process, its children, theirs, and so on."""
    tree, found, left = children_of(), {pid}, [pid]
    while left:
        new = [child for child in tree.get(left.pop(), []) if child not in found]
        found.update(new)
        left += new
    return found


def command_of(pid: int) -> str:
    """Its command line; empty if it is gone."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def age_of(pid: int) -> float:
    """Seconds since it was started; 0 if it is gone."""
    try:
        ticks = int((Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[19])
    except (OSError, IndexError):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def matching(words: str, ancestor: int) -> list[int]:
    """Processes that ``ancestor`` started, directly or not, with these words in their command line, by number."""
    return [pid for pid in sorted(descendants(ancestor)) if words in command_of(pid)]


def is_alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
