"""Real bugs: a folder laid out like QuixBugs (Lin et al. 2017, "QuixBugs: a multi-lingual program repair benchmark").

``python_programs/NAME.py`` is the buggy program, ``correct_python_programs/NAME.py`` the reference, and
``json_testcases/NAME.json`` holds one test a line, ``[[arguments], expected]``. Programs without such tests, which
work on graphs and linked lists, are skipped and counted. No program is run here.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.literals import spell

from ..assert_texts import signature_of
from ..questions import Question
from .test_metrics import JudgeAll, Parts, judge_claims, judge_kills

BUGGY, CORRECT, TESTS = "python_programs", "correct_python_programs", "json_testcases"


class QuixBugsError(ValueError):
    """The folder does not have the layout, or nothing in it can be used. Shown to the user as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BugSet:
    """The questions of a folder and what was left out."""

    questions: tuple[Question, ...]
    """In the order of their names; the buggy program is the only one of ``wrong_programs``."""
    skipped: dict[str, str]
    """Name -> why it is not a question: ``no_correct_program``, ``no_tests``, ``no_function``, ``not_python``,
    ``no_literal_test``."""

    @property
    def num_skipped(self) -> Counter[str]:
        """Reason -> number of programs."""
        return Counter(self.skipped.values())


class _SkippedError(Exception):
    """A program that is no question; says why."""


def read_quixbugs(folder: Path) -> BugSet:
    """Read every program of a folder.

    Raises:
        QuixBugsError: a subfolder is missing, a file cannot be read, or no program can be used.
    """
    if missing := [name for name in (BUGGY, CORRECT, TESTS) if not (folder / name).is_dir()]:
        raise QuixBugsError(
            f"{folder} must hold the folders {BUGGY}, {CORRECT} and {TESTS}, but {', '.join(missing)} is not there; "
            "name the top folder of a copy of QuixBugs"
        )
    questions: list[Question] = []
    skipped: dict[str, str] = {}
    for path in sorted((folder / BUGGY).glob("*.py")):
        if path.stem.endswith("_test") or path.stem == "__init__":
            continue
        try:
            questions.append(_read_program(folder, path.stem))
        except _SkippedError as error:
            skipped[path.stem] = str(error)
        except (OSError, UnicodeDecodeError) as error:
            raise QuixBugsError(f"{path}: it or its counterparts cannot be read: {error}") from error
    if not questions:
        reasons = ", ".join(f"{reason} {count}" for reason, count in Counter(skipped.values()).items()) or "no program"
        raise QuixBugsError(f"{folder}: no program can be used ({reasons}); each needs a correct one and JSON tests")
    return BugSet(questions=tuple(questions), skipped=skipped)


def measure_bugs(question: Question, asserts: Sequence[str], judge_all: JudgeAll) -> tuple[tuple[bool, ...], ...]:
    """[wrong programs][asserts] whether each assert breaks each wrong program; only right asserts can.

    Raises:
        SandboxUnavailableError: something could not be judged.
    """
    right = judge_claims(question, asserts, judge_all)
    return judge_kills(question, asserts, judge_all, right=right, sources=question.wrong_programs)


def bug_parts(kills: Iterable[Sequence[Sequence[bool]]], *, k: int | None = None) -> Parts:
    """The kill rate of real bugs: wrong programs broken by a right assert, over all wrong programs.

    Args:
        kills: ``measure_bugs`` of each question.
        k: look at the first k asserts of each question only.
    """
    questions = list(kills)
    return Parts(
        numerators=tuple(float(sum(any(row[:k]) for row in rows)) for rows in questions),
        denominators=tuple(float(len(rows)) for rows in questions),
    )


def _read_program(folder: Path, name: str) -> Question:
    correct, tests = folder / CORRECT / f"{name}.py", folder / TESTS / f"{name}.json"
    if not correct.is_file():
        raise _SkippedError("no_correct_program")
    if not tests.is_file():
        raise _SkippedError("no_tests")
    buggy = (folder / BUGGY / f"{name}.py").read_text(encoding="utf-8")
    reference = correct.read_text(encoding="utf-8")
    function = _function_of(reference, name)
    _function_of(buggy, name)
    asserts = _asserts(tests.read_text(encoding="utf-8"), name, is_generator=_yields(function))
    if not asserts:
        raise _SkippedError("no_literal_test")
    remark = _remark_of(buggy) or _remark_of(reference)
    return Question(
        id=f"QuixBugs/{name}",
        prompt=f"{remark}\n\nName the function `{signature_of(reference, name)}`.".strip(),
        reference=reference,
        entry_points=(name,),
        tests=asserts,
        wrong_programs=(buggy,),
        data_source="quixbugs",
    )


def _function_of(source: str, name: str) -> ast.FunctionDef:
    for node in _parsed(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise _SkippedError("no_function")


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _SkippedError("not_python") from error


def _remark_of(source: str) -> str:
    """The last text that stands alone at top level; QuixBugs describes a program below it."""
    texts = [
        node.value.value
        for node in _parsed(source).body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return texts[-1].strip() if texts else ""


def _yields(function: ast.FunctionDef) -> bool:
    """Whether the function itself is a generator; its inner functions do not count."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
    return False


def _asserts(text: str, name: str, *, is_generator: bool) -> tuple[str, ...]:
    """One assert a line that holds ``[arguments, expected]``; a single argument may stand without its list."""
    found = []
    for line in text.splitlines():
        try:
            values: Any = json.loads(line)
        except ValueError:  # an empty line, or one that is no JSON
            continue
        if not isinstance(values, list) or len(values) != 2:
            continue
        arguments = values[0] if isinstance(values[0], list) else [values[0]]
        call = f"{name}({', '.join(map(spell, arguments))})"
        found.append(f"assert {f'list({call})' if is_generator else call} == {spell(values[1])}")
    return tuple(found)
