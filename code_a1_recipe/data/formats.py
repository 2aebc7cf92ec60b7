"""Conversion of rows of public code problem sets to the recipe's native columns.

An adapter has a name, the columns that it needs, and a function of a row. ``reader.load_questions`` takes the first of
``ADAPTERS`` whose columns are all there.

Tests become ``assert f(literals) == literal``, the only form that the judge accepts. Other tests are left out and
counted in ``NativeRow.num_dropped_tests``; data/README.md lists them.
"""

import ast
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reward_fns.listed import SITES_PRELUDE
from sandbox import Kind
from sandbox.text import NODE_NAMES, Interface

from ..algorithm.question import definitions
from ..errors import RowError
from .asserts import (
    EvalPlusCheck,
    asserts_in,
    asserts_of_pairs,
    called_names,
    callee_in,
    parsed_texts,
    readings,
    signature_of,
)
from .native_formats import from_listed, from_native, from_verl
from .native_row import NativeRow, Row, json_of, list_of, parsed, text_of
from .stdin_rows import from_codecontests, input_asserts, is_python

UNLEAKED_PRELUDE = "import itertools, logging, math, operator, os, random, re, sys, time\n"
"""Standard modules that functions of UnLeakedTestBench use without importing them."""
NODES = "A test writes linked lists as list_node([1, 2]) and trees as tree_node([1, None, 2]), level by level."
"""A sentence after the statement of a question about lists or trees."""
_MOST_READINGS = 12
"""Readings of a row after which no further solution is read. There may be hundreds, and each may cost a run of all
tests."""


@dataclass(frozen=True)
class Adapter:
    """The reader of a dataset's rows."""

    columns: str
    """Names of columns, separated by blanks. All must exist, so they also tell which dataset a file is."""
    convert: Callable[[Row], NativeRow]
    """Raises ``RowError``."""

    @property
    def needs(self) -> set[str]:
        return set(self.columns.split())


def from_mbpp(row: Row) -> NativeRow:
    """MBPP: ``task_id, text, code, test_list``. The sanitized set and MBPP+ call the statement ``prompt``.

    The statement does not name the function, so the prompt adds its name and parameters. It is the function that the
    first test calls. Tests that use ``test_setup_code`` are dropped: their arguments are objects of the reference's own
    classes and no literals.
    """
    reference = text_of(row, "code").replace("\r\n", "\n")
    texts = list_of(row, "test_list")
    defined = definitions(reference)
    calls = [call for text in texts for call in called_names(text)]
    entry = next((call for call in calls if call in defined), None)
    if entry is None:
        raise RowError("test_list", f"no test calls a function that 'code' defines; the tests call {calls}")
    statement = text_of(row, "text" if "text" in row else "prompt")
    native = NativeRow(
        id=f"MBPP/{row.get('task_id')}",
        prompt=f"{statement}\n\nName the function `{signature_of(reference, entry)}`.",
        reference=reference,
        entry_points=(entry,),
        data_source="mbpp",
        **asserts_in(parsed_texts(texts), defined),
    )
    return _with_plus_tests(row, native, entry)


def from_humaneval(row: Row) -> NativeRow:
    """HumanEval: ``task_id, prompt, entry_point, canonical_solution, test``. The solution is a function's body."""
    native = _with_check(row, prompt=text_of(row, "prompt"), data_source="humaneval")
    return replace(native, reference=native.prompt + text_of(row, "canonical_solution"))


def from_mbpp_plus(row: Row) -> NativeRow:
    """The MBPP+ file of EvalPlus's package. It has no results of its inputs, so only ``assertion`` has tests."""
    inputs = [*(row.get("base_input") or ()), *(row.get("plus_input") or ())]
    native = _with_check({**row, "test": row.get("assertion")}, prompt=text_of(row, "prompt"), data_source="mbppplus")
    num_dropped = max(0, len(inputs) - len(native.tests))
    return replace(native, reference=text_of(row, "canonical_solution"), num_dropped_tests=num_dropped)


