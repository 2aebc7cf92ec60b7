"""Buggy programs of several stages of training, as held-out questions on which every Test LLM can be measured.

    python -m examples.leaderboard.recorded outputs/RUN --output recorded.jsonl

RUN trained on complete hidden tests (arm=golden_full) and validated at its start, in its middle and at its end. What
its Code LLM wrote at these steps for the held-out questions, and what fails a hidden test, becomes ``buggy_programs``:
at most one narrow program, which fails one hidden test alone, for each question and stage, and one wide program for
each question. Give the file as ``data.val_files`` to the runs that are compared; ``recorded.jsonl.kinds.json`` says
what each program is.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.reader import RunRecords

NARROW, WIDE = "narrow", "wide"


def buggy_programs(run: RunRecords) -> dict[str, dict[str, dict[str, object]]]:
    """By question id and source: ``stage`` (the step), ``kind`` and ``failed`` (hidden tests that it fails)."""
    found: dict[str, dict[str, dict[str, object]]] = defaultdict(dict)
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
                found[record.question][source] = {"stage": step, "kind": kind, "failed": hidden.num_failed}
    return found


def kinds_file(questions: Path) -> Path:
    """Where the kinds of the programs in a file of questions stand."""
    return questions.with_name(questions.name + ".kinds.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        run = RunRecords.open(options.run)
        files, found = run.question_files("val_files"), buggy_programs(run)
    except CodeA1Error as error:
        parser.error(str(error))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [row | {"buggy_programs": list(found.get(row["id"], ()))} for row in map(json.loads, lines)]
    write_whole(options.output, "".join(f"{json.dumps(row)}\n" for row in rows))
    write_whole(kinds_file(options.output), json.dumps(found, indent=1))
    kinds = [str(one["kind"]) for programs in found.values() for one in programs.values()]
    counts = f"{kinds.count(NARROW)} narrow and {kinds.count(WIDE)} wide programs"
    print(f"{options.output}: {counts} of {len(found)} questions")


if __name__ == "__main__":
    main()
