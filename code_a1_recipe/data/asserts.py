"""Conversion of problem sets' tests to texts of the form ``assert f(literals) == literal``."""

import ast
import contextlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sandbox import ValueFormatError
from sandbox.text import LiteralReader, asserted, compared, put_in, spell

from ..algorithm.question import definitions, parsed
from ..errors import RowError
from .native_row import Asserts

# EvalPlus's own comparison calls only these. An ``assertion`` that calls others (``set``, ``isinstance``) does not
# compare value by value.
_PLAIN_COMPARISON_CALLS = {"is_floats", "np.allclose"}
_READERS = {"set", "sorted", "len"}
"""Functions that a test may apply to a result; the judge allows the same."""
LOOSE = "  # read from another form"
"""Remark behind an assert whose source has another form: ``is``, ``isclose``, no comparison, or names. If the reference
fails such an assert, it may have been read wrongly."""


def asserts_in(
    module: ast.Module, names: Collection[str], *, in_place: Collection[str] = frozenset()
) -> dict[str, Any]:
    """Read the tests of a source that call one of ``names``.

    ``assert True`` is not counted.

    Args:
        module: the source, parsed.
        names: functions and classes under test.
        in_place: functions whose first argument is the result: a test looks at it after the call.

    Returns:
        The columns ``tests`` and ``num_dropped_tests``.
    """
    tests: list[str] = []
    num_tests = 0
    for statement, test in asserted(module, only_tests=False, in_place=in_place):
        num_tests += not isinstance(test, ast.Constant)
        with contextlib.suppress(ValueFormatError, RecursionError):  # a test that cannot be written is only counted
            left, right, is_exact = compared(test)
            text = f"assert {_call_text(left, names)} == {_literal_text(right)}"
            if not is_exact or test not in vars(statement).values():
                text += LOOSE
            tests.append(text)
    return {"tests": tests, "num_dropped_tests": num_tests - len(tests)}


def parsed_texts(texts: Iterable[str]) -> ast.Module:
    """Join the statements of several sources. A source that does not parse has none."""
    statements: list[ast.stmt] = []
    for text in texts:
        statements += parsed(text.strip()).body
    return ast.Module(statements, [])


def _call_text(node: ast.expr, names: Collection[str]) -> str:
    """The text of a call of one of ``names`` with literals, or of a reader around such a call.

    Raises:
        ValueFormatError: the expression is something else.
    """
    if not isinstance(node, ast.Call) or not all(keyword.arg for keyword in node.keywords):
        raise ValueFormatError("no call")
    callee = ast.unparse(node.func)
    given = node.args
    texts = []
    root = re.split(r"[.(]", callee)[0]
    if root not in names:
        if callee not in _READERS:
            raise ValueFormatError(f"{callee} is not under test")
        first, *given = given or [node.func]
        texts = [_call_text(first, names)]
    texts += map(_literal_text, given)
    texts += [f"{keyword.arg}={_literal_text(keyword.value)}" for keyword in node.keywords]
    return f"{callee}({', '.join(texts)})"


def _literal_text(node: ast.expr) -> str:
    return spell(literal_value(node))


def literal_value(node: ast.expr) -> Any:
    """The value of a literal, or of ``inf``. ValueFormatError: the expression is something else."""
    infinity = ast.Constant(float("inf"))
    reader = LiteralReader(arithmetic=True)
    return reader.read(put_in(node, {"inf": infinity}))


