"""Negative controls for the tests of a question: programs that solve nothing.

If such a program passes all tests of a question, the tests prove nothing.
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
"""Kinds of values that may be the solution itself, as in ``f = lambda x: x``. A constant of the reference is removed if
it has such a value. Other constants stay, because the defaults of parameters may use them."""
_FIRST = "$first"
"""Placeholder in a returned value. It stands for the first parameter of the function."""
_ALL = "$all"
"""Placeholder in a returned value. It stands for a tuple of all parameters of the function."""
_EXAMPLE = re.compile(r"\b(\w+\(.{0,400}\))\s*(?:==|[-=]+>|[→➞:]|\breturns?\b|\n)\s*(\S.*?)[.;]?\s*$", re.MULTILINE)
"""Matches a call and its value in a prompt, as in ``f(1) == 2``, ``f(1) -> 2``, or ``>>> f(1)`` above a line with 2."""


def control_programs(request: JudgeRequest, prompt: str) -> dict[str, str]:
    """Make programs that do not solve the question of a request.

    The programs have the reference's functions and methods, with the same parameters but other bodies. In one program
    all functions return None, in another program their first argument, in a third program the most frequent expected
    value of the tests. A fourth program returns the value of the prompt's example with the same arguments. Programs
    that raise errors would be useless, because they fail every valid test.

    Args:
        request: the question. Its candidate is ignored.
        prompt: the question as the Code LLM sees it.

    Returns:
        Maps the name of each program to its source.
    """
    expected = Counter(value for _, value in _comparisons(chain(*request.suites)))
    constant = max(expected, key=expected.__getitem__, default="None")
    if request.kind == Kind.STDIN:
        return {
            "empty": "",
            "echo": "import sys\nprint(sys.stdin.read())",
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
    """Return True if the question has valid tests and the program passes all of them."""
    has_failed = [case.outcome.failed for suite in verdict.suites for case in suite.cases]
    return bool(has_failed) and not any(has_failed)


def _comparisons(texts: Iterable[str]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the compared expression and the source of the expected value of each assert. Skip other texts."""
    for text in texts:
        with contextlib.suppress(ValueFormatError, *PARSE_ERRORS):
            match parse_untrusted(text.strip()).body:
                case [ast.Assert(condition), *_]:
                    result, value, _ = compared(condition)
                    yield result, ast.unparse(value)


def _example_values(prompt: str) -> dict[str, object]:
    """Map the ``repr`` of the arguments of each example in a prompt to the value of the example."""
    table = {}
    examples = [f"assert {call} == {value}" for call, value in _EXAMPLE.findall(prompt)]
    for call, value in _comparisons(examples):
        # A function's signature looks like an example. For a signature, ``literal_eval`` raises an error, because names
        # of parameters are no literals.
        with contextlib.suppress(TypeError, *PARSE_ERRORS):
            if isinstance(call, ast.Call):
                arguments = ast.literal_eval(ast.Tuple(call.args))
                table[repr(arguments)] = ast.literal_eval(value)
    return table


def _returning(reference: str, value: str) -> str:
    """Return the reference with another body in each function, or "" if it is too deeply nested to be written.

    Args:
        reference: source of the reference.
        value: expression that every function returns; it may contain placeholders.
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
                node.body = parse_untrusted(_body(node, value)).body
        return ast.unparse(tree)
    except PARSE_ERRORS:
        return ""


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef, value: str) -> str:
    # If `__init__` returned a value, it would raise an error, and no method could be called.
    if function.name == "__init__":
        return "pass"
    parameters = [*function.args.posonlyargs, *function.args.args]
    names = [parameter.arg for parameter in parameters if parameter.arg not in ("self", "cls")]
    first = names[0] if names else "None"
    every = "".join(f"{name}, " for name in names)
    returned = value.replace(_FIRST, first)
    returned = returned.replace(_ALL, f"({every})")
    return f"return {returned}"
