"""Tests that a run's Test LLM wrote, as fixed tests of their questions: the `static` arm.

``harvest`` takes them as they are. ``minimal_row`` keeps as few of a question's tests as kill the same programs:
mutants of its reference, and the wrong programs that the run recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox import SandboxUnavailableError, syntax_key

from ..questions import Question
from ..score_file import Row
from .judged_rows import JudgeAll
from .measures import fails, met_cases
from .programs_on_tests import cases_by_place, is_broken, request_for
from .records import Record, RecordsError, RunRecords
from .set_cover import cover

MOST_TESTS = 32
"""Per question, those that broke most programs first, where nothing is minimised."""
MOST_JUDGED = 512
"""Different calls of a question that are judged when its tests are minimised, those that broke most programs first."""


@dataclass(slots=True, kw_only=True)
class Found:
    """What a run recorded for one question."""

    broken: Counter[str] = field(default_factory=Counter)
    """Each valid case as an assert, with the number of programs it broke."""
    keys: dict[str, str] = field(default_factory=dict)
    """What each assert is known by, equal for all spellings of one call."""
    wrong_programs: dict[str, str] = field(default_factory=dict)
    """Programs that a test broke, by syntax tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvested:
    """A question with the tests that were written for it, best first."""

    question: Question
    tests: tuple[str, ...]
    """``assert call == answer of the reference``."""
    num_broken: tuple[int, ...]
    """[tests] programs that each broke in the run."""
    keys: tuple[str, ...]
    """[tests]"""
    wrong_programs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimiseSettings:
    """What decides which tests stay."""

    min_tests: int = 1
    """Tests that a question keeps at least, as far as it has some."""
    max_mutants: int = 200
    """Of each reference."""
    seed: int = 0
    """Of the choice of mutants where there are more."""


def harvest(run_folder: Path, target: Path, *, last_share: float = 0.5) -> int:
    """Write the run's training questions with the valid cases of their last visits as ``golden_tests``.

    Args:
        run_folder: a finished run with a Test LLM.
        target: JSON lines in the native columns; replaced.
        last_share: of the run's steps, the part at the end whose suites are taken: by then the Test LLM is trained.
            A question that has no valid case there has those of the earlier steps.

    Returns:
        Questions written; those without a valid case are left out.

    Raises:
        RecordsError: the run has no suites, or ``target`` is a folder.
        QuestionError: its questions are not there any more.
    """
    check_target(target)
    found = collect(RunRecords.open(run_folder), last_share=last_share)
    return write_questions(target, [(one.question, one.tests[:MOST_TESTS]) for one in found])


def check_target(target: Path) -> None:
    """Raises RecordsError where the file to write is a folder."""
    if target.is_dir():
        raise RecordsError(f"{target} is a folder; name the file to write")


def collect(run: RunRecords, *, last_share: float = 0.5) -> list[Harvested]:
    """The questions of a run that have a valid case, in the order of their files; arguments and errors as `harvest`."""
    steps = run.training_steps
    first = int(len(steps) * (1 - last_share))
    late, early = _found(run, steps[first:]), _found(run, steps[:first])
    for question_id, before in early.items():
        since = late.setdefault(question_id, before)
        if not since.broken:  # no valid case since
            since.broken, since.keys = before.broken, before.keys
        since.wrong_programs = before.wrong_programs | since.wrong_programs
    if not any(one.broken for one in late.values()):
        raise RecordsError(f"{run.folder}: no valid case in its rollouts; harvest a run in which a Test LLM took part")
    return [
        _harvested(question, late[question.id])
        for question in run.questions("train_files")
        if question.id in late and late[question.id].broken
    ]


def write_questions(target: Path, found: Iterable[tuple[Question, Sequence[str]]]) -> int:
    """Questions with ``golden_tests`` as JSON lines in the native columns, all at once; returns how many."""
    lines = [json.dumps(_row(question, list(tests))) + "\n" for question, tests in found]
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    partial.write_text("".join(lines), encoding="utf-8")
    partial.replace(target)
    return len(lines)


