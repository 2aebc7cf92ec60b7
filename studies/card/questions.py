"""Chooses the questions of the experiment: those that the base model solves sometimes, and those that are held out.

A question that the model always or never solves gives all its programs one reward, so nothing can be learned from it.
``draw`` takes a sample before any model was asked; ``code-a1 eval code`` asks the model (see the README); ``choose``
keeps the questions for training and gives the held-out ones buggy programs, which the model wrote itself. Its result is
committed, so that ``write`` makes the same files on another machine without asking the model again.
"""

import gzip
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from code_a1_recipe.errors import InputError
from code_a1_recipe.files import json_lines, write_whole

NUM_HELD_OUT = 150
NUM_ASKED = 600
"""Questions of the filter: all of MBPP that is not held out, filled up from LeetCodeDataset."""
NUM_SAMPLES = 8
SEED = 20261129
MAX_BUGGY = 2
"""Buggy programs for each held-out question, the first different ones."""
ASKED, HELD_OUT = "asked.jsonl", "held_out.jsonl"
TRAIN, VAL = "train.jsonl", "val.jsonl"
CHOICE = "questions.json"
NOT_LOADED = "not loaded"
DIFFICULTIES = ("Easy", "Medium")

Row = dict[str, Any]


def leetcode_sample(rows: list[Row]) -> list[Row]:
    """Return the easy and medium problems in random order, as many as may be needed after bad rows were left out."""
    chosen = [row for row in rows if any(f"'difficulty': '{name}'" in str(row["meta"]) for name in DIFFICULTIES)]
    random.Random(SEED).shuffle(chosen)
    return chosen[: NUM_ASKED // 2]


def draw(mbpp: Path, leetcode: Path, folder: Path) -> str:
    """Write the held-out questions and those that the model is asked.

    Args:
        mbpp: MBPP as ``code-a1 data prepare --against`` HumanEval+ and MBPP+ wrote it, so that no question of those
            two sets is left.
        leetcode: the sample of LeetCodeDataset, prepared the same way.
        folder: where both files go.
    """
    questions = pd.read_parquet(mbpp).to_dict("records")
    random.Random(SEED).shuffle(questions)
    held_out, asked = questions[:NUM_HELD_OUT], questions[NUM_HELD_OUT:]
    others = pd.read_parquet(leetcode).to_dict("records")[: NUM_ASKED - len(asked)]
    if len(held_out) < NUM_HELD_OUT or len(asked) + len(others) < NUM_ASKED:
        raise InputError(f"{mbpp} and {leetcode} have too few questions for {NUM_HELD_OUT} + {NUM_ASKED}")
    write_whole(folder / HELD_OUT, json_lines(map(_plain, held_out)))
    write_whole(folder / ASKED, json_lines(map(_plain, asked + others)))
    return f"{folder}: {len(held_out)} held out, {len(asked)} of MBPP and {len(others)} of LeetCodeDataset to be asked"


def _plain(row: Row) -> Row:
    return {name: list(value) if hasattr(value, "tolist") else value for name, value in row.items()}


def read_jsonl(path: Path) -> list[Row]:
    """Read the rows of a JSON Lines file, which may be packed with gzip."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in content.splitlines()]


def choose(folder: Path, asked: Sequence[Path], tried: Path, kept: Path) -> str:
    """Write the questions for training and validation, and which they are.

    Args:
        folder: folder of ``draw``; the two files of questions are written there too, see ``write``.
        asked: output folders of ``code-a1 eval code`` for the asked questions, with ``NUM_SAMPLES`` programs each.
            Questions without all verdicts are left out.
        tried: the same for the held-out questions, whose incorrect programs become the buggy programs.
        kept: folder for ``CHOICE``, the ids with their counts and buggy programs, which is committed.

    Returns:
        The table of the filter: how many questions of each set were solved how often.
    """
    solved: dict[str, list[bool]] = {}
    for output in asked:
        solved |= _verdicts(output)[0]
    rates: dict[str, Counter[int]] = defaultdict(Counter)
    counts = {}
    asked_rows, held_out = read_jsonl(folder / ASKED), read_jsonl(folder / HELD_OUT)
    for row in asked_rows:
        verdicts = solved.get(row["id"], [])
        if len(verdicts) < NUM_SAMPLES:
            continue
        counts[row["id"]] = sum(verdicts)
        rates[row["data_source"]][sum(verdicts)] += 1
    _, attempts = _verdicts(tried)
    buggy = {row["id"]: attempts.get(row["id"], [])[:MAX_BUGGY] for row in held_out}
    write_whole(kept / CHOICE, json.dumps({"asked": counts, "held_out": buggy}, indent=1) + "\n")
    write([*asked_rows, *held_out], kept / CHOICE, folder)
    lines = [f"| solved of {NUM_SAMPLES} | {' | '.join(map(str, range(NUM_SAMPLES + 1)))} | kept |"]
    lines.append("| --- |" + " ---: |" * (NUM_SAMPLES + 2))
    for source, found in rates.items():
        numbers = [found[number] for number in range(NUM_SAMPLES + 1)]
        lines.append(f"| {source} | {' | '.join(map(str, numbers))} | {sum(numbers[1:-1])} |")
    lines.append(f"\n{len(buggy)} held-out questions, {sum(map(len, buggy.values()))} buggy programs")
    return "\n".join(lines)


def write(rows: Iterable[Row], choice: Path, folder: Path) -> None:
    """Write the questions for training and validation.

    Args:
        rows: at least all chosen questions, in the project's columns.
        choice: the file ``CHOICE``.
        folder: where both files go.

    Raises:
        InputError: ``rows`` lacks a chosen question.
    """
    chosen = json.loads(choice.read_text(encoding="utf-8"))
    by_id = {row["id"]: _plain(row) for row in rows}
    train = [name for name, solved in chosen["asked"].items() if 0 < solved < NUM_SAMPLES]
    if missing := [name for name in (*train, *chosen["held_out"]) if name not in by_id]:
        raise InputError(f"{len(missing)} questions of {choice} are not in the files, such as {missing[0]!r}")
    held_out = [{**by_id[name], "buggy_programs": programs} for name, programs in chosen["held_out"].items()]
    write_whole(folder / TRAIN, json_lines(by_id[name] for name in train))
    write_whole(folder / VAL, json_lines(held_out))


def _verdicts(folder: Path) -> tuple[dict[str, list[bool]], dict[str, list[str]]]:
    """Read verdicts: question -> whether each program passed; question -> its different buggy programs."""
    passed: dict[str, list[bool]] = defaultdict(list)
    incorrect: dict[str, list[str]] = defaultdict(list)
    for row in sorted(read_jsonl(folder / "verdicts.jsonl"), key=lambda row: row["sample"]):
        if row["passed"] is None:
            continue
        passed[row["question"]].append(row["passed"])
        program, reason = row["program"], row["reason"]
        # Every test breaks a program that does not load, so such a program tells no Test LLM from another.
        is_buggy = program and not row["passed"] and not reason.startswith(NOT_LOADED)
        if is_buggy and program not in incorrect[row["question"]]:
            incorrect[row["question"]].append(program)
    return dict(passed), dict(incorrect)
