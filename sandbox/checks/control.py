"""Negative controls of a question's tests: programs that solve nothing. Tests that one of them passes prove nothing."""

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
"""Values that may be the solution itself; other constants of a reference stay, since its signatures may name them."""
_FIRST, _ALL = "$first", "$all"
"""In a body of a function, its first parameter and all of them."""
_EXAMPLE = re.compile(r"\b(\w+\(.{0,400}\))\s*(?:==|[-=]+>|[→➞:]|\breturns?\b|\n)\s*(\S.*?)[.;]?\s*$", re.MULTILINE)
"""A call with its value in a prompt: ``f(1) == 2``, ``>>> f(1)`` and 2 on the next line, ``f(1) -> 2``, ..."""


def control_programs(request: JudgeRequest, prompt: str) -> dict[str, str]:
    """Programs by name that do not solve the question of a request; its candidate is not looked at.

    Functions and methods have the reference's names and parameters, and do nothing or return their first argument, the
    commonest expected value of the tests, or what the prompt's own examples say. One that raises, or is not there,
    passes no valid test.

    Args:
        prompt: the question as the Code LLM sees it.
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
    bodies = {
        "stub": "None",
        "echo": _FIRST,
        "constant": constant,
    }
    table = {}
    examples = (f"assert {call} == {value}" for call, value in _EXAMPLE.findall(prompt))
    for call, value in _comparisons(examples):
        # A signature looks like an example too, and its names would cost all others their answers.
        with contextlib.suppress(TypeError, *PARSE_ERRORS):
            if isinstance(call, ast.Call):
                table[repr(ast.literal_eval(ast.Tuple(call.args)))] = ast.literal_eval(value)
    if table:
        bodies["examples"] = f"{table}.get(repr({_ALL}))"
    return {name: _returning(request.reference, value) for name, value in bodies.items()}


def passes_all(verdict: CandidateVerdict) -> bool:
    """Whether there are valid tests and the program fails none, as a solution does."""
    outcomes = [case.outcome for suite in verdict.suites for case in suite.cases]
    return bool(outcomes) and not any(outcome.failed for outcome in outcomes)


def _comparisons(texts: Iterable[str]) -> Iterator[tuple[ast.expr, str]]:
    """The result that each assert compares, and the source of the value; others are passed over."""
    for text in texts:
        with contextlib.suppress(ValueFormatError, *PARSE_ERRORS):
            match parse_untrusted(text.strip()).body:
                case [ast.Assert(condition), *_]:
                    result, value, _ = compared(condition)
                    yield result, ast.unparse(value)


def _returning(reference: str, value: str) -> str:
    """The reference, whose functions all return this; "" where it is too deep to write."""
    try:
        tree = parse_untrusted(reference)
        tree.body = [
            node
            for node in tree.body
            if isinstance(node, _KEPT) or (isinstance(node, ast.Assign) and not isinstance(node.value, _ALIASES))
        ]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                positional = [*node.args.posonlyargs, *node.args.args]
                names = [parameter.arg for parameter in positional if parameter.arg not in ("self", "cls")]
                every = "".join(f"{name}, " for name in names)
                first = names[0] if names else "None"
                written = value.replace(_FIRST, first).replace(_ALL, f"({every})")
                body = "pass" if node.name == "__init__" else f"return {written}"
                node.body = parse_untrusted(body).body
        return ast.unparse(tree)
    except PARSE_ERRORS:
        return ""
