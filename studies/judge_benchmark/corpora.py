"""Judges files of cheating and honest programs several times, and searches for programs that get too much credit.

An entry has ``id``, ``gt`` (the reference), ``code`` (the program), ``tests`` and ``honest``. ``honest`` is the number
of passed cases that a perfect judge counts; some files also have the number of valid asserts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sandbox import Judge, JudgeRequest, Kind, LocalRunner
from sandbox.text import DEFAULT_CHECKER

Entry = Mapping[str, Any]
Counts = tuple[int | None, int | None]
"""Number of passed cases and number of valid asserts; None if a file does not have the number."""


def run_corpora(
    files: Sequence[Path], *, tier: int, num_runs: int, num_busy: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Judge every program of the files ``num_runs`` times, while ``num_busy`` processes keep the processor busy.

    Returns:
        The names of programs that got too much credit (``over_credited``), and the names of programs whose results
        differ between runs (``differing``). ``ok`` is True if both lists are empty.
    """
    entries: dict[str, Entry] = {}
    for path in files:
        for entry in json.loads(path.read_text(encoding="utf-8")):
            entries[f"{path.name}/{entry['id']}"] = entry
    runs: list[dict[str, Counts]] = []
    over_credited: set[str] = set()
    with _busy(num_busy), LocalRunner(num_workers=2, tier=tier) as runner, ThreadPoolExecutor(2) as pool:
        for _ in range(num_runs):
            judged = pool.map(partial(_counts, runner), entries.values())
            runs.append(dict(zip(entries, judged, strict=True)))
            over = [name for name, counts in runs[-1].items() if _exceeds(counts, _honest(entries[name]))]
            below = [name for name, counts in runs[-1].items() if _exceeds(_honest(entries[name]), counts)]
            over_credited.update(over)
            report(f"run {len(runs)}: {len(entries)} programs, over-credited {over or 'none'}, below {below or 'none'}")
    differing = [name for name in entries if len({run[name] for run in runs}) > 1]
    return {
        "ok": not over_credited and not differing,
        "programs": len(entries),
        "over_credited": sorted(over_credited),
        "differing": differing,
    }


def _honest(entry: Entry) -> Counts:
    """Read the counts of a perfect judge. Some files have only one number, others have names and numbers."""
    honest = entry["honest"]
    if isinstance(honest, dict):
        return honest.get("pass"), honest.get("valid")
    return honest, entry.get("valid")


def _exceeds(counts: Counts, others: Counts) -> bool:
    for count, other in zip(counts, others, strict=True):
        if count is not None and other is not None and count > other:
            return True
    return False


def _counts(runner: LocalRunner, entry: Entry) -> Counts:
    request = JudgeRequest(
        question_id=entry["id"],
        reference=entry["gt"],
        candidate=entry["code"],
        suites=tuple(map(tuple, entry["suites"] if "suites" in entry else [entry["tests"]])),
        kind=entry.get("kind", Kind.FUNCTIONS),
        checker=entry.get("checker", DEFAULT_CHECKER),
    )
    suites = Judge(runner).judge(request).suites
    num_valid = sum(suite.num_valid for suite in suites)
    return num_valid - sum(suite.num_failed for suite in suites), num_valid


@contextmanager
def _busy(number: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
