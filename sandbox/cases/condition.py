"""Read the result and the value that a condition compares, in plain asserts, unittest, pytest and problem sets."""

import ast

from ..errors import ValueFormatError

_RESULT = ast.Call | ast.Subscript | ast.Attribute | ast.Await
_EQUAL = {
    "assertEqual": True,
    "assertListEqual": True,
    "assertTupleEqual": True,
    "assertDictEqual": True,
    "assertSetEqual": True,
    "assertIs": False,
    "assertAlmostEqual": False,
    "isclose": False,
    "is_same_list": True,
    "is_same_tree": True,
}
"""Functions that compare two values (unittest, libraries, LeetCodeDataset), and whether they compare exactly."""


def compared(test: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    """Read a condition: ``f(1) == 2``, ``2 == f(1)``, ``f(1) is True``, ``not f(1)``, ``isclose(f(1), 2.0)``, ...

    Returns:
        The result, the value, and whether the condition holds exactly if the two are equal. A condition without a
        written value gets ``True`` or ``False``, and is not exact, because other values are true as well.

    Raises:
        ValueFormatError: the condition has another form.
    """
    left, right, is_exact = _sides(test)
    # ``2 == f(1)`` says the same as ``f(1) == 2``.
    if not isinstance(left, _RESULT) and isinstance(right, _RESULT):
        left, right = right, left
    if not is_exact and not isinstance(left, _RESULT):
        raise ValueFormatError("the condition does not say that a result is equal to a value")
    return left, right, is_exact


def _sides(test: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    match test:
        case ast.Compare(left, [ast.Eq()], [ast.Call(function, [right, *_])]) if last_name(function) == "approx":
            return left, right, False
        case ast.Compare(left, [ast.Eq()], [right]):
            return left, right, True
        case ast.Compare(left, [ast.Is()], [right]):
            return left, right, False
        case ast.Compare(
            ast.Call(
                ast.Name("abs"),
                [ast.BinOp(left, ast.Sub(), right)],
            ),
            [ast.Lt() | ast.LtE()],
        ):
            return left, right, False
        case ast.UnaryOp(ast.Not(), left):
            return left, ast.Constant(False), False
        case ast.Call(function, arguments):
            match last_name(function), arguments:
                case name, [left, right, *_] if name in _EQUAL:
                    return left, right, _EQUAL[name]
                case "assertIsNone", [left, *_]:
                    return left, ast.Constant(None), False
                case "assertTrue", [left, *_]:
                    return _sides(left)
                case "assertFalse", [left, *_]:
                    return _sides(ast.UnaryOp(ast.Not(), left))
    return test, ast.Constant(True), False


def last_name(node: ast.expr) -> str:
    """Return ``c`` of ``c`` and of ``a.b.c``, and an empty text for any other expression."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
