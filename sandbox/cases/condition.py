"""Find which result and which value a condition compares: in asserts, unittest, pytest and public problem sets."""

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
"""Maps the name of a function that compares two values to True if the function compares exactly. The functions come
from unittest, libraries and LeetCodeDataset."""


def compared(test: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    """Read a condition: ``f(1) == 2``, ``2 == f(1)``, ``f(1) is True``, ``not f(1)``, ``isclose(f(1), 2.0)``, ...

    Returns:
        The node of the result, the node of the value, and a flag. The flag is True if the condition is exact: it holds
        if and only if result and value are equal. A condition such as ``f(1)`` contains no value. Then the returned
        value is ``True`` (or ``False`` for ``not f(1)``), and the condition is not exact, because other results than
        ``True`` are truthy as well.

    Raises:
        ValueFormatError: the condition has another form.
    """
    left, right, is_exact = _sides(test)
    if not isinstance(left, _RESULT) and isinstance(right, _RESULT):
        left, right = right, left
    if not is_exact and not isinstance(left, _RESULT):
        raise ValueFormatError("the condition does not compare the result of a call with a value")
    return left, right, is_exact


def _sides(test: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            match right:
                case ast.Call(function, [near, *_]) if last_name(function) == "approx":
                    return left, near, False
            return left, right, True
        case ast.Compare(left, [ast.Is()], [right]):
            return left, right, False
        # abs(f(1) - 0.5) < 1e-3
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
        case ast.Call(function, [left, right, *_]) if last_name(function) in _EQUAL:
            return left, right, _EQUAL[last_name(function)]
        case ast.Call(function, [left, *_]):
            match last_name(function):
                case "assertIsNone":
                    return left, ast.Constant(None), False
                case "assertTrue":
                    return _sides(left)
                case "assertFalse":
                    return _sides(ast.UnaryOp(ast.Not(), left))
    return test, ast.Constant(True), False


def last_name(node: ast.expr) -> str:
    """Return the last name of an expression: ``c`` for ``c`` and for ``a.b.c``. Return "" for other expressions."""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
