"""HumanEval+ and MBPP+ as tasks for a Code LLM, graded by EvalPlus's rules."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import Runner, SandboxUnavailableError

from ...algorithm.question import entry_points_text
from ..benchmarks.evalplus import EvalPlusProblem, prepare, read_problem, read_problem_rows
from ..benchmarks.tasks import CodeTask, CodeVerdict
from .evalplus_judge import judge_program

_SOURCES = {"humaneval": "HumanEval+", "mbpp": "MBPP+"}


@dataclass
class EvalPlusGrading:
    """One problem; its reference runs once, when the first program is graded."""

    problem: EvalPlusProblem
    runner: Runner
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def grade(self, programs: Sequence[str]) -> list[CodeVerdict | SandboxUnavailableError]:
        """As ``code_tasks.Grading``. A program is taken as it stands, without the prompt's imports, as by EvalPlus."""
        try:
            with self._lock:
                if not self.problem.is_prepared:
                    self.problem = prepare(self.problem, self.runner)
        except SandboxUnavailableError as error:
            return [error] * len(programs)
        return [self._graded(program) for program in programs]

    def _graded(self, program: str) -> CodeVerdict | SandboxUnavailableError:
        try:
            verdict = judge_program(self.problem, program, runner=self.runner)
        except SandboxUnavailableError as error:
            return error
        if verdict.passed:
            return CodeVerdict(passed=True)
        call = "" if verdict.failed_call is None else f": {self.problem.calls[verdict.failed_call][:200]}"
        return CodeVerdict(passed=False, reason=f"{verdict.outcome.value}{call} {verdict.detail[:100]}".strip())


def evalplus_tasks(path: Path, runner: Runner) -> list[CodeTask]:
    """All problems of a file with the columns of the Code-A1 release.

    Raises:
        InputError: a row is no EvalPlus problem.
    """
    tasks = []
    for index, row in enumerate(read_problem_rows(path)):
        problem = read_problem(row, where=f"{path}: row {index}")
        tasks.append(
            CodeTask(
                id=problem.id,
                data_source=_SOURCES[problem.dataset],
                prompt=official_prompt(problem, description=str(row.get("description") or "")),
                own_chat=tuple(row["prompt"]) if isinstance(row.get("prompt"), list) else (),
                entry_points=entry_points_text(problem.reference, [problem.entry_point]),
                reference=problem.reference,
                grading=EvalPlusGrading(problem=problem, runner=runner),
            )
        )
    return tasks


def official_prompt(problem: EvalPlusProblem, *, description: str) -> str:
    """EvalPlus's statement: of HumanEval+ the signature with its docstring, of MBPP+ a docstring of task and assert."""
    if problem.dataset == "mbpp" and description.strip():
        return f'"""\n{description.strip()}\n"""\n'
    return problem.prompt
