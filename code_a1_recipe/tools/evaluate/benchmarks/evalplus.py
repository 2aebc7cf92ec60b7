"""Problems of HumanEval+ and MBPP+ with all their inputs and with EvalPlus's rules of comparison.

Training keeps only tests of the form ``assert f(literals) == literal`` (``data.formats``). Evaluation keeps all inputs
and follows EvalPlus's own rules (0.3.1, ``evalplus/eval``; arXiv 2305.01210). tools/evaluate/README.md lists the
exceptions.
"""

import ast
import enum
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import Call, CallStatus, Limits, Program, Role, Runner, ValueFormatError
from sandbox.text import encode, spell

from ....data.asserts import literal_value
from ....data.formats import evalplus_row
from ....data.native_row import Row
from ....data.reader import columns_of, iter_rows, read_each, row_reader
from ....errors import InputError, RowError

_MIB = 1 << 20
EVALPLUS_LIMITS = Limits(
    min_cpu_seconds_per_case=0.05,
    cpu_seconds_per_case=2.0,
    reference_cpu_seconds_per_case=30.0,
    reference_factor=8.0,
    wall_seconds_per_case=2.0,
    load_cpu_seconds=10.0,
    total_seconds=120.0,
    memory_bytes=4096 * _MIB,
    value_bytes=16 * _MIB,
    total_output_bytes=512 * _MIB,
)
"""Limits in CPU time, twice as long as EvalPlus's limits, so that no program fails because the machine is busy.

EvalPlus allows ``max(1 s, 4 x reference)`` of wall time for an input, 60 s for all inputs, and 4 GiB of memory.
"""


class Comparison(enum.StrEnum):
    """How a program's answer is compared with the reference's answer."""

    VALUE = "value"
    """The answer is equal, or close if the problem or the expected value allows a tolerance."""
    SET = "set"
    """The answers are equal as sets, because the statement allows any order."""
    NOT_NONE = "not_none"
    """Both answers have the same truth value. All values but False and None count as True."""
    ROOT = "root"
    """The answer is a root of the polynomial whose coefficients are the input."""
    ANYTHING = "anything"
    """Every returned value is right, because the statement is ambiguous."""
    VALUE_OR_ZERO = "value_or_zero"
    """Like VALUE, but 0 is right too."""
    VALUE_OR_PADDED_DIGITS = "value_or_padded_digits"
    """Like VALUE, but the sum of digit differences after padding the shorter number with zeros is right too."""
    VALUE_OR_PYRAMID = "value_or_pyramid"
    """Like VALUE, but the surface of a pyramid is right too if its height is measured from the centre of the base."""


_COMPARED_AS_SETS = (
    "similar_elements",
    "find_char_long",
    "common_in_nested_lists",
    "extract_singly",
    "larg_nnum",
    "intersection_array",
    "find_dissimilar",
    "Diff",
)
_COMPARISONS = {
    "humaneval": {"find_zero": Comparison.ROOT},
    "mbpp": {
        "are_equivalent": Comparison.ANYTHING,
        "sum_div": Comparison.VALUE_OR_ZERO,
        "digit_distance_nums": Comparison.VALUE_OR_PADDED_DIGITS,
        "surface_Area": Comparison.VALUE_OR_PYRAMID,
        **dict.fromkeys(("check_str", "text_match_three", "text_starta_endb"), Comparison.NOT_NONE),
        **dict.fromkeys(_COMPARED_AS_SETS, Comparison.SET),
    },
}
"""Dataset -> entry point -> comparison, as in EvalPlus 0.3.1. All other functions are compared by VALUE."""


@dataclass(frozen=True, kw_only=True)
class EvalPlusProblem:
    """A problem of HumanEval+ or MBPP+."""

    id: str
    """The id, such as ``HumanEval/0`` or ``MBPP/2``."""
    dataset: str
    """Name of the data set, as EvalPlus spells it: ``humaneval`` or ``mbpp``."""
    entry_point: str
    prompt: str
    """The statement: a signature with a docstring (HumanEval+), or a docstring with a task and an assert (MBPP+)."""
    reference: str
    """The reference, a whole program."""
    calls: tuple[str, ...]
    """Calls ``f(literals)``, in EvalPlus's order."""
    expected: tuple[bytes, ...]
    """Expected return value of each call, encoded as in ``sandbox.values``.

    If the file lists no results, this field is empty until the reference has run.
    """
    comparison: Comparison
    atol: float
    """Absolute tolerance: 0, 1e-6 or 1e-4."""
    reference_cpu_seconds: tuple[float, ...] = ()
    """CPU seconds of the reference for each call. Empty until the reference has run."""

    @property
    def is_prepared(self) -> bool:
        """True if the reference has run, so that expected values and times are known."""
        return len(self.expected) == len(self.reference_cpu_seconds) == len(self.calls)

    def arguments(self, index: int) -> list[Any]:
        """Return the arguments of one call as new objects."""
        call = ast.parse(self.calls[index], mode="eval").body
        assert isinstance(call, ast.Call)
        return list(map(_value, call.args))


