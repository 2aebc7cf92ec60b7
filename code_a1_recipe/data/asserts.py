"""Reading the tests of problem sets as texts of the form ``assert f(literals) == literal``."""

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

# EvalPlus's own comparison calls nothing but these; a row whose ``assertion`` calls more (``set``,
# ``isinstance``) compares something else than the values.
_PLAIN_COMPARISON_CALLS = frozenset({"is_floats", "np.allclose"})


_READERS = {"set", "sorted", "len"}
"""Of a result, as the gate takes them."""
LOOSE = "  # read from another form"
"""Behind an assert that the source has as ``is``, ``isclose``, without a comparison, or with names: where the reference
does not fulfil it, it may have been read wrongly."""


def asserts_in(
    module: ast.Module, names: Collection[str], *, in_place: Collection[str] = frozenset()
) -> dict[str, Any]:
    """The tests of a source that call one of ``names``, as columns ``tests`` and ``num_dropped_tests``.

    ``assert True`` is not counted. ``in_place`` are functions whose first argument is looked at after the call.
    """
    found: list[str] = []
    num_tests = 0
    for statement, test in asserted(module, only_tests=False, in_place=in_place):
        num_tests += not isinstance(test, ast.Constant)
        with contextlib.suppress(ValueFormatError, RecursionError):  # such a test is counted alone
            left, right, is_exact = compared(test)
            remark = "" if is_exact and test in vars(statement).values() else LOOSE
            found.append(f"assert {_call_text(left, names)} == {_literal_text(right)}{remark}")
    return {"tests": found, "num_dropped_tests": num_tests - len(found)}


def parsed_texts(texts: Iterable[str]) -> ast.Module:
    """One source of several; those that do not parse have no statement."""
    return ast.Module([statement for text in texts for statement in parsed(text.strip()).body], type_ignores=[])


def _call_text(node: ast.expr, names: Collection[str]) -> str:
    """A call of one of ``names`` with literals, or what reads its result; ValueFormatError of anything else."""
    if not isinstance(node, ast.Call) or not all(one.arg for one in node.keywords):
        raise ValueFormatError("no call")
    callee, given, texts = ast.unparse(node.func), node.args, []
    if re.split(r"[.(]", callee)[0] not in names:
        if callee not in _READERS:
            raise ValueFormatError(f"{callee} is not under test")
        first, *given = given or [node.func]
        texts = [_call_text(first, names)]
    texts += map(_literal_text, given)
    texts += [f"{one.arg}={_literal_text(one.value)}" for one in node.keywords]
    return f"{callee}({', '.join(texts)})"


def _literal_text(node: ast.expr) -> str:
    return spell(literal_value(node))


def literal_value(node: ast.expr) -> Any:
    """The value of a literal, or of ``inf``; ValueFormatError of anything else."""
    return LiteralReader(arithmetic=True).read(put_in(node, {"inf": ast.Constant(float("inf"))}))


def called_names(text: str) -> list[str]:
    """Names that are called in a test, outermost first; empty when it does not parse."""
    calls = (node.func for node in ast.walk(parsed(text.strip())) if isinstance(node, ast.Call))
    return [function.id for function in calls if isinstance(function, ast.Name)]


def asserts_of_pairs(
    callee: str,
    inputs: list[Any],
    outputs: list[Any],
) -> Asserts:
    """Asserts about ``callee`` from lists of arguments and of answers, as JSON gave them.

    Args:
        callee: ``f`` or ``Solution().f``.
        inputs: one list of arguments a call.
        outputs: one answer a call.

    Returns:
        The asserts, and how many calls there were beside them.

    Example:
        >>> asserts_of_pairs("f", [[1, "a"], [2, "b"]], [True, False])
        (["assert f(1, 'a') == True", "assert f(2, 'b') == False"], 0)
    """
    pairs = [(given, answer) for given, answer in zip(inputs, outputs, strict=False) if isinstance(given, list)]
    texts = [f"assert {callee}({', '.join(map(repr, given))}) == {answer!r}" for given, answer in pairs]
    tests = asserts_in(parsed_texts(texts), {callee.partition("(")[0]})["tests"]
    return tests, max(len(inputs), len(outputs)) - len(tests)


