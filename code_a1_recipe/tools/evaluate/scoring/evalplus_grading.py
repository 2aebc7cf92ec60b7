"""HumanEval+ and MBPP+ as tasks for a Code LLM, graded by EvalPlus's rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import Runner, SandboxUnavailableError

from ....algorithm.question import entry_points_text
from ..benchmarks.evalplus import EvalPlusProblem, prepare, read_problems
from ..benchmarks.own_evaluators import EVALPLUS
from ..benchmarks.tasks import CodeTask, Grades
from .evalplus_judge import judge_program

_SOURCES = {"humaneval": "HumanEval+", "mbpp": "MBPP+"}


@dataclass(frozen=True)
class EvalPlusGrading:
    """Grades programs on one problem by EvalPlus's rules."""

    problem: EvalPlusProblem
    runner: Runner

    def grade(self, programs: Sequence[str]) -> Grades:
        """Grade as ``tasks.Grading`` says. The reference runs once, before the first program.

        As in EvalPlus, a program must repeat the imports of the prompt.
        """
        problem = self.problem
        grades: Grades = []
        for program in programs:
            try:
                problem = problem if problem.is_prepared else prepare(problem, self.runner)
                grades.append(judge_program(problem, program, runner=self.runner))
            except SandboxUnavailableError as error:
                grades.append(error)
        return grades


def evalplus_tasks(path: Path, runner: Runner) -> list[CodeTask]:
    """Read all problems of a file with the columns of the Code-A1 release.

    Raises:
        InputError: a row is no EvalPlus problem.
    """
    return [
        CodeTask(
            id=problem.id,
            data_source=_SOURCES[problem.dataset],
            prompt=problem.prompt,
            entry_points=entry_points_text(problem.reference, [problem.entry_point]),
            reference=problem.reference,
            entry_point=problem.entry_point,
            grading=EvalPlusGrading(problem=problem, runner=runner),
            evaluator=EVALPLUS,
            official_id=problem.id.replace("MBPP/", "Mbpp/"),
        )
        for problem in read_problems(path)
    ]
