"""The oracle of a question without a reference solution: a program with a table of the dataset's outputs.

The oracle knows only the inputs in the table. So it can judge programs by the dataset's tests, but it cannot judge the
suites of a Test LLM.
"""

import ast
import contextlib
import json
import keyword
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sandbox import Kind, ValueFormatError
from sandbox.text import INPUT_ENTRY, PARSE_ERRORS, asserted, compared, defined_names, parse_program, parse_untrusted

LISTED_OUTPUTS = "# There is no reference solution: this program looks the listed outputs up.\n"
"""The first line of a program with such a table."""

SITES_PRELUDE = (
    "import bisect, collections, copy, functools, heapq, itertools, math, operator, random, re, string, sys\n"
    "from collections import *\nfrom functools import *\nfrom heapq import *\nfrom itertools import *\n"
    "from typing import *\n"
)
"""Imports that contest sites run before a solution; programs in contest data sets rely on these imports."""
# The table needs the names `inf` and `nan`, because `repr` writes JSON's Infinity and NaN as these names.
_TABLE = f"""{LISTED_OUTPUTS}import sys
from math import inf, nan

_listed_answers = {{}}

def _listed_key(*args, **named):
    return repr((args, named))

"""


def with_listed_outputs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Add ``tests`` to the columns of a question. If ``reference`` is missing, make it from the tests' answers.

    Args:
        given: the columns, in one of two forms. In the first form, ``tests`` holds asserts of the form
            ``f(literals) == literal``; other tests are left out. The second form is verl's ``prime_code`` with
            ``inputs`` and ``outputs``. With ``fn_name``, each input is a list of arguments and each output is an
            answer. Both may also be JSON texts, with one argument per line. If every answer is a list of one item, the
            items are the answers. Without ``fn_name``, ``inputs`` are standard inputs and ``outputs`` are printed
            outputs, as texts or as lists of lines.

    Raises:
        ValueError: inputs and outputs do not form pairs, or no test has the form above.
    """
    columns = {"kind": Kind.FUNCTIONS, **given}
    inputs = columns.pop("inputs", None)
    outputs = columns.pop("outputs", None)
    name = columns.pop("fn_name", None)
    if inputs is not None:
        columns |= _columns_of_pairs(inputs, outputs, name)
        if name is not None:
            columns.setdefault("prelude", SITES_PRELUDE)
    if not columns.get("reference"):
        tests = columns.get("tests") or ()
        texts = [tests] if isinstance(tests, str) else tests
        columns |= _table(texts, reads_input=columns["kind"] == Kind.STDIN)
    return columns


def _table(tests: Iterable[str], *, reads_input: bool) -> dict[str, Any]:
    answers: list[str] = []
    names: dict[str, str] = {}
    kept: dict[str, None] = {}
    for text, called, arguments, answer in _lookups(tests):
        kept[text] = None
        answers.append(f"_listed_answers[{called!r}, _listed_key{arguments}] = {answer}\n")
        # The function's real parameters are unknown. A prompt would show the parameters of a `def`, but not those of a
        # lambda.
        names[called] = f"{called} = lambda *args, **named: _listed_answers[{called!r}, _listed_key(*args, **named)]\n"
    if not answers:
        raise ValueError(
            "without 'reference', tests of the form f(literals) == literal, or inputs and outputs, are needed"
        )
    columns: dict[str, Any] = {"tests": list(kept)}
    if reads_input:
        # The program reads bytes, because reading text would change the ends of lines.
        program = [f"print(_listed_answers[{INPUT_ENTRY!r}, _listed_key(sys.stdin.buffer.read().decode())], end='')\n"]
    else:
        program = list(names.values())
        columns["entry_points"] = list(names)
    columns["reference"] = "".join([_TABLE, *answers, *program])
    return columns


def with_function(program: str, names: Collection[str]) -> str:
    """Add a function for each of ``names`` that the program defines only as a method of its class ``Solution``.

    Each call creates a new ``Solution`` object, as in ``prime_code``.
    """
    with contextlib.suppress(*PARSE_ERRORS):
        module = parse_program(program)
        missing = set(names) - defined_names(module)
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name == "Solution":
                methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                for name in sorted(missing & methods):
                    # An object that serves all calls would keep state from earlier calls.
                    program += f"\n{name} = lambda *args, **named: Solution().{name}(*args, **named)"
    return program


def _columns_of_pairs(inputs: Any, outputs: Any, name: str | None) -> dict[str, Any]:
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise ValueError("'inputs' and 'outputs' must be lists of the same length")
    tests = []
    if name is None:
        for given, printed in zip(inputs, outputs, strict=True):
            tests.append(f"assert {INPUT_ENTRY}({_text(given)!r}) == {_text(printed)!r}")
        return {"tests": tests, "kind": Kind.STDIN}
    if all(isinstance(value, str) for value in (*inputs, *outputs)):  # verl's prime_code has JSON texts
        try:
            inputs = [[json.loads(line) for line in given.split("\n")] for given in inputs]
            outputs = [json.loads(answer) for answer in outputs]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"texts in 'inputs' and 'outputs' of fn_name={name!r} must be JSON: {error}") from error
    # APPS, TACO and prime_code put each answer into a list. If only some answers are lists of one item, the function
    # itself returns these lists, so they stay as they are.
    if all(isinstance(answer, list) and len(answer) == 1 for answer in outputs):
        outputs = [answer[0] for answer in outputs]
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"'fn_name' must be the name of a function, got {name!r}")
    if odd := [given for given in inputs if not isinstance(given, list)]:
        raise ValueError(f"'inputs' of fn_name={name!r} must be lists of arguments, got {odd[0]!r:.60}")
    for arguments, answer in zip(inputs, outputs, strict=True):
        call = f"{name}({', '.join(map(repr, arguments))})"
        tests.append(f"assert {call} == {answer!r}")
    return {"tests": tests}


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _lookups(tests: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yields four texts for each usable test: the test, the function's name, the arguments in parentheses, the
    answer."""
    for text in tests:
        with contextlib.suppress(*PARSE_ERRORS, ValueFormatError):
            for _, condition in asserted(parse_untrusted(text), only_tests=False):
                call, answer, _ = compared(condition)
                used = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
                # One test with an unknown name would keep the whole table from loading.
                match call:
                    case ast.Call(ast.Name(called)) if used <= {called, "inf", "nan"}:
                        arguments = ast.unparse(call).removeprefix(called)
                        yield text, called, arguments, ast.unparse(answer)
