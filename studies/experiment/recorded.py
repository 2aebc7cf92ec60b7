"""Records buggy programs of several stages of training, so that all Test LLMs can be measured on the same programs.

A run on complete hidden tests (``arm=golden_full``) is validated at its start, in its middle and at its end. Programs
of these validations that fail a hidden test become the column ``buggy_programs`` of the held-out questions. A narrow
program fails exactly one hidden test, a wide program fails several. For each question, at most one narrow program of
each validation and one wide program are recorded. The compared runs get the file with these questions as
``data.val_files``. A second file has the kind of each program.
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
"""Question id -> program -> ``NARROW`` or ``WIDE``."""


def kinds_of(run: RunRecords) -> Kinds:
    """Choose which programs of a run are recorded."""
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
    """Write the run's held-out questions with buggy programs, and the file of kinds. Returns the counts as text."""
    kinds = kinds_of(run)
    rows = []
    for file in run.question_files("val_files"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows.append(row | {"buggy_programs": list(kinds.get(row["id"], ()))})
    write_whole(output, "".join(f"{json.dumps(row)}\n" for row in rows))
    write_whole(kinds_file(output), json.dumps(kinds, indent=1))
    all_kinds = []
    for programs in kinds.values():
        all_kinds += programs.values()
    num_narrow, num_wide = all_kinds.count(NARROW), all_kinds.count(WIDE)
    return f"{output}: {num_narrow} narrow and {num_wide} wide programs of {len(kinds)} questions"


def kinds_file(questions: Path) -> Path:
    """Return the path of the kinds file that belongs to a file of questions."""
    return questions.with_name(questions.name + ".kinds.json")


def read_kinds(run: RunRecords) -> Kinds:
    """Read the kinds of a run's recorded programs. The result is empty if ``record_programs`` did not write the
    questions."""
    found: Kinds = {}
    for file in run.question_files("val_files"):
        if kinds_file(file).is_file():
            found |= json.loads(kinds_file(file).read_text(encoding="utf-8"))
    return found


def detection_rates(records: Sequence[RolloutRecord], kinds: Kinds) -> dict[str, float]:
    """Compute the share of narrow programs, and of wide programs, that a valid case of their suites breaks."""
    broken: dict[str, list[bool]] = defaultdict(list)
    for record in records:
        if record.kind == "buggy_program" and not record.outage and record.question in kinds:
            kind = kinds[record.question][record.source or ""]
            broken[f"{kind}_detected"].append(record.is_broken())
    return {name: statistics.fmean(values) for name, values in broken.items()}
