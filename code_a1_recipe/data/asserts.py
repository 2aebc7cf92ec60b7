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

# The comparison that most EvalPlus rows use calls only these functions. An ``assertion`` that calls any other function,
# such as ``set`` or ``isinstance``, does not compare value by value.
_PLAIN_COMPARISON_CALLS = {"is_floats", "np.allclose"}
_READERS = {"set", "sorted", "len"}
"""Functions that a test may apply to the result of a call. The judge accepts the same three functions."""
LOOSE = "  # read from another form"
"""Comment behind a rewritten assert whose source had another form, such as ``is``, ``isclose`` or a variable. If the
reference fails an assert with this comment, the rewriting may be wrong."""


def asserts_in(
    module: ast.Module,
    names: Collection[str],
    *,
    in_place: Collection[str] = frozenset(),
) -> dict[str, Any]:
    """Rewrite the tests in a module that call one of ``names``.

    A constant test, such as ``assert True``, is neither kept nor counted.

    Args:
        module: parsed source of the tests.
        names: functions and classes under test.
        in_place: functions that change their first argument. A test of an in-place function checks the first argument
            after the call.

    Returns:
        The columns ``tests`` and ``num_dropped_tests`` of a ``NativeRow``.
    """
    tests: list[str] = []
    num_tests = 0
    for statement, test in asserted(module, only_tests=False, in_place=in_place):
        num_tests += not isinstance(test, ast.Constant)
        with contextlib.suppress(ValueFormatError, RecursionError):  # a test without a literal form is dropped
            left, right, is_exact = compared(test)
            text = f"assert {_call_text(left, names)} == {_literal_text(right)}"
            if not is_exact or test not in vars(statement).values():
                text += LOOSE
            tests.append(text)
    return {"tests": tests, "num_dropped_tests": num_tests - len(tests)}


def parsed_texts(texts: Iterable[str]) -> ast.Module:
    """Parse several sources into one module. A source that is not Python adds no statement."""
    statements: list[ast.stmt] = []
    for text in texts:
        statements += parsed(text.strip()).body
    return ast.Module(statements, [])


def _call_text(node: ast.expr, names: Collection[str]) -> str:
    """Return the text of a call with literal arguments, such as ``f(1)`` or ``len(f(1))``.

    Raises:
        ValueFormatError: the expression is no call of one of ``names`` with literal arguments.
    """
    if not isinstance(node, ast.Call):
        raise ValueFormatError("no call")
    callee = ast.unparse(node.func)
    arguments = node.args
    texts = []
    root = re.split(r"[.(]", callee)[0]
    if root not in names:
        if callee not in _READERS or not arguments:
            raise ValueFormatError(f"{callee} is not under test")
        inner_call, *arguments = arguments
        texts.append(_call_text(inner_call, names))
    texts += map(_literal_text, arguments)
    for keyword in node.keywords:
        if keyword.arg is None:  # ``**mapping``
            raise ValueFormatError("unpacked keywords")
        value = _literal_text(keyword.value)
        texts.append(f"{keyword.arg}={value}")
    return f"{callee}({', '.join(texts)})"


def _literal_text(node: ast.expr) -> str:
    return spell(literal_value(node))


def literal_value(node: ast.expr) -> Any:
    """Return the value of a literal or of the name ``inf``. ValueFormatError: the expression is no literal."""
    infinity = ast.Constant(float("inf"))
    literal = put_in(node, {"inf": infinity})
    return LiteralReader(arithmetic=True).read(literal)


