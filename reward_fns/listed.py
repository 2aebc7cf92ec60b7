"""The oracle of a question without a reference solution: a program with a table of the dataset's outputs.

The oracle knows only the inputs in the table. So it can judge programs by the dataset's tests, but it cannot judge the
suites of a Test LLM.
"""

import ast
import contextlib
import json
import keyword
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sandbox import Kind, ValueFormatError
from sandbox.text import (
    FROM_JSON,
    IN_LIST,
    INPUT_ENTRY,
    LISTED_OUTPUTS,
    PARSE_ERRORS,
    asserted,
    compared,
    parse_untrusted,
    spell,
)

logger = logging.getLogger(__name__)

SOLUTION = "class Solution"
_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json"),
)
# The table needs the names `inf` and `nan`, because `repr` writes JSON's Infinity and NaN as these names.
_TABLE = f"""{LISTED_OUTPUTS}import sys
from math import inf, nan

_listed_answers = {{}}

def _listed_key(*args, **named):
    return repr((args, named))

def _listed_into(first, answer):
    if type(first) is not type(answer):
        raise TypeError(f"the listed answer is a {{type(answer).__name__}}, not a {{type(first).__name__}}")
    first.clear()
    (first.extend if isinstance(first, list) else first.update)(answer)

"""
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def sites_prelude(name: str | None = None) -> str:
    """Return the source that verl's ``prime_code`` runs before a program. Programs of contest sites rely on it.

    Args:
        name: the function that a program must define. Without its definition, the name has no value.
    """
    # The builtins come late, because `pow` and `open` of other modules would hide them.
    lines = [f"from {module} import *" for module in (*_MODULES, "builtins", "typing")]
    lines += [f"import {', '.join(_MODULES)}", "sys.setrecursionlimit(600_000)"]
    if name:
        lines.append(f"globals().pop({name!r}, None)")  # `gcd`, `reduce` and others are in the modules
    return "\n".join(lines) + "\n"


