"""BigCodeBench's tasks for a Code LLM, from files of ``bigcode/bigcodebench`` (or ``-hard``) as they are.

Its tests (Zhuo et al., arXiv 2406.15877) are ``unittest`` classes that mock, write files and look at plots, so they run
in the program's own process: see ``in_process`` for what such a verdict is good for. Program and tests run in one
process, in a private folder where this machine has the sandbox's tier 1; nothing has a network, and no other process
can be started. A task whose libraries are not installed in this Python environment is left out, and so is one whose
reference fails here.

As in BigCodeBench a task is passed when no test fails or raises, and a test that is skipped does not fail. It gives a
program 240 s of wall time; here a test has 10 s of CPU time, all of a task together at least 30 s and at most 240 s,
and 8 GiB of address space.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sandbox import CallResult, CallStatus, Limits, Runner, ValueFormatError, decode

from ...data.formats import Row, parsed, text_of
from ...data.reader import iter_rows, read_each
from ...errors import RowError
from ..options import SPLITS
from ..scoring.in_process import InProcessGrading, InProcessTests, source_of
from .tasks import MIB, CodeTask

COLUMNS = frozenset(
    {"task_id", "complete_prompt", "instruct_prompt", "canonical_solution", "code_prompt", "test", "entry_point"}
)
"""Columns that must all exist; they also recognise the benchmark."""
TEST_CLASS = "TestCases"
SECONDS_PER_TEST, LEAST_SECONDS, MOST_SECONDS = 10.0, 30.0, 240.0
_SLOW_IMPORTS = ("numpy", "pandas", "scipy", "sklearn")
"""Worth importing once for all programs. Not matplotlib, which writes files as soon as it is imported."""
_CURE = "take the file as bigcode/bigcodebench has it, or remove the row"


@dataclass(frozen=True, slots=True, kw_only=True)
class BigCodeBenchRow:
    """One row, checked."""

    task_id: str
    prompts: dict[str, str]
    """By split."""
    stub: str
    """Imports and the function without a body: what a calibrated program is put after."""
    reference: str
    tests: str
    test_names: tuple[str, ...]
    libraries: tuple[str, ...]
    """Top-level names of all modules that stub, reference, tests and the column ``libs`` import."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Libraries that are not installed."""
        return tuple(name for name in self.libraries if not is_installed(name))


def read_bigcodebench(path: Path) -> list[BigCodeBenchRow]:
    """All rows of a file; nothing is run.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    return list(read_each(iter_rows(path), _read_row, where=path, hint=_CURE))


def preloads(rows: Iterable[BigCodeBenchRow]) -> tuple[str, ...]:
    """What a runner for these rows should import beforehand."""
    used = {name for row in rows for name in row.libraries}
    return tuple(name for name in _SLOW_IMPORTS if name in used and is_installed(name))


def bigcodebench_tasks(
    rows: Iterable[BigCodeBenchRow], runner: Runner, *, split: str = "instruct", calibrated: bool = True
) -> tuple[list[CodeTask], dict[str, Any]]:
    """Tasks of the rows whose libraries are installed, and what was left out.

    Args:
        runner: of tier 1 where that is possible, since the tests write files.
        split: one of ``SPLITS``: the prompt that models get.
        calibrated: a program is put after the task's imports and its empty function, as in BigCodeBench's calibrated
            score: it need not repeat the imports.
    """
    tasks = []
    missing: Counter[str] = Counter()
    num_left_out = 0
    for row in rows:
        if row.missing:
            missing.update(row.missing)
            num_left_out += 1
            continue
        tests = _tests_of(row, calibrated=calibrated)
        tasks.append(
            CodeTask(
                id=row.task_id,
                data_source=f"BigCodeBench {split}",
                prompt=row.prompts[split],
                reference=row.reference,
                grading=InProcessGrading(tests=tests, reference=row.reference, runner=runner),
            )
        )
    counts: dict[str, Any] = {}
    if num_left_out:
        names = ", ".join(f"{name} ({number})" for name, number in missing.most_common())
        counts = {"BigCodeBench tasks left out": num_left_out, "libraries that are missing": names}
    return tasks, counts


@functools.cache
def is_installed(name: str) -> bool:
    """Whether a top-level module can be found; nothing is imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def read_outcomes(answer: CallResult) -> list[tuple[str, str, str]] | None:
    """``(name, outcome, remark)`` of each test, as the program's process tells them; None where it tells none."""
    try:
        value = decode(answer.value) if answer.status is CallStatus.VALUE else None
        return msgspec.convert(value, list[tuple[str, str, str]])
    except (ValueFormatError, msgspec.ValidationError):
        return None