def readings(answers: list[Any]) -> Iterator[list[Any]]:
    """The ways to read answers that JSON holds, as the scorers of TACO and APPS do; the likeliest first.

    JSON has no tuples and no keys but texts, and both sets may put an answer into a list of its own.
    """
    are_lists = all(isinstance(answer, list) for answer in answers)
    if are_lists and all(len(answer) == 1 for answer in answers):
        yield [answer[0] for answer in answers]
    yield answers
    if are_lists:
        yield [tuple(answer) for answer in answers]
        yield [[tuple(one) if isinstance(one, list) else one for one in answer] for answer in answers]
    with contextlib.suppress(AttributeError, ValueError):
        yield [{int(key): value for key, value in answer.items()} for answer in answers]


def signature_of(source: str, name: str) -> str:
    """``name(parameters)`` as ``source`` defines it at top level; ``name(...)`` when it is no ``def``.

    Example:
        >>> signature_of("def f(a, b=2): pass", "f")
        'f(a, b=2)'
    """
    node = definitions(source).get(name)
    return f"{name}({ast.unparse(node.args) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else '...'})"


def callee_in(source: str, name: str) -> str:
    """How to call ``name`` in a solution: ``name``, ``Solution().name``, or "" where it is not defined."""
    defined = definitions(source)
    if name in defined:
        return name
    methods = [node.name for node in getattr(defined.get("Solution"), "body", ()) if isinstance(node, ast.FunctionDef)]
    return f"Solution().{name}" if name in methods else ""


@dataclass(frozen=True, kw_only=True)
class EvalPlusCheck:
    """The ``check`` function of an EvalPlus test: inputs and results as two lists, and how they are compared."""

    entry: str
    """The function that is called; ``check`` is believed where it calls another than the dataset names."""
    inputs: list[ast.expr]
    results: list[ast.expr]
    """Empty where ``check`` computes them."""
    tolerance: ast.expr | None
    """What ``assertion`` is given third, or what stands on the right of ``<=``."""
    is_plain: bool
    """``assertion`` compares value by value, with nothing but a tolerance."""

    @classmethod
    def read(
        cls,
        module: ast.Module,
        *,
        declared_name: str,
    ) -> "EvalPlusCheck":
        """Read ``check`` from the parsed test; ``declared_name`` is the function's name by the dataset.

        Raises:
            RowError: there is no ``check`` with a list called ``inputs``.
        """
        functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
        check = functions.get("check", module)
        lists = _lists_of(check)
        if "inputs" not in lists:
            raise RowError("test", "must define check() with a list called 'inputs'")
        entry, tolerance, is_plain = "candidate", None, False
        for node in ast.walk(check):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if [ast.unparse(argument) for argument in node.args] == ["*inp"] and node.func.id != "ref_func":
                    entry = node.func.id
                elif node.func.id == "assertion":
                    is_plain = isinstance(node.args[0], ast.Call) and _compares_plainly(functions.get("assertion"))
                    tolerance = node.args[2] if len(node.args) == 3 else tolerance
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
        """As ``asserts_in`` has them, of pairs of literals; none where results are not compared value by value."""
        pairs = zip(self.inputs, self.results, strict=False) if self.is_plain else ()
        asserts: list[ast.stmt] = [
            ast.Assert(ast.Compare(ast.Call(ast.Name(self.entry), given.elts, []), [ast.Eq()], [expected]))
            for given, expected in pairs
            if isinstance(given, ast.List | ast.Tuple)
        ]
        found = asserts_in(ast.Module(asserts, []), {self.entry})
        return found | {"num_dropped_tests": len(self.inputs) - len(found["tests"])}


def _lists_of(check: ast.FunctionDef | ast.Module) -> dict[str, list[ast.expr]]:
    """``name = [...]`` statements directly in ``check``."""
    return {
        node.targets[0].id: node.value.elts
        for node in check.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.List)
    }


def _compares_plainly(assertion: ast.FunctionDef | None) -> bool:
    if assertion is None:
        return False
    calls = {ast.unparse(node.func) for node in ast.walk(assertion) if isinstance(node, ast.Call)}
    return calls <= _PLAIN_COMPARISON_CALLS
