"""HumanEval, LeetCodeDataset and MBPP graded by the whole test source of a row, in the program's own process.

``adapters`` keeps of such a source what can be said as ``assert f(literals) == literal``, which the judge compares
outside. Asserts on list nodes and trees, on several right answers, or with a computed expectation fall away there.
Here nothing does, at the price that ``in_process`` states: for evaluation only.

A row's own code comes first, as in the sets' own harnesses: HumanEval's prompt (its imports, its helper functions and
a function of the asked name that returns nothing), LeetCodeDataset's imports and node classes, MBPP's
``test_setup_code`` after the program.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sandbox import Runner

from ...data.formats import Row, list_of, text_of
from ...data.reader import iter_rows, read_each, read_questions
from ...errors import RowError
from ..benchmarks.tasks import MIB, USUAL_LIMITS, CodeTask
from .in_process import InProcessGrading, InProcessTests

CHECK_LIMITS = replace(
    USUAL_LIMITS,
    cpu_seconds_per_case=20.0,
    wall_seconds_per_case=20.0,
    total_seconds=60.0,
    source_bytes=16 * MIB,
)
"""Of one program. A call is a whole ``check`` with all of its asserts, or one assert of MBPP."""


def _of_check(row: Row) -> InProcessTests:
    """HumanEval and LeetCodeDataset: ``check`` is called with the program's function."""
    calls = (f"check({text_of(row, 'entry_point')})",)
    return InProcessTests(before=text_of(row, "prompt"), after=text_of(row, "test"), calls=calls, limits=CHECK_LIMITS)


def _of_mbpp(row: Row) -> InProcessTests:
    setup = row.get("test_setup_code") or "\n".join(row.get("test_imports") or [])
    if not isinstance(setup, str):
        raise RowError("test_setup_code", f"must be a text, got {type(setup).__name__}")
    calls = tuple(f"exec({text.strip()!r})" for text in list_of(row, "test_list"))
    return InProcessTests(after=setup, calls=calls, limits=CHECK_LIMITS)


SOURCES: dict[str, Callable[[Row], InProcessTests]] = {
    "humaneval": _of_check,
    "leetcode": _of_check,
    "mbpp": _of_mbpp,
    "mbpp_sanitized": _of_mbpp,
}
"""Names of ``adapters.ADAPTERS`` whose rows have a test source."""


def check_tasks(path: Path, runner: Runner, *, adapter: str = "auto") -> list[CodeTask]:
    """All problems of a file that one of ``SOURCES`` reads.

    Raises:
        InputError: the file cannot be read, or a row breaks a rule.
    """
    loaded = read_questions(path, adapter=adapter)
    tests_of_rows = read_each(iter_rows(path), SOURCES[loaded.adapter], where=path)
    return [
        CodeTask.of(question, InProcessGrading(tests=tests, reference=question.reference, runner=runner))
        for tests, question in zip(tests_of_rows, loaded.questions, strict=True)
    ]