def read_problems(path: Path) -> list[EvalPlusProblem]:
    """Read the problems of a file. No program runs.

    Raises:
        InputError: the file cannot be read or lacks a column, or a row is no EvalPlus problem.
    """
    row_reader(columns_of(iter_rows(path)), where=path, adapter="evalplus")
    return list(read_each(iter_rows(path), read_problem, where=path))


def read_problem(row: Row) -> EvalPlusProblem:
    """Read the problem of a row. No program runs.

    Raises:
        RowError: the row is no EvalPlus problem.
    """
    native, check = evalplus_row(row)
    if not native.id:
        raise RowError("extra_info", "must be a mapping with 'function_name' and 'question_id'")
    problem_id = str(native.id)
    dataset = problem_id.partition("/")[0].lower()
    if dataset not in _COMPARISONS:
        raise RowError("extra_info", f"question_id must begin with HumanEval/ or MBPP/, got {problem_id!r}")
    if check.results and len(check.results) != len(check.inputs):
        raise RowError("test", f"has {len(check.inputs)} inputs but {len(check.results)} results")
    description = str(row.get("description") or "").strip()
    is_docstring = dataset == "mbpp" and description
    return EvalPlusProblem(
        id=problem_id,
        dataset=dataset,
        entry_point=check.entry,
        prompt=f'"""\n{description}\n"""\n' if is_docstring else native.prompt,
        reference=native.reference,
        calls=tuple(_call_text(check.entry, given) for given in check.inputs),
        expected=tuple(encode(_value(result)) for result in check.results),
        comparison=_COMPARISONS[dataset].get(check.entry, Comparison.VALUE),
        atol=0.0 if check.tolerance is None else float(ast.literal_eval(check.tolerance)),
    )


def _value(node: ast.expr) -> Any:
    try:
        return literal_value(node)
    except ValueFormatError as error:
        raise RowError("test", f"holds {ast.unparse(node)[:80]!r}: {error}") from error


def _call_text(entry_point: str, given: ast.expr) -> str:
    if not isinstance(given, ast.List | ast.Tuple):
        raise RowError("test", f"every input must be a list of arguments, got {ast.unparse(given)[:80]!r}")
    return f"{entry_point}({', '.join(spell(_value(argument)) for argument in given.elts)})"


def prepare(problem: EvalPlusProblem, runner: Runner) -> EvalPlusProblem:
    """Run the reference once, to time each call and to get expected values if the file lists none.

    Without listed values, a call is left out if the reference returns no value in time, or a value that is too long.

    Raises:
        SandboxUnavailableError: the reference could not be run.
        InputError: the reference does not load, or answers no call.
    """
    program = Program(
        source=problem.reference,
        calls=tuple(Call(expression=text) for text in problem.calls),
        limits=EVALPLUS_LIMITS.for_reference(),
        timed=True,
    )
    result = runner.run(program, role=Role.REFERENCE)
    if not result.loaded:
        raise InputError(f"{problem.id}: the reference does not load: {result.load_error}; correct the row")
    seconds = tuple(answer.cpu_seconds for answer in result.results)
    if problem.expected:
        return replace(problem, reference_cpu_seconds=seconds)
    kept = [index for index, answer in enumerate(result.results) if answer.status is CallStatus.VALUE]
    if not kept:
        first = result.results[0]
        detail = f"{first.status.value} {first.detail}".strip()
        raise InputError(f"{problem.id}: the reference answers no call ({detail}); correct the row")
    return replace(
        problem,
        calls=tuple(problem.calls[index] for index in kept),
        expected=tuple(result.results[index].value for index in kept),
        reference_cpu_seconds=tuple(seconds[index] for index in kept),
    )