def from_leetcode(row: Row) -> NativeRow:
    """LeetCodeDataset: ``task_id, query, prompt, completion, entry_point, test``. Its ``prompt`` is a prelude."""
    native = _with_check(row, prompt=text_of(row, "query"), data_source="leetcode")
    if any(name in text for name in NODE_NAMES for text in native.tests):
        native = replace(native, prompt=f"{native.prompt}\n\n{NODES}")
    return replace(native, reference=text_of(row, "completion"), prelude=text_of(row, "prompt"))


def _with_check(row: Row, *, prompt: str, data_source: str) -> NativeRow:
    """A native row without a reference, from a row whose tests are ``def check(candidate)``."""
    entry = text_of(row, "entry_point")
    called = {"test": text_of(row, "test").replace("candidate(", f"{entry}(")}
    root = entry.split("(")[0].split(".")[0]
    native = NativeRow(
        id=row.get("task_id"),
        prompt=prompt,
        entry_points=(root,),
        data_source=data_source,
        **asserts_in(parsed(called, "test"), {root}),
    )
    return _with_plus_tests(row, native, entry)


def _with_plus_tests(row: Row, native: NativeRow, entry: str) -> NativeRow:
    """Replace the tests if ``test`` has lists of inputs and results, as in the hub's HumanEval+ and MBPP+."""
    if not all(mark in str(row.get("test")) for mark in ("def assertion(", "inputs = [", "results = [")):
        return native
    check = EvalPlusCheck.read(parsed(row, "test"), declared_name=entry)
    return replace(native, data_source=f"{native.data_source}plus", **check.tests())


def from_kodcode(row: Row) -> NativeRow:
    """KodCode: ``question_id, question, solution, test``. The tests are a pytest or unittest module.

    The prompt declares all functions of the solution that tests call, since ``test_info`` names one of them at most.
    """
    reference, module = text_of(row, "solution"), parsed(row, "test")
    defined = definitions(reference)
    silent = {name for name, entry in Interface.of(reference).entry_points.items() if entry.returns_nothing}
    kind, tests = Kind.FUNCTIONS, asserts_in(module, defined)
    in_place = asserts_in(module, silent, in_place=silent)
    if len(in_place["tests"]) > len(tests["tests"]):
        kind, tests = Kind.IN_PLACE, in_place
    called = {name for test in tests["tests"] for name in called_names(test)}
    names = tuple(name for name in defined if name in called or not called)
    declarations = []
    for name in names:
        signature = signature_of(reference, name)
        keyword = "class" if "..." in signature else "def"
        declarations.append(f"`{keyword} {signature}:`")
    return NativeRow(
        id=row.get("question_id"),
        prompt=f"{text_of(row, 'question')}\n\nDeclare {' and '.join(declarations)}.",
        reference=reference,
        entry_points=names,
        data_source="kodcode",
        kind=kind,
        **tests,
    )


def from_unleaked(row: Row) -> NativeRow:
    """UnLeakedTestBench: ``task_id, func_name, prompt, code, test_list`` (a list, or its text).

    Most of the set's own asserts fail on ``code``. They are kept, since the oracle decides. The functions were cut out
    of files, and 24 of the 200 lost their imports; the prelude has these.
    """
    raw = row.get("test_list")
    try:
        texts = ast.literal_eval(raw) if isinstance(raw, str) else list_of(row, "test_list")
    except (ValueError, SyntaxError) as error:
        raise RowError("test_list", f"must be a list of asserts or its text: {error}") from error
    entry = text_of(row, "func_name")
    reference = text_of(row, "code")
    return NativeRow(
        id=f"ULT/{row.get('task_id')}",
        prompt=f"{text_of(row, 'prompt')}\n\nName the function `{signature_of(reference, entry)}`.",
        reference=reference,
        entry_points=(entry,),
        prelude=UNLEAKED_PRELUDE,
        data_source="unleaked",
        **asserts_in(parsed_texts(map(str, texts)), {entry}),
    )


def from_evalplus(row: Row) -> NativeRow:
    """HumanEval+ and MBPP+ as one parquet file: ``problem, GT_code, test, extra_info``.

    ``GT_code`` is a program (MBPP+) or a function's body that continues ``problem`` (HumanEval+). ``test`` compares two
    lists, ``inputs`` and ``results``, pair by pair.
    """
    return evalplus_row(row)[0]