def _tests_of(row: BigCodeBenchRow, *, calibrated: bool) -> InProcessTests:
    seconds = min(max(SECONDS_PER_TEST * len(row.test_names), LEAST_SECONDS), MOST_SECONDS)
    return InProcessTests(
        before=f"{source_of('unittest_program.py')}\n{row.stub if calibrated else ''}",
        after=row.tests,
        calls=(f"run_unit_tests({TEST_CLASS})",),
        limits=Limits(
            cpu_seconds_per_case=seconds,
            wall_seconds_per_case=seconds,
            load_cpu_seconds=60.0,
            load_idle_seconds=60.0,
            total_seconds=seconds + 120.0,
            memory_bytes=8192 * MIB,
            open_files=256,
            scratch_bytes=256 * MIB,
            scratch_files=4096,
            source_bytes=16 * MIB,
        ),
        failure_of=functools.partial(_failure, row.test_names),
    )


def _failure(names: tuple[str, ...], call: str, answer: CallResult) -> str:
    """Why the tests failed; empty when all of ``names`` passed and nothing else failed."""
    outcomes = read_outcomes(answer)
    if outcomes is None:
        return f"{answer.status.value}: {answer.detail[:200]}"
    for name, outcome, remark in outcomes:
        if outcome != "passed":
            return f"{outcome}: {name} {remark}".strip()
    untold = sorted(set(names) - {name for name, _, _ in outcomes})
    return f"not run: {', '.join(untold)}" if untold else ""


def _read_row(row: Row) -> BigCodeBenchRow:
    task_id = text_of(row, "task_id")
    stub = f"{text_of(row, 'code_prompt')}\n    pass\n"
    reference = f"{text_of(row, 'complete_prompt')}\n{text_of(row, 'canonical_solution')}"
    modules = {
        name: parsed({name: source}, name)
        for name, source in {"code_prompt": stub, "canonical_solution": reference, "test": row.get("test")}.items()
    }
    classes = {node.name: node for node in modules["test"].body if isinstance(node, ast.ClassDef)}
    methods = [
        node.name
        for node in getattr(classes.get(TEST_CLASS), "body", [])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    names = tuple(dict.fromkeys(name for name in methods if name.startswith("test")))
    if not names:
        raise RowError("test", f"must define a class {TEST_CLASS} with a method test...")
    imported = {name for module in modules.values() for name in _imported(module)}
    return BigCodeBenchRow(
        task_id=task_id,
        prompts={split: text_of(row, f"{split}_prompt") for split in SPLITS},
        stub=stub,
        reference=reference,
        tests=text_of(row, "test"),
        test_names=names,
        libraries=tuple(sorted(imported | set(_listed(row)))),
    )


def _imported(module: ast.Module) -> Iterable[str]:
    """Top-level names of the modules imported at the top of a source; others may be optional."""
    for node in module.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _listed(row: Row) -> list[str]:
    """The column ``libs``: a list, or its text; files without one do without."""
    value = row.get("libs") or []
    try:
        items = ast.literal_eval(value) if isinstance(value, str) else list(value)
    except (ValueError, SyntaxError, TypeError) as error:
        raise RowError("libs", f"must be a list of names or its text, got {value!r}") from error
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise RowError("libs", f"must be a list of names or its text, got {value!r}")
    return [item.partition(".")[0] for item in items]
