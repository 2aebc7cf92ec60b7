"""``python -m examples.judge_benchmark.corpora FILE...``: files of cheating and honest programs, run after run.

An entry has ``id``, ``gt`` (the reference), ``code``, ``tests`` and ``honest``: the cases (and perhaps the valid
asserts) that a judge which cannot be fooled credits. Standard library only, so that any user's interpreter can run
it. Exit status 1 where a program was credited beyond that, or two runs differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from sandbox import Judge, JudgeRequest, LocalRunner

Counts = tuple[int | None, int | None]
"""Cases that are credited, and asserts that are valid; None where a file does not say it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each run's credits and what differs; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.judge_benchmark.corpora", description=__doc__)
    parser.add_argument("files", nargs="+", help="JSON lists of entries")
    parser.add_argument("--tier", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0, help="processes that only compute, beside it")
    parser.add_argument("--fine", action="append", default=[], metavar="FILE/ID", help="compared with no count")
    options = parser.parse_args(arguments)
    entries: dict[str, Mapping[str, Any]] = {}
    for path in options.files:
        with open(path, encoding="utf-8") as file:
            entries |= {f"{os.path.basename(path)}/{entry['id']}": _plain(entry) for entry in json.load(file)}
    for name in options.fine:
        entries[name] = {**entries[name], "honest": (None, None)}
    found: list[dict[str, Counts]] = []
    any_over = False
    with _busy(options.busy), LocalRunner(num_workers=2, tier=options.tier) as runner:
        for number in range(options.runs):
            with ThreadPoolExecutor(2) as pool:
                judged = pool.map(lambda entry: _counts(runner, entry), entries.values())
                found.append(dict(zip(entries, judged, strict=True)))
            over = {name: one for name, one in found[-1].items() if _exceeds(one, entries[name]["honest"])}
            lost = {name: one for name, one in found[-1].items() if _exceeds(entries[name]["honest"], one)}
            counts = f"over-credited {over or 'none'}, below honest {lost or 'none'}"
            _say(f"run {number + 1}: {len(entries)} programs, {counts}")
            any_over |= bool(over)
    differing = {name for name in entries if len({run[name] for run in found}) > 1}
    _say(f"uid {os.geteuid()}, tier {options.tier}, {options.busy} busy loops: differing {sorted(differing) or 'none'}")
    return int(bool(differing) or any_over)


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    """With ``honest`` as counts; some files say one number, others name them, or leave one out."""
    honest = entry["honest"]
    named = honest if isinstance(honest, dict) else {"pass": honest, "valid": entry.get("valid")}
    return entry | {"honest": (named.get("pass"), named.get("valid"))}


def _exceeds(one: Counts, other: Counts) -> bool:
    return any(n is not None and m is not None and n > m for n, m in zip(one, other, strict=True))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _counts(runner: LocalRunner, entry: Mapping[str, Any]) -> Counts:
    request = JudgeRequest(
        question_id=entry["id"], reference=entry["gt"], candidate=entry["code"], suites=(tuple(entry["tests"]),)
    )
    suite = Judge(runner).judge(request).suites[0]
    return suite.num_valid - suite.num_failed, suite.num_valid


@contextmanager
def _busy(number: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
