"""Samples in the form that a benchmark's own evaluator reads, and the command that judges them."""

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....files import json_lines, write_whole

Solution = tuple[str, str]
"""A problem's id in its benchmark, and a program."""


@dataclass(frozen=True, kw_only=True)
class OwnEvaluator:
    """The evaluator that a benchmark's authors published."""

    benchmark: str
    samples_name: str
    """Name of its file of samples in ``--output``."""
    form: Callable[[Sequence[Solution]], str]
    """Makes the text of that file."""
    extract: Callable[[str], str] | None = None
    """The program in a response, empty without one. None where programs are judged here as well."""
    command: str = ""
    """Judges the samples; ``{stem}`` stands for the path of their file without its suffix."""

    def write(self, folder: Path, solutions: Sequence[Solution]) -> str:
        """Write all samples into ``folder``, and return the command that judges them."""
        path = folder / self.samples_name
        write_whole(path, self.form(solutions))
        return self.command.format(stem=shlex.quote(str(path.with_suffix(""))))


def solution_lines(solutions: Sequence[Solution]) -> str:
    """EvalPlus's and BigCodeBench's form: one JSON line a program.

    Example:
        >>> solution_lines([("Mbpp/2", "x = 1")])
        '{"task_id": "Mbpp/2", "solution": "x = 1"}\\n'
    """
    return json_lines({"task_id": name, "solution": program} for name, program in solutions)


def code_lists(solutions: Sequence[Solution]) -> str:
    """LiveCodeBench's form: a JSON list of problems, each with all its programs.

    Example:
        >>> code_lists([("abc301_a", "x = 1"), ("abc301_a", "x = 2")])
        '[{"question_id": "abc301_a", "code_list": ["x = 1", "x = 2"]}]'
    """
    programs = defaultdict(list)
    for name, program in solutions:
        programs[name].append(program)
    return json.dumps([{"question_id": name, "code_list": own} for name, own in programs.items()])


EVALPLUS = OwnEvaluator(benchmark="EvalPlus", samples_name="evalplus_samples.jsonl", form=solution_lines)
