"""Buggy programs of several stages of training, as held-out questions on which every Test LLM can be measured.

A run on complete hidden tests (``arm=golden_full``) is validated at its start, in its middle and at its end. What its
Code LLM wrote at these steps for the held-out questions, and what fails a hidden test, becomes ``buggy_programs``: at
most one narrow program, which fails one hidden test alone, for each question and stage, and one wide program for each
question. The file is given as ``data.val_files`` to the runs that are compared; the file of kinds beside it says what
each program is.
"""

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.runs.rollout_record import RolloutRecord

NARROW, WIDE = "narrow", "wide"
Kinds = dict[str, dict[str, str]]
"""``NARROW`` or ``WIDE`` by question id and program."""


def kinds_of(run: RunRecords) -> Kinds:
    """Choose the programs of a run that are recorded."""
    found: Kinds = defaultdict(dict)
    taken: set[tuple[str, str, int]] = set()
    for step in run.validation_steps:
        for record in run.validation(step):
            hidden, source = record.hidden_tests, record.source
            if record.kind != "sampled" or source is None or hidden is None or not record.is_loaded:
                continue
            kind = NARROW if hidden.num_failed == 1 else WIDE
            place = (record.question, kind, step if kind == NARROW else 0)
            if hidden.num_failed and place not in taken and source not in found[record.question]:
                taken.add(place)
                found[record.question][source] = kind
    return found


def record_programs(run: RunRecords, output: Path) -> str:
    """Write the run's held-out questions with their buggy programs, and the kinds beside them; returns the counts."""
    kinds = kinds_of(run)
    rows = []
    for file in run.question_files("val_files"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows.append(row | {"buggy_programs": list(kinds.get(row["id"], ()))})
    write_whole(output, "".join(f"{json.dumps(row)}\n" for row in rows))
    write_whole(kinds_file(output), json.dumps(kinds, indent=1))
    counts = [kind for programs in kinds.values() for kind in programs.values()]
    return f"{output}: {counts.count(NARROW)} narrow and {counts.count(WIDE)} wide programs of {len(kinds)} questions"


def kinds_file(questions: Path) -> Path:
    """Where the kinds of the programs in a file of questions stand."""
    return questions.with_name(questions.name + ".kinds.json")


def read_kinds(run: RunRecords) -> Kinds:
    """The kinds of a run's recorded programs; empty where its held-out questions were not made here."""
    found: Kinds = {}
    for file in run.question_files("val_files"):
        if kinds_file(file).is_file():
            found |= json.loads(kinds_file(file).read_text(encoding="utf-8"))
    return found


def detection_rates(records: Sequence[RolloutRecord], kinds: Kinds) -> dict[str, float]:
    """Shares of narrow and of wide programs, in [0, 1], that a valid case of any of their suites breaks."""
    broken: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        if record.kind == "buggy_program" and not record.outage and record.question in kinds:
            kind = kinds[record.question][record.source or ""]
            broken[f"{kind}_detected"].append(record.is_broken())
    return {name: statistics.fmean(values) for name, values in broken.items()}
