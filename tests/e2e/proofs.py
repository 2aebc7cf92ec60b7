"""What a run folder proves: which questions it met, what its book must hold, whether two states are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.reader import RunRecords, read_rollouts
from code_a1_recipe.runs.rollout_record import RolloutRecord


def records_of(folder: Path, step: int, phase: str = "train", *, kind: str = "sampled") -> list[RolloutRecord]:
    """Programs of a step in the order of questions and candidates; duplicates without suites."""
    records = read_rollouts(RunFolder(folder).rollout_file(step, validation=phase == "val"))
    return sorted((one for one in records if one.kind == kind), key=lambda record: (record.index, record.candidate))


def steps_of(folder: Path) -> list[int]:
    """Steps of metrics.jsonl in the order written, validation before training (0) included."""
    return [row["step"] for row in RunRecords.open(folder).metrics]


def weights(folder: Path, step: int, policy: str) -> dict[str, torch.Tensor]:
    """Weights of a policy in a checkpoint, joined from the parts of all ranks."""
    actor = folder / "checkpoints" / f"global_step_{step}" / policy / "actor"
    parts = [torch.load(path, weights_only=False) for path in sorted(actor.glob("model_world_size_*_rank_*.pt"))]
    joined = {}
    for name, value in parts[0].items():
        is_sharded = hasattr(value, "to_local")
        joined[name] = torch.cat([part[name].to_local() for part in parts]) if is_sharded else value
    return joined


def questions_of(folder: Path, step: int) -> list[str]:
    """Ids of a step's questions in their order."""
    by_index = {record.index: record.question for record in records_of(folder, step)}
    return [by_index[index] for index in sorted(by_index)]


def replayed_book(records_by_step: list[list[RolloutRecord]]) -> MistakeBook:
    """The Mistake Book that follows from the recorded verdicts alone; an outage teaches nothing."""
    book = MistakeBook()
    for records in records_by_step:
        for index in sorted({record.index for record in records}):
            failed, passed = [], []
            mine = [record for record in records if record.index == index]
            for record in (record for record in mine if record.verdict is not None):
                for suite in record.suites:
                    mistakes = {
                        case.id: FailedCase(call=case.call, answer=case.reference_value, id=case.id)
                        for case in reversed(suite.verdict.cases)
                        if case.outcome not in ("passed", "not_loaded") and not case.is_unasked
                    }
                    failed += mistakes.values()
                passed += [case.call for case in record.verdict.history if case.outcome == "passed"]
            book.update(mine[0].question, BookUpdate(failed=failed, passed_replays=passed))
    return book


def order_problems(folder: Path, *, steps: int, steps_an_epoch: int) -> list[str]:
    """Why the rollouts do not show every question exactly once an epoch, in ``steps`` steps; empty: they do."""
    problems = []
    training = [step for step in steps_of(folder) if step > 0]
    if training != list(range(1, steps + 1)):
        problems.append(f"metrics.jsonl has the steps {training}, wanted 1 to {steps}, each once")
    epochs = [range(first, first + steps_an_epoch) for first in range(1, steps + 1, steps_an_epoch)]
    seen_before: set[str] = set()
    for epoch in epochs:
        met = [question for step in epoch if step <= steps for question in questions_of(folder, step)]
        repeated = sorted({question for question in met if met.count(question) > 1})
        if repeated:
            problems.append(f"steps {epoch.start} to {epoch.stop - 1} meet {repeated} more than once")
        if epoch.stop - 1 <= steps:
            if seen_before and set(met) != seen_before:
                problems.append(f"steps {epoch.start} to {epoch.stop - 1} lose {sorted(seen_before - set(met))}")
            seen_before = set(met)
    return problems


def state_differences(one: Path, other: Path) -> list[str]:
    """Where two checkpoints differ, bit by bit: weights, optimizers, random states, data order, book, extensions."""
    found = []
    for path in sorted(one.rglob("*.pt")):
        name = path.relative_to(one)
        states = (torch.load(folder / name, weights_only=False) for folder in (one, other))
        found += [f"{name}{place}" for place in _differences(*states)]
    for name in ("mistake_book.json", "extensions.json"):
        if (one / name).read_bytes() != (other / name).read_bytes():
            found.append(name)
    return found


def _differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    one, other = (value.to_local() if hasattr(value, "to_local") else value for value in (one, other))
    if type(one) is not type(other):
        yield place
    elif isinstance(one, dict):
        if one.keys() != other.keys():
            yield f"{place} (keys)"
        for key in one.keys() & other.keys():
            yield from _differences(one[key], other[key], f"{place}.{key}")
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            yield f"{place} (length)"
        for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            yield from _differences(mine, theirs, f"{place}[{number}]")
    elif isinstance(one, torch.Tensor):
        if not torch.equal(one, other):
            yield place
    elif not bool(getattr(one == other, "all", lambda: one == other)()):
        yield place
