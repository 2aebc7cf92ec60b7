"""Writes samples for the benchmarks' own evaluators."""

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....files import json_lines, write_whole

Solution = tuple[str, str]
"""A problem's id in the benchmark, and a program."""


@dataclass(frozen=True, kw_only=True)
class OwnEvaluator:
    """The evaluator that a benchmark's authors published."""

    benchmark: str
    samples_name: str
    """Name of the file of samples in ``--output``."""
    form: Callable[[Sequence[Solution]], str]
    """Returns the text of the file of samples for given solutions."""
    extract: Callable[[str], str] | None = None
    """Returns the program in a response, or "". None if our own judge also judges the benchmark's programs."""
    command: str = ""
    """Shell command that judges the samples. ``{stem}`` stands for the path of the samples without suffix."""

    def write(self, folder: Path, solutions: Sequence[Solution]) -> str:
        """Write all samples into ``folder``. Returns the shell command that judges the samples."""
        path = folder / self.samples_name
        write_whole(path, self.form(solutions))
        return self.command.format(stem=shlex.quote(str(path.with_suffix(""))))


def solution_lines(solutions: Sequence[Solution]) -> str:
    """Return a JSON line for each program, as EvalPlus and BigCodeBench read it.

    Example:
        >>> solution_lines([("Mbpp/2", "x = 1")])
        '{"task_id": "Mbpp/2", "solution": "x = 1"}\\n'
    """
    return json_lines({"task_id": name, "solution": program} for name, program in solutions)


def code_lists(solutions: Sequence[Solution]) -> str:
    """Return a JSON list of problems with their programs, as LiveCodeBench reads it.

    Example:
        >>> code_lists([("abc301_a", "x = 1"), ("abc301_a", "x = 2")])
        '[{"question_id": "abc301_a", "code_list": ["x = 1", "x = 2"]}]'
    """
    programs_of = defaultdict(list)
    for name, program in solutions:
        programs_of[name].append(program)
    problems = []
    for name, programs in programs_of.items():
        problems.append({"question_id": name, "code_list": programs})
    return json.dumps(problems)


EVALPLUS = OwnEvaluator(
    benchmark="EvalPlus",
    samples_name="evalplus_samples.jsonl",
    form=solution_lines,
)
