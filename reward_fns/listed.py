"""The oracle of a question without a reference solution: a program that looks the listed outputs up.

It answers the listed inputs and no others, so it can judge programs by the listed tests, and no suite of a Test LLM.
"""

import ast
import contextlib
import json
import keyword
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .sandbox_seam import (
    INPUT_ENTRY,
    PARSE_ERRORS,
    Kind,
    ValueFormatError,
    asserted,
    compared,
    defined_names,
    parse_untrusted,
)

LISTED_OUTPUTS = "# There is no reference solution: this program looks the listed outputs up.\n"
"""The first line of such a reference."""

SITES_PRELUDE = (
    "import bisect, collections, copy, functools, heapq, itertools, math, operator, random, re, string, sys\n"
    "from collections import *\nfrom functools import *\nfrom heapq import *\nfrom itertools import *\n"
    "from typing import *\n"
)
"""What the sites that contest sets were collected from import before a solution."""
# `inf` and `nan` are how `repr` writes what JSON calls Infinity and NaN.
_TABLE = f"""{LISTED_OUTPUTS}import sys
from math import inf, nan

_listed_answers = {{}}

def _listed_key(*args, **named):
    return repr((args, named))

"""


def with_listed_outputs(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same columns with ``tests``, and with a ``reference`` made of their answers where there is none.

    Args:
        given: ``tests``, asserts of the form ``f(literals) == literal``; or the columns of verl's ``prime_code``,
            ``inputs`` and ``outputs``: lists of arguments and their answers where ``fn_name`` stands, or their JSON,
            an argument a line; otherwise standard inputs and printed outputs, as texts or lists of lines. An answer is
            taken out of a list of its own if each of them stands in one. Tests of another form are left out.

    Raises:
        ValueError: inputs and outputs are no pairs, or no test has that form.
    """
    columns = {"kind": Kind.FUNCTIONS, **given}
    inputs, outputs, name = (columns.pop(column, None) for column in ("inputs", "outputs", "fn_name"))
    if inputs is not None:
        columns |= _columns_of_pairs(inputs, outputs, name)
        if name is not None:
            columns.setdefault("prelude", SITES_PRELUDE)
    if not columns.get("reference"):
        tests = columns.get("tests") or ()
        columns |= _table([tests] if isinstance(tests, str) else tests, reads_input=columns["kind"] == Kind.STDIN)
    return columns


def _table(tests: Iterable[str], *, reads_input: bool) -> dict[str, Any]:
    answers: list[str] = []
    names: dict[str, str] = {}
    kept: dict[str, None] = {}
    for text, called, arguments, answer in _lookups(tests):
        kept[text] = None
        answers.append(f"_listed_answers[{called!r}, _listed_key{arguments}] = {answer}\n")
        # A lambda, since a prompt shows no parameters of one: only the statement knows them.
        names[called] = f"{called} = lambda *args, **named: _listed_answers[{called!r}, _listed_key(*args, **named)]\n"
    if not answers:
        raise ValueError("without 'reference' it needs tests of the form f(literals) == literal, or inputs and outputs")
    # By bytes: text would turn each end of a line into a plain one.
    printed = f"print(_listed_answers[{INPUT_ENTRY!r}, _listed_key(sys.stdin.buffer.read().decode())], end='')\n"
    reference = "".join([_TABLE, *answers, *([printed] if reads_input else names.values())])
    asked = {} if reads_input else {"entry_points": list(names)}
    return asked | {"reference": reference, "tests": list(kept)}


def with_function(program: str, names: Collection[str]) -> str:
    """A program whose class ``Solution`` has a method of one of the names, and no function, with that function.

    ``prime_code`` calls the method, of an object that is made for each call.
    """
    with contextlib.suppress(*PARSE_ERRORS):
        module = parse_untrusted(program)
        missing = set(names) - defined_names(module)
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name == "Solution":
                # A lambda, because an object that was made once would keep the state of earlier calls.
                methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                for name in sorted(missing & methods):
                    program += f"\n{name} = lambda *args, **named: Solution().{name}(*args, **named)"
    return program


def _columns_of_pairs(inputs: Any, outputs: Any, name: str | None) -> dict[str, Any]:
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise ValueError("'inputs' and 'outputs' must be lists of the same length")
    if name is None:
        pairs = zip(inputs, outputs, strict=True)
        tests = [f"assert {INPUT_ENTRY}({_text(given)!r}) == {_text(printed)!r}" for given, printed in pairs]
        return {"tests": tests, "kind": Kind.STDIN}
    if all(isinstance(one, str) for one in (*inputs, *outputs)):  # as verl's prime_code has them
        try:
            inputs = [[json.loads(line) for line in given.split("\n")] for given in inputs]
            outputs = [json.loads(answer) for answer in outputs]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"texts in 'inputs' and 'outputs' of fn_name={name!r} must be JSON: {error}") from error
    # All of them, since a function may well return a list of one item for some inputs.
    if all(isinstance(answer, list) and len(answer) == 1 for answer in outputs):
        outputs = [answer[0] for answer in outputs]  # as the scorers of APPS, TACO and prime_code read them
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"'fn_name' must be the name of a function, got {name!r}")
    if odd := [given for given in inputs if not isinstance(given, list)]:
        raise ValueError(f"'inputs' of fn_name={name!r} must be lists of arguments, got {odd[0]!r:.60}")
    calls = [f"{name}({', '.join(map(repr, given))})" for given in inputs]
    tests = [f"assert {call} == {answer!r}" for call, answer in zip(calls, outputs, strict=True)]
    return {"tests": tests}


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _lookups(tests: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    """The text, the function's name, the arguments in parentheses and the answer of each test that has the form."""
    for text in tests:
        with contextlib.suppress(*PARSE_ERRORS, ValueFormatError):
            for _, condition in asserted(parse_untrusted(text), only_tests=False):
                call, answer, _ = compared(condition)
                used = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
                # An unknown name would stop the whole table from loading.
                match call:
                    case ast.Call(ast.Name(called)) if used <= {called, "inf", "nan"}:
                        yield text, called, ast.unparse(call).removeprefix(called), ast.unparse(answer)
