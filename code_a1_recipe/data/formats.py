"""Conversion of rows of public code problem sets to the recipe's native columns.

An adapter consists of the names of the columns that it needs and a function that converts a row.
``reader.load_questions`` takes the first entry of ``ADAPTERS`` whose columns are all in the file.

Tests become ``assert f(literals) == literal``, the only form that the judge accepts. Tests that cannot be rewritten are
left out and counted in ``NativeRow.num_dropped_tests``. data/README.md lists their kinds.
"""

import ast
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reward_fns.listed import sites_prelude
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
"""Imports that functions of UnLeakedTestBench need but do not have."""
NODES = "A test writes linked lists as list_node([1, 2]) and trees as tree_node([1, None, 2]), level by level."
"""Sentence that is added to the statement of a question about linked lists or trees."""
_MOST_READINGS = 12
"""Number of readings of a row after which no further solution is tried. A row may have hundreds of solutions, and each
reading may cost a run of all tests."""


@dataclass(frozen=True)
class Adapter:
    """Converter of a dataset's rows, with the columns that it needs."""

    columns: str
    """Column names, separated by blanks. A file belongs to the dataset if it has all these columns."""
    convert: Callable[[Row], NativeRow]
    """Raises ``RowError`` if the row cannot be converted."""

    @property
    def needs(self) -> set[str]:
        return set(self.columns.split())


def from_mbpp(row: Row) -> NativeRow:
    """Convert a row of MBPP: ``task_id, text, code, test_list``. In the sanitized set, ``text`` is called ``prompt``.

    The statement does not name the function. So the prompt adds the name and the parameters of the function that the
    first test calls. Tests that use ``test_setup_code`` are dropped, because their arguments are objects of the
    reference's own classes instead of literals.
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
    """Convert a row of HumanEval: ``task_id, prompt, entry_point, canonical_solution, test``.

    ``canonical_solution`` is the body of the function whose head is at the end of ``prompt``.
    """
    native = _with_check(row, prompt=text_of(row, "prompt"), data_source="humaneval")
    return replace(native, reference=native.prompt + text_of(row, "canonical_solution"))


def from_mbpp_plus(row: Row) -> NativeRow:
    """Convert a row of MbppPlus.jsonl, the MBPP+ file of EvalPlus's package.

    The file lists inputs without their results. So the tests come from the column ``assertion`` alone.
    """
    num_inputs = sum(len(row.get(column) or ()) for column in ("base_input", "plus_input"))
    with_test = {**row, "test": row.get("assertion")}
    native = _with_check(with_test, prompt=text_of(row, "prompt"), data_source="mbppplus")
    return replace(
        native,
        reference=text_of(row, "canonical_solution"),
        num_dropped_tests=max(0, num_inputs - len(native.tests)),
    )


def from_leetcode(row: Row) -> NativeRow:
    """Convert a row of LeetCodeDataset: ``task_id, query, prompt, completion, entry_point, test``.

    The column ``prompt`` holds imports and helpers, so it becomes the prelude.
    """
    native = _with_check(row, prompt=text_of(row, "query"), data_source="leetcode")
    tests = " ".join(native.tests)
    if any(name in tests for name in NODE_NAMES):
        native = replace(native, prompt=f"{native.prompt}\n\n{NODES}")
    return replace(native, reference=text_of(row, "completion"), prelude=text_of(row, "prompt"))


def _with_check(row: Row, *, prompt: str, data_source: str) -> NativeRow:
    """Convert a row whose tests are a function ``check(candidate)``. The native row has no reference yet."""
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
    """Replace the tests if ``test`` has lists of inputs and results, as the hub's HumanEval+ and MBPP+ do."""
    source = str(row.get("test"))
    if not all(mark in source for mark in ("def assertion(", "inputs = [", "results = [")):
        return native
    check = EvalPlusCheck.read(parsed(row, "test"), declared_name=entry)
    return replace(native, data_source=f"{native.data_source}plus", **check.tests())


