"""Negative controls of a question's tests: programs that solve nothing.

If such a program passes all tests of a question, these tests prove nothing.
"""

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from ..cases.case import Kind
from ..cases.condition import compared
from ..cases.reference_interface import PARSE_ERRORS, parse_untrusted
from ..errors import ValueFormatError
from ..judge.request import JudgeRequest
from ..judge.verdict import CandidateVerdict

_KEPT = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ALIASES = ast.Lambda | ast.Name | ast.Attribute
"""Values of a constant that may be the solution itself. Other constants of a reference stay, because the defaults of
its parameters may use them."""
_FIRST, _ALL = "$first", "$all"
"""Placeholders in the value that a function returns: its first parameter, and a tuple of all parameters."""
_EXAMPLE = re.compile(r"\b(\w+\(.{0,400}\))\s*(?:==|[-=]+>|[→➞:]|\breturns?\b|\n)\s*(\S.*?)[.;]?\s*$", re.MULTILINE)
"""A call with its value in a prompt: ``f(1) == 2``, ``>>> f(1)`` and 2 on the next line, ``f(1) -> 2``, ..."""


def control_programs(request: JudgeRequest, prompt: str) -> dict[str, str]:
    """Make programs that do not solve the question of a request.

    Their functions and methods have the reference's names and parameters. They return None, their first argument, the
    most frequent expected value of the tests, or the values of the prompt's own examples. There is no program that
    raises or lacks the functions, because it would pass no valid test.

    Args:
        request: the question. Its candidate is ignored.
        prompt: the question as the Code LLM sees it.

    Returns:
        Maps the name of each program to its source.
    """
    expected = Counter(value for _, value in _comparisons(chain(*request.suites)))
    constant = max(expected, key=expected.__getitem__, default="None")
    if request.kind == Kind.STDIN:
        echo = "import sys\nprint(sys.stdin.read())"
        return {
            "empty": "",
            "echo": echo,
            "constant": f"print({constant})",
        }
    values = {
        "stub": "None",
        "echo": _FIRST,
        "constant": constant,
    }
    if table := _example_values(prompt):
        values["examples"] = f"{table}.get(repr({_ALL}))"
    return {name: _returning(request.reference, value) for name, value in values.items()}


def passes_all(verdict: CandidateVerdict) -> bool:
    """Return True if there are valid tests and the program passes all of them, as a solution does."""
    outcomes = [case.outcome for suite in verdict.suites for case in suite.cases]
    return bool(outcomes) and not any(outcome.failed for outcome in outcomes)


def _comparisons(texts: Iterable[str]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the result that each assert compares, and the source of the expected value. Skip other texts."""
    for text in texts:
        with contextlib.suppress(ValueFormatError, *PARSE_ERRORS):
            match parse_untrusted(text.strip()).body:
                case [ast.Assert(condition), *_]:
                    result, value, _ = compared(condition)
                    yield result, ast.unparse(value)


def _example_values(prompt: str) -> dict[str, object]:
    """Map the ``repr`` of each example's arguments in a prompt to the example's value."""
    table = {}
    examples = (f"assert {call} == {value}" for call, value in _EXAMPLE.findall(prompt))
    for call, value in _comparisons(examples):
        # A signature looks like an example too. Its names are no literals, and they would make the whole table invalid.
        with contextlib.suppress(TypeError, *PARSE_ERRORS):
            if isinstance(call, ast.Call):
                table[repr(ast.literal_eval(ast.Tuple(call.args)))] = ast.literal_eval(value)
    return table


def _returning(reference: str, value: str) -> str:
    """Return the reference with the body of each function replaced, or "" if it is too deeply nested to be written.

    Args:
        reference: source of the reference.
        value: expression that every function returns, with placeholders.
    """
    try:
        tree = parse_untrusted(reference)
        tree.body = [
            node
            for node in tree.body
            if isinstance(node, _KEPT) or (isinstance(node, ast.Assign) and not isinstance(node.value, _ALIASES))
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                parameters = [parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args)]
                names = [name for name in parameters if name not in ("self", "cls")]
                first = names[0] if names else "None"
                every = "".join(f"{name}, " for name in names)
                returned = value.replace(_FIRST, first).replace(_ALL, f"({every})")
                # An `__init__` that returned a value would raise, and then no method could be called.
                body = "pass" if node.name == "__init__" else f"return {returned}"
                node.body = parse_untrusted(body).body
        return ast.unparse(tree)
    except PARSE_ERRORS:
        return ""