def _found(run: RunRecords, steps: Sequence[int]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for step in steps:
        for record in run.training(step):
            one = found.setdefault(str(record["question"]), Found())
            for case in _suite_cases(record):
                text = f"assert {case['call']} == {case['answer']}"
                one.broken[text] += case["outcome"] not in ("passed", "not_loaded")
                one.keys.setdefault(text, case.get("key") or case["call"])
            if is_wrong(record):
                one.wrong_programs.setdefault(syntax_key(record["source"]), record["source"])
    return found


def _suite_cases(record: Record) -> Iterator[Mapping[str, str]]:
    for suite in record["suites"]:
        yield from suite["verdict"]["cases"] if suite["verdict"] else ()


def is_wrong(record: Record) -> bool:
    """The recorded program loads, and a valid case broke it: new, given, pooled, replayed or hidden."""
    if record["outage"] or record["source"] is None or not (record["verdict"] and record["verdict"]["loaded"]):
        return False
    hidden = record["hidden_tests"]["cases"] if record["hidden_tests"] is not None else ()
    return any(map(fails, hidden)) or any(fails(case) for _, cases in met_cases(record) for case in cases)


def _harvested(question: Question, found: Found) -> Harvested:
    ranked = found.broken.most_common()
    return Harvested(
        question=question,
        tests=tuple(text for text, _ in ranked),
        num_broken=tuple(count for _, count in ranked),
        keys=tuple(found.keys[text] for text, _ in ranked),
        wrong_programs=tuple(found.wrong_programs.values()),
    )


def _row(question: Question, tests: list[str]) -> dict[str, object]:
    return {
        "id": question.id,
        "prompt": question.prompt,
        "reference": question.reference,
        "entry_points": list(question.entry_points),
        "prelude": question.prelude,
        "tests": list(question.tests),
        "golden_tests": tests,
        "wrong_programs": list(question.wrong_programs),
        "data_source": question.data_source,
    }


def digest_of(found: Sequence[Harvested]) -> str:
    """Of everything that was collected, in hexadecimal."""
    content = [
        [one.question.id, one.question.reference, one.tests, one.num_broken, one.wrong_programs] for one in found
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


# ------------------------------ as few tests as kill the same ------------------------------


def require_mutants() -> None:
    """Raises ModuleNotFoundError, which says what to install, where mutants cannot be made."""
    from ..evaluation.mutants import mutants_of  # here: needs cosmic-ray

    mutants_of("def f(x):\n    return x + 1")


def distinct(found: Harvested) -> list[tuple[str, int]]:
    """One test for each call, however it was spelled, with the times it broke a program; best first.

    The spelling that broke most stands for the others, and the times of all add up.
    """
    first: dict[str, str] = {}
    times: Counter[str] = Counter()
    for text, key, num_broken in zip(found.tests, found.keys, found.num_broken, strict=True):
        first.setdefault(key, text)
        times[key] += num_broken
    return [(first[key], count) for key, count in times.most_common()]


def minimal_row(found: Harvested, settings: MinimiseSettings, judge_all: JudgeAll) -> Row:
    """Which of a question's tests to keep, and what they kill: one row of the work file.

    A test kills a program that answers its call otherwise than the reference, raises, runs out of time or does not
    load. A call for which the program had no time left, or was not asked, kills nothing. A test whose value is not the
    one that the question's reference gives now (its file has changed since the run) goes. Where the sandbox could not
    judge a program, ``outage`` says why, and all tests stay.

    Raises:
        ModuleNotFoundError: mutants cannot be made here; says what to install.
    """
    from ..evaluation.mutants import mutants_of  # here: needs cosmic-ray

    question, tests = found.question, distinct(found)
    judged = tests[:MOST_JUDGED]
    texts = [text for text, _ in judged]
    mutants = [
        mutant.source for mutant in mutants_of(question.reference, max_mutants=settings.max_mutants, seed=settings.seed)
    ]
    programs = [*mutants, *found.wrong_programs]
    row: Row = {"question": question.id, "outage": None, "num_tests": len(tests)}
    kills: list[set[int]] = [set() for _ in texts]
    is_answered, is_contradicted = [False] * len(texts), [False] * len(texts)
    asked = programs or [question.reference]  # on which the tests are held against the reference all the same
    for place, result in enumerate(judge_all([request_for(question, source, texts) for source in asked])):
        if isinstance(result, SandboxUnavailableError):
            return row | {"outage": str(result), "kept": texts}
        for number, case in cases_by_place(texts, result.suites[0]):
            is_answered[number] = True
            is_contradicted[number] |= not case.claimed_right
            if programs and case.claimed_right and is_broken(case):
                kills[number].add(place)
    valid = [number for number in range(len(texts)) if is_answered[number] and not is_contradicted[number]]
    chosen = cover(
        [kills[number] for number in valid], [judged[number][1] for number in valid], least=settings.min_tests
    )
    killed = set().union(*(kills[number] for number in valid))
    still = set().union(*(kills[valid[place]] for place in chosen))
    return row | {
        "kept": [texts[valid[place]] for place in chosen],
        "num_unjudged": len(tests) - len(texts),
        "num_invalid": len(texts) - sum(is_answered),
        "num_contradicted": sum(is_contradicted),
        "num_mutants": len(mutants),
        "num_wrong_programs": len(found.wrong_programs),
        "mutants_killed": sum(place < len(mutants) for place in killed),
        "mutants_killed_after": sum(place < len(mutants) for place in still),
        "wrong_programs_killed": sum(place >= len(mutants) for place in killed),
        "wrong_programs_killed_after": sum(place >= len(mutants) for place in still),
    }


def harvest_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """What minimising did, for the terminal; questions with an outage count as such and nowhere else."""
    rows = list(rows)
    judged = [row for row in rows if not row["outage"]]

    def total(name: str) -> int:
        return sum(row[name] for row in judged)

    def counted(what: str, name: str) -> str:
        return f"{what} {total(f'{name}_killed')} -> {total(f'{name}_killed_after')} of {total(f'num_{name}')}"

    before, after = total("num_tests"), sum(len(row["kept"]) for row in judged)
    lines = [
        f"tests {before} -> {after}" + (f" ({after / len(judged):.1f} a question)" if judged else ""),
        f"killed by them: {counted('mutants', 'mutants')}, {counted('recorded wrong programs', 'wrong_programs')}",
    ]
    if total("num_invalid") or total("num_contradicted") or total("num_unjudged"):
        lines.append(
            f"left out: {total('num_invalid')} that the reference no longer answers, {total('num_contradicted')} that "
            f"it answers otherwise, {total('num_unjudged')} beyond the first {MOST_JUDGED} of a question"
        )
    if len(judged) < len(rows):
        lines.append(
            f"{len(rows) - len(judged)} questions met an outage of the sandbox and kept all their tests; repeat the "
            "command to judge them again"
        )
    return "\n".join(lines)