def evalplus_row(row: Row) -> tuple[NativeRow, EvalPlusCheck]:
    """The row of :func:`from_evalplus` with its ``check``. RowError: it cannot be read."""
    info = row.get("extra_info")
    if not isinstance(info, Mapping) or not info.get("function_name"):
        raise RowError("extra_info", "must be a mapping with 'function_name' and 'question_id'")
    check = EvalPlusCheck.read(parsed(row, "test"), declared_name=str(info["function_name"]))
    code = text_of(row, "GT_code")
    native = NativeRow(
        id=info.get("question_id"),
        prompt=text_of(row, "problem"),
        reference=code if check.entry in definitions(code) else text_of(row, "problem") + code,
        entry_points=(check.entry,),
        prelude=info.get("imports") or "",
        data_source=row.get("data_source") or "evalplus",
        **check.tests(),
    )
    return native, check


def from_taco(row: Row) -> NativeRow:
    """TACO and APPS: ``question, solutions, starter_code, input_output``. The second and the last are JSON texts.

    If ``input_output`` names no function, programs read standard input.

    The reference is the first solution that is Python 3 and defines the function, since the sets have Python 2 too.
    Other solutions and other ``readings`` of the answers are alternatives. TACO has no ids; they are digests of the
    questions.
    """
    cases = json_of(row, "input_output")
    if not isinstance(cases, Mapping):
        raise RowError("input_output", f"must be a mapping, got {type(cases).__name__}")
    name, inputs, outputs = cases.get("fn_name"), cases.get("inputs") or [], cases.get("outputs") or []
    solutions = [text.replace("\r\n", "\n") for text in json_of(row, "solutions") if isinstance(text, str)]
    question, starter = text_of(row, "question"), str(row.get("starter_code") or "").rstrip()
    given = f"Complete this code:\n```python\n{starter}\n```" if starter else f"Name the function `{name}`."
    source = "taco" if row.get("problem_id") is None else "apps"
    digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    native = NativeRow(
        id=f"{source.upper()}/{digest if source == 'taco' else row['problem_id']}",
        prompt=f"{question.rstrip()}\n\n{given}" if name else question,
        prelude=SITES_PRELUDE,
        data_source=source,
        kind=Kind.FUNCTIONS if name else Kind.STDIN,
    )
    candidates: list[NativeRow] = []
    readings_of_tests = [input_asserts(inputs, outputs)]
    for text in solutions:
        if len(candidates) >= _MOST_READINGS:
            break
        if name:
            callee = callee_in(text, str(name))
            readings_of_tests = [asserts_of_pairs(callee, inputs, answers) for answers in readings(outputs) if callee]
        elif not is_python(text):
            continue
        for tests, num_dropped in readings_of_tests:
            candidates.append(replace(native, reference=text, tests=tests, num_dropped_tests=num_dropped))
    if not candidates:
        raise RowError("solutions", f"none of {len(solutions)} is Python 3 and fits fn_name={name!r} of input_output")
    return replace(candidates[0], alternatives=tuple(candidates[1:]))


ADAPTERS = {
    "native": Adapter("id prompt reference", from_native),
    "listed": Adapter("id prompt oracle", from_listed),
    "evalplus": Adapter("problem GT_code test extra_info", from_evalplus),
    "leetcode": Adapter("task_id query prompt completion entry_point test", from_leetcode),
    "humaneval": Adapter("task_id prompt canonical_solution entry_point test", from_humaneval),
    "mbpp_plus": Adapter("task_id prompt canonical_solution entry_point assertion", from_mbpp_plus),
    "kodcode": Adapter("question_id question solution test", from_kodcode),
    "mbpp": Adapter("task_id text code test_list", from_mbpp),
    "unleaked": Adapter("task_id func_name prompt code test_list", from_unleaked),
    "mbpp_sanitized": Adapter("task_id prompt code test_list", from_mbpp),
    "taco": Adapter("question solutions starter_code input_output", from_taco),
    "verl": Adapter("prompt reward_model", from_verl),
    "codecontests": Adapter("name description public_tests solutions incorrect_solutions", from_codecontests),
}
"""All adapters, in the order in which ``adapter="auto"`` tries them."""