def called_names(text: str) -> list[str]:
    """List the names that a test calls, the outermost call first. The list is empty if the text is not Python."""
    names = []
    for node in ast.walk(parsed(text.strip())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.append(node.func.id)
    return names


def asserts_of_pairs(callee: str, inputs: list[Any], outputs: list[Any]) -> Asserts:
    """Write an assert for each list of arguments and its answer, both read from JSON.

    Args:
        callee: ``f`` or ``Solution().f``.
        inputs: a list of arguments for each call.
        outputs: an answer for each call.

    Returns:
        The asserts, and the number of calls for which no assert can be written.

    Example:
        >>> asserts_of_pairs("f", [[1, "a"], [2, "b"]], [True, False])
        (["assert f(1, 'a') == True", "assert f(2, 'b') == False"], 0)
    """
    texts = []
    for arguments, answer in zip(inputs, outputs, strict=False):
        if isinstance(arguments, list):
            listed = ", ".join(map(repr, arguments))
            texts.append(f"assert {callee}({listed}) == {answer!r}")
    root = callee.partition("(")[0]
    tests = asserts_in(parsed_texts(texts), {root})["tests"]
    return tests, max(len(inputs), len(outputs)) - len(tests)


def readings(answers: list[Any]) -> Iterator[list[Any]]:
    """Yield possible readings of a row's answers in JSON, the likeliest first.

    The scorers of TACO and APPS try the same readings. JSON has no tuples, and the keys of JSON objects are always
    strings. TACO and APPS may also wrap an answer in a list.
    """
    are_lists = all(isinstance(answer, list) for answer in answers)
    if are_lists and all(len(answer) == 1 for answer in answers):
        yield [answer[0] for answer in answers]
    yield answers
    if are_lists:
        yield [tuple(answer) for answer in answers]
        yield [[tuple(item) if isinstance(item, list) else item for item in answer] for answer in answers]
    with contextlib.suppress(AttributeError, ValueError):
        yield [{int(key): value for key, value in answer.items()} for answer in answers]


def signature_of(source: str, name: str) -> str:
    """Return ``name(parameters)`` for a function at the top level of ``source``, else ``name(...)``.

    Example:
        >>> signature_of("def f(a, b=2): pass", "f")
        'f(a, b=2)'
    """
    node = definitions(source).get(name)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{name}({ast.unparse(node.args)})"
    return f"{name}(...)"


def callee_in(source: str, name: str) -> str:
    """Return the text that calls a solution's function: ``name`` or ``Solution().name``.

    An undefined function gives "".
    """
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
    """Name of the function that ``check`` calls. The dataset's own column may have a wrong name."""
    inputs: list[ast.expr]
    results: list[ast.expr]
    """Expected results; empty if ``check`` computes them."""
    tolerance: ast.expr | None
    """Tolerance of the comparison: the third argument of ``assertion``, or the right side of ``<=``."""
    is_plain: bool
    """Whether ``assertion`` compares value by value, exactly or within a tolerance."""

    @classmethod
    def read(cls, module: ast.Module, *, declared_name: str) -> "EvalPlusCheck":
        """Read ``check`` from a parsed test.

        Args:
            module: parsed source of the test.
            declared_name: the function's name in the dataset. ``declared_name`` is used if ``check`` does not show the
                function's name.

        Raises:
            RowError: no ``check`` has a list called ``inputs``.
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
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.LtE):
                tolerance = node.comparators[0]
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            callee = node.func.id
            if ast.unparse(node) == f"{callee}(*inp)" and callee != "ref_func":
                entry = callee
            elif callee == "assertion":
                returned, *others = node.args
                is_plain = isinstance(returned, ast.Call) and _compares_plainly(functions.get("assertion"))
                if len(others) == 2:
                    tolerance = others[1]
        return cls(
            entry=declared_name if entry == "candidate" else entry,
            inputs=lists["inputs"],
            results=lists.get("results", []),
            tolerance=tolerance,
            is_plain=is_plain,
        )

    def tests(self) -> dict[str, Any]:
        """Return the same columns as ``asserts_in``. If the comparison is not plain, every test is dropped."""
        asserts: list[ast.stmt] = []
        for arguments, expected in zip(self.inputs, self.results, strict=False):
            if self.is_plain and isinstance(arguments, ast.List | ast.Tuple):
                callee = ast.Name(self.entry)
                call = ast.Call(callee, arguments.elts, [])
                comparison = ast.Compare(call, [ast.Eq()], [expected])
                asserts.append(ast.Assert(comparison))
        module = ast.Module(asserts, [])
        tests = asserts_in(module, {self.entry})["tests"]
        return {"tests": tests, "num_dropped_tests": len(self.inputs) - len(tests)}


def _lists_of(check: ast.FunctionDef | ast.Module) -> dict[str, list[ast.expr]]:
    """Return lists by name, from the statements ``name = [...]`` directly in ``check``."""
    lists = {}
    for node in check.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            name = ast.unparse(node.targets[0])
            lists[name] = node.value.elts
    return lists


def _compares_plainly(assertion: ast.FunctionDef | None) -> bool:
    if assertion is None:
        return False
    for node in ast.walk(assertion):
        if isinstance(node, ast.Call):
            callee = ast.unparse(node.func)
            if callee not in _PLAIN_COMPARISON_CALLS:
                return False
    return True