def with_listed_outputs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Add ``tests`` to the columns of a question. If ``reference`` is missing, make it from the tests' answers.

    Args:
        given: the columns, in one of two forms. In the first form, ``tests`` holds asserts of the form
            ``f(literals) == literal``; other tests are left out. The second form is verl's ``prime_code`` with
            ``inputs`` and ``outputs``. With ``fn_name``, each input is a list of arguments and each output is an
            answer. Both may also be JSON texts, with one argument per line. If every answer is a list of one item, the
            item and the list are both right. Without ``fn_name``, ``inputs`` are standard inputs and ``outputs`` are
            printed outputs, as texts or as lists of lines.

    Raises:
        ValueError: inputs and outputs do not form pairs, or no test has the form above.
    """
    columns = {"kind": Kind.FUNCTIONS, **given}
    inputs = columns.pop("inputs", None)
    outputs = columns.pop("outputs", None)
    name = columns.pop("fn_name", None) or None
    has_reference = bool(columns.get("reference"))
    if inputs is not None:
        pairs = _pairs(inputs, outputs)
        columns.setdefault("prelude", sites_prelude(name))
        if name is None:
            columns["kind"] = Kind.STDIN
            columns["tests"] = [f"assert {INPUT_ENTRY}({_text(one)!r}) == {_text(other)!r}" for one, other in pairs]
        else:
            columns["tests"], losses = _calls(pairs, name, in_place=columns["kind"] == Kind.IN_PLACE)
            if not has_reference:
                columns["checker"] = "+".join(filter(None, [columns.get("checker"), *losses]))
    if not has_reference:
        tests = columns.get("tests") or ()
        columns |= _table([tests] if isinstance(tests, str) else tests, Kind(columns["kind"]))
    return columns


def _table(tests: Sequence[str], kind: Kind) -> dict[str, Any]:
    answers: list[str] = []
    names: dict[str, str] = {}
    kept: dict[str, None] = {}
    for text, called, arguments, answer in _lookups(tests):
        kept[text] = None
        answers.append(f"_listed_answers[{called!r}, _listed_key{arguments}] = {answer}\n")
        # The function's real parameters are unknown. A prompt would show the parameters of a `def`, but not those of a
        # lambda.
        answer = f"_listed_answers[{called!r}, _listed_key(*args, **named)]"
        if kind is Kind.IN_PLACE:
            answer = f"_listed_into(args[0], {answer})"
        names[called] = f"{called} = lambda *args, **named: {answer}\n"
    if not answers:
        raise ValueError(
            "without 'reference', tests of the form f(literals) == literal, or inputs and outputs, are needed"
        )
    if lost := [text for text in tests if text not in kept]:
        logger.warning("%d of %d tests cannot be looked up, and are left out: %.200s", len(lost), len(tests), lost[0])
    columns: dict[str, Any] = {"tests": list(kept)}
    if kind is Kind.STDIN:
        # The program reads bytes, because reading text would change the ends of lines.
        program = [f"print(_listed_answers[{INPUT_ENTRY!r}, _listed_key(sys.stdin.buffer.read().decode())], end='')\n"]
    else:
        program = list(names.values())
        columns["entry_points"] = list(names)
    columns["reference"] = "".join([_TABLE, *answers, *program])
    return columns


def with_function(program: str, names: Iterable[str]) -> str:
    """Let a method of the program's class ``Solution`` take the place of each function that the program lacks.

    Each call creates a new ``Solution`` object, as in ``prime_code``, because a shared object would keep state.
    """
    for name in sorted(names):
        if SOLUTION in program:
            program += (
                f"\nif not callable(globals().get({name!r})):\n"
                f"    {name} = hasattr(globals().get('Solution'), {name!r}) and ("
                f"lambda *args, **named: Solution().{name}(*args, **named))"
            )
    return program


def _pairs(inputs: Any, outputs: Any) -> list[tuple[Any, Any]]:
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise ValueError("'inputs' and 'outputs' must be lists of the same length")
    return list(zip(inputs, outputs, strict=True))


def _calls(pairs: list[tuple[Any, Any]], name: str, *, in_place: bool) -> tuple[list[str], list[str]]:
    """Return the tests of a function, and what its answers may have lost on their way through JSON."""
    if all(isinstance(text, str) for pair in pairs for text in pair):  # verl's prime_code has JSON texts
        try:
            pairs = [([*map(json.loads, given.strip("\n").split("\n"))], json.loads(answer)) for given, answer in pairs]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"texts in 'inputs' and 'outputs' of fn_name={name!r} must be JSON: {error}") from error
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"'fn_name' must be the name of a function, got {name!r}")
    if odd := [given for given, _ in pairs if not isinstance(given, list)]:
        raise ValueError(f"'inputs' of fn_name={name!r} must be lists of arguments, got {odd[0]!r:.60}")
    # APPS, TACO and prime_code put each answer into a list. If only some answers are lists of one item, the function
    # itself returns these lists, so they stay as they are.
    in_lists = all(isinstance(answer, list) and len(answer) == 1 for _, answer in pairs)
    if in_place:  # the answer is the argument after the call, so it has the argument's type
        in_lists = in_lists and all([*map(type, answer)] == [*map(type, given[:1])] for given, answer in pairs)
    tests = []
    for given, answer in pairs:
        arguments = ", ".join([*map(spell, map(_with_numbers, given[:1])), *map(spell, given[1:])])
        tests.append(f"assert {name}({arguments}) == {spell(answer[0] if in_lists else answer)}")
    return tests, [FROM_JSON, IN_LIST] if in_lists else [FROM_JSON]


def _with_numbers(argument: Any) -> Any:
    """Turn the keys of a dict back into integers if JSON may have turned them into texts. prime_code does the same."""
    if isinstance(argument, dict) and all(_INTEGER.fullmatch(str(key)) for key in argument):
        return {int(key): value for key, value in argument.items()}
    return argument


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
                    case ast.Call(ast.Name(called)) if used <= {called, "float", "inf", "nan"}:
                        arguments = ast.unparse(call).removeprefix(called)
                        yield text, called, arguments, ast.unparse(answer)