def called_names(text: str) -> list[str]:
    """Names that a test calls, the outermost call first. A text that does not parse calls none."""
    names = []
    for node in ast.walk(parsed(text.strip())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.append(node.func.id)
    return names


def asserts_of_pairs(callee: str, inputs: list[Any], outputs: list[Any]) -> Asserts:
    """Write asserts from lists of arguments and of answers that were read from JSON.

    Args:
        callee: ``f`` or ``Solution().f``.
        inputs: a list of arguments for each call.
        outputs: an answer for each call.

    Returns:
        The asserts, and the number of calls that cannot be written as one.

    Example:
        >>> asserts_of_pairs("f", [[1, "a"], [2, "b"]], [True, False])
        (["assert f(1, 'a') == True", "assert f(2, 'b') == False"], 0)
    """
    texts = []
    for arguments, answer in zip(inputs, outputs, strict=False):
        if isinstance(arguments, list):
            texts.append(f"assert {callee}({', '.join(map(repr, arguments))}) == {answer!r}")
    root = callee.partition("(")[0]
    tests = asserts_in(parsed_texts(texts), {root})["tests"]
    return tests, max(len(inputs), len(outputs)) - len(tests)


def readings(answers: list[Any]) -> Iterator[list[Any]]:
    """Possible readings of answers in JSON, the likeliest first, as in the scorers of TACO and APPS.

    JSON has no tuples, its keys are texts, and both sets may put an answer into a list of its own.
    """
    are_lists = all(isinstance(answer, list) for answer in answers)
    if are_lists and all(len(answer) == 1 for answer in answers):
        yield [answer[0] for answer in answers]
    yield answers
    if are_lists:
        yield [tuple(answer) for answer in answers]
        yield [[_as_tuple(item) for item in answer] for answer in answers]
    with contextlib.suppress(AttributeError, ValueError):
        yield [{int(key): value for key, value in answer.items()} for answer in answers]


def _as_tuple(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item


def signature_of(source: str, name: str) -> str:
    """``name(parameters)`` as ``source`` defines it at top level, or ``name(...)`` if it is no function.

    Example:
        >>> signature_of("def f(a, b=2): pass", "f")
        'f(a, b=2)'
    """
    node = definitions(source).get(name)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{name}({ast.unparse(node.args)})"
    return f"{name}(...)"


def callee_in(source: str, name: str) -> str:
    """The text that calls ``name`` of a solution: ``name``, ``Solution().name``, or "" if it is not defined."""
    defined = definitions(source)
    if name in defined:
        return name
    methods = getattr(defined.get("Solution"), "body", ())
    for node in methods:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return f"Solution().{name}"
    return ""


@dataclass(frozen=True, kw_only=True)
class EvalPlusCheck:
    """The ``check`` function of an EvalPlus test: lists of inputs and results, and their comparison."""

    entry: str
    """The function that ``check`` calls, even if the dataset names another one."""
    inputs: list[ast.expr]
    results: list[ast.expr]
    """Empty if ``check`` computes the results."""
    tolerance: ast.expr | None
    """The third argument of ``assertion``, or the right side of ``<=``."""
    is_plain: bool
    """Whether ``assertion`` compares value by value, with a tolerance at most."""

    @classmethod
    def read(cls, module: ast.Module, *, declared_name: str) -> "EvalPlusCheck":
        """Read ``check`` from a parsed test.

        Args:
            declared_name: name of the function in the dataset, used if ``check`` calls its argument ``candidate``.

        Raises:
            RowError: there is no ``check`` with a list called ``inputs``.
        """
        functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
        check = functions.get("check", module)
        lists = _lists_of(check)
        if "inputs" not in lists:
            raise RowError("test", "must define check() with a list called 'inputs'")
        entry = "candidate"
        tolerance = None
        is_plain = False
        for node in ast.walk(check):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                callee = node.func.id
                if ast.unparse(node) == f"{callee}(*inp)" and callee != "ref_func":
                    entry = callee
                elif callee == "assertion":
                    returned, *others = node.args
                    is_plain = isinstance(returned, ast.Call) and _compares_plainly(functions.get("assertion"))
                    if len(others) == 2:
                        tolerance = others[1]
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.LtE):
                tolerance = node.comparators[0]
        return cls(
            entry=declared_name if entry == "candidate" else entry,
            inputs=lists["inputs"],
            results=lists.get("results", []),
            tolerance=tolerance,
            is_plain=is_plain,
        )

    def tests(self) -> dict[str, Any]:
        """The columns of ``asserts_in``, from pairs of literals. No test if values are not compared one by one."""
        asserts: list[ast.stmt] = []
        for arguments, expected in zip(self.inputs, self.results, strict=False):
            if self.is_plain and isinstance(arguments, ast.List | ast.Tuple):
                call = ast.Call(ast.Name(self.entry), arguments.elts, [])
                comparison = ast.Compare(call, [ast.Eq()], [expected])
                asserts.append(ast.Assert(comparison))
        tests = asserts_in(ast.Module(asserts, []), {self.entry})["tests"]
        return {"tests": tests, "num_dropped_tests": len(self.inputs) - len(tests)}


def _lists_of(check: ast.FunctionDef | ast.Module) -> dict[str, list[ast.expr]]:
    """Lists by name, from statements ``name = [...]`` directly in ``check``."""
    lists = {}
    for node in check.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            lists[ast.unparse(node.targets[0])] = node.value.elts
    return lists


def _compares_plainly(assertion: ast.FunctionDef | None) -> bool:
    if assertion is None:
        return False
    for node in ast.walk(assertion):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in _PLAIN_COMPARISON_CALLS:
            return False
    return True
