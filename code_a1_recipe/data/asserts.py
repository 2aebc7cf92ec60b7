"""Reading the tests of problem sets as texts of the form ``assert f(literals) == literal``."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox import NODE_NAMES

from ..algorithm.question import definitions, parsed
from ..errors import PARSE_ERRORS, RowError
from .native_row import Asserts

# EvalPlus's own comparison calls nothing but these; a row whose ``assertion`` calls more (``set``,
# ``isinstance``) compares something else than the values.
_PLAIN_COMPARISON_CALLS = frozenset({"is_floats", "np.allclose"})


_SAME_NODES = frozenset({"is_same_list", "is_same_tree"})


class _InfinityToLiteral(ast.NodeTransformer):
    """Infinity has no literal of its own; Python prints an overflowing float for it, which is one."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(value=float("inf")) if node.id == "inf" else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node) in ("float('inf')", "math.inf"):
            return ast.Constant(value=float("inf"))
        return self.generic_visit(node)


def literal_text(node: ast.expr) -> str | None:
    """Source of a literal, with ``inf`` written as one, or of a list or tree of nodes; None of anything else."""
    if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in NODE_NAMES and len(node.args) == 1:
        values = literal_text(node.args[0])
        return values and f"{name}({values})"
    try:
        text = repr(ast.literal_eval(node))
    except PARSE_ERRORS:
        text = ""
    if text and "inf" not in text and "{" not in text:
        return text  # several times faster than ast.unparse, and the same but for infinities and set order
    plain = _InfinityToLiteral().visit(node)
    try:
        ast.literal_eval(plain)
    except PARSE_ERRORS:
        return None
    return ast.unparse(plain)


def assert_text(
    callee: str,
    arguments: Sequence[str | None],
    expected: str | None,
) -> str | None:
    """One assert; ``arguments`` and ``expected`` are source texts. None where one of them is none.

    Example:
        >>> assert_text("add", ["1", "b=2"], "3")
        'assert add(1, b=2) == 3'
    """
    texts = [argument for argument in arguments if argument is not None]
    if expected is None or len(texts) < len(arguments):
        return None
    return f"assert {callee}({', '.join(texts)}) == {expected}"


def literal_assert(node: ast.Assert, *, callee: str | None = None) -> str | None:
    """``node`` as an assert about literals, or None when it is of another form.

    Args:
        node: the assert. Its message is left out.
        callee: written in place of the called name.
    """
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    call, expected = test.left, literal_text(test.comparators[0])
    if not isinstance(call, ast.Call) or expected is None:
        return None
    arguments = [literal_text(argument) for argument in call.args]
    for keyword in call.keywords:
        value = literal_text(keyword.value) if keyword.arg else None
        arguments.append(f"{keyword.arg}={value}" if value is not None else None)
    return assert_text(
        callee or ast.unparse(call.func),
        arguments,
        expected,
    )


def asserts_in(node: ast.AST) -> Iterator[ast.Assert]:
    """All assert statements below ``node``."""
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Assert))


def literal_asserts(text: str) -> list[str]:
    """The literal asserts of a piece of test source; empty when it does not parse."""
    return [found for node in asserts_in(parsed(text.strip())) if (found := literal_assert(node)) is not None]


def called_names(text: str) -> list[str]:
    """Names called on the left of an assert's comparison, outermost first; empty when nothing parses."""
    return [
        node.func.id
        for check in asserts_in(parsed(text.strip()))
        for node in ast.walk(check.test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def asserts_about_candidate(module: ast.Module, *, called_as: str) -> Asserts:
    """The asserts of ``def check(candidate)``, about ``called_as`` instead.

    Args:
        module: test source of the HumanEval form.
        called_as: what to call in place of ``candidate``: ``f`` or ``Solution().f``.

    Returns:
        The literal ones, and how many others there were. ``assert True`` is not counted.
    """
    found = []
    num_other = 0
    for node in asserts_in(module):
        if isinstance(node.test, ast.Constant):
            continue
        node = _with_equality(node)
        left = node.test.left if isinstance(node.test, ast.Compare) else None
        is_plain = isinstance(left, ast.Call) and ast.unparse(left.func) == "candidate"
        text = literal_assert(node, callee=called_as) if is_plain else None
        if text is None:
            num_other += 1
        else:
            found.append(text)
    return found, num_other


def _with_equality(node: ast.Assert) -> ast.Assert:
    """``assert is_same_list(a, b)``, or ``..._tree``, as ``assert a == b``; any other as it is."""
    test = node.test
    if isinstance(test, ast.Call) and ast.unparse(test.func) in _SAME_NODES and len(test.args) == 2:
        return ast.Assert(test=ast.Compare(left=test.args[0], ops=[ast.Eq()], comparators=test.args[1:]))
    return node


def asserts_of_pairs(
    callee: str,
    inputs: list[Any],
    outputs: list[Any],
) -> Asserts:
    """Asserts about ``callee`` from lists of arguments and of answers, as JSON gave them.

    Args:
        callee: ``f`` or ``Solution().f``.
        inputs: one list of arguments a call.
        outputs: one answer a call; where each is a list of one value, that value.

    Returns:
        The asserts, and how many calls there were beside them.

    Example:
        >>> asserts_of_pairs("f", [[1, "a"], [2, "b"]], [[True], [False]])
        (["assert f(1, 'a') == True", "assert f(2, 'b') == False"], 0)
    """
    if all(isinstance(answer, list) and len(answer) == 1 for answer in outputs):
        outputs = [answer[0] for answer in outputs]
    found = []
    for given, answer in zip(inputs, outputs, strict=False):
        arguments = map(_value_text, given) if isinstance(given, list) else [None]
        if (text := assert_text(callee, [*arguments], _value_text(answer))) is not None:
            found.append(text)
    return found, max(len(inputs), len(outputs)) - len(found)


def _value_text(value: Any) -> str | None:
    try:
        return literal_text(ast.parse(repr(value), mode="eval").body)
    except PARSE_ERRORS:
        return None


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
        check = functions.get("check")
        lists = _lists_of(check) if check else {}
        if check is None or "inputs" not in lists:
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

    def tests(self) -> list[str]:
        """The pairs of literals as asserts; none where results are compared otherwise than value by value."""
        pairs = zip(self.inputs, self.results, strict=False) if self.is_plain else ()
        texts = [
            assert_text(self.entry, [literal_text(argument) for argument in given.elts], literal_text(expected))
            for given, expected in pairs
            if isinstance(given, ast.List | ast.Tuple)
        ]
        return [text for text in texts if text is not None]


def _lists_of(check: ast.FunctionDef) -> dict[str, list[ast.expr]]:
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