def from_kodcode(row: Row) -> NativeRow:
    """Convert a row of KodCode: ``question_id, question, solution, test``. The tests are a pytest or unittest module.

    The prompt declares every function of the solution that a test calls, because ``test_info`` names at most one.
    """
    reference, module = text_of(row, "solution"), parsed(row, "test")
    defined = definitions(reference)
    entries = Interface.of(reference).entry_points
    silent = {name for name, entry in entries.items() if entry.returns_nothing}
    kind = Kind.FUNCTIONS
    tests = asserts_in(module, defined)
    in_place = asserts_in(module, silent, in_place=silent)
    if len(in_place["tests"]) > len(tests["tests"]):
        kind = Kind.IN_PLACE
        tests = in_place
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
    """Convert a row of UnLeakedTestBench: ``task_id, func_name, prompt, code, test_list`` (a list, or a list as text).

    Most asserts of the set fail on ``code``. Asserts that fail on ``code`` are kept, because the oracle decides which
    answers are right. The functions were cut out of larger files, and 24 of the 200 functions lost their imports in
    this way. The prelude adds these imports.
    """
    raw = row.get("test_list")
    try:
        texts = ast.literal_eval(raw) if isinstance(raw, str) else list_of(row, "test_list")
    except (ValueError, SyntaxError) as error:
        raise RowError("test_list", f"must be a list of asserts or its text: {error}") from error
    entry, reference = text_of(row, "func_name"), text_of(row, "code")
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
    """Convert a row of HumanEval+ and MBPP+ in one parquet file: ``problem, GT_code, test, extra_info``.

    In MBPP+, ``GT_code`` is a program. In HumanEval+, ``GT_code`` is the body of the function whose head is in
    ``problem``. ``test`` compares the lists ``inputs`` and ``results`` pair by pair.
    """
    return evalplus_row(row)[0]


def evalplus_row(row: Row) -> tuple[NativeRow, EvalPlusCheck]:
    """Convert a row as :func:`from_evalplus` does, and also return the row's ``check``.

    RowError: the row cannot be read.
    """
    info = row.get("extra_info")
    if not isinstance(info, Mapping) or not info.get("function_name"):
        raise RowError("extra_info", "must be a mapping with 'function_name' and 'question_id'")
    check = EvalPlusCheck.read(parsed(row, "test"), declared_name=str(info["function_name"]))
    code, problem = text_of(row, "GT_code"), text_of(row, "problem")
    native = NativeRow(
        id=info.get("question_id"),
        prompt=problem,
        reference=code if check.entry in definitions(code) else problem + code,
        entry_points=(check.entry,),
        prelude=info.get("imports") or "",
        data_source=row.get("data_source") or "evalplus",
        **check.tests(),
    )
    return native, check


def from_taco(row: Row) -> NativeRow:
    """Convert a row of TACO or APPS: ``question, solutions, starter_code, input_output``.

    The columns ``solutions`` and ``input_output`` are JSON. If ``input_output`` names no function, the programs read
    standard input.

    The reference is the first solution that is Python 3 and defines the function, because the sets have Python 2 too.
    Other solutions and other ``readings`` of the answers become alternatives. TACO has no ids, so an id is a digest of
    the question.
    """
    cases = json_of(row, "input_output")
    if not isinstance(cases, Mapping):
        raise RowError("input_output", f"must be a mapping, got {type(cases).__name__}")
    name = cases.get("fn_name")
    solutions = [text.replace("\r\n", "\n") for text in json_of(row, "solutions") if isinstance(text, str)]
    question = text_of(row, "question")
    source, identity = "apps", row.get("problem_id")
    if identity is None:
        source = "taco"
        identity = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    native = NativeRow(
        id=f"{source.upper()}/{identity}",
        prompt=f"{question.rstrip()}\n\n{_declaration(row, name)}" if name else question,
        prelude=sites_prelude(name),
        data_source=source,
        kind=Kind.FUNCTIONS if name else Kind.STDIN,
    )
    inputs, outputs = cases.get("inputs") or [], cases.get("outputs") or []
    printed = [] if name else [input_asserts(inputs, outputs)]
    candidates: list[NativeRow] = []
    for reference in solutions:
        if len(candidates) >= _MOST_READINGS:
            break
        tests_by_reading = printed if is_python(reference) else []
        if name and (callee := callee_in(reference, str(name))):
            tests_by_reading = [asserts_of_pairs(callee, inputs, answers) for answers in readings(outputs)]
        for tests, num_dropped in tests_by_reading:
            candidates.append(replace(native, reference=reference, tests=tests, num_dropped_tests=num_dropped))
    if not candidates:
        raise RowError("solutions", f"none of {len(solutions)} is Python 3 and fits fn_name={name!r} of input_output")
    first, *others = candidates
    return replace(first, alternatives=tuple(others))


def _declaration(row: Row, name: object) -> str:
    """Return a sentence with the function's name, and the starter code if the row has any."""
    starter = str(row.get("starter_code") or "").rstrip()
    if not starter:
        return f"Name the function `{name}`."
    return f"Complete this code:\n```python\n{starter}\n```"


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
