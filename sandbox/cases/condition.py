"""Which result a condition compares with which value: forms of plain asserts, unittest, pytest and problem sets."""

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
"""Functions of two values, and whether they are exact: unittest's, the libraries', LeetCodeDataset's."""
_HOLDS = {"assertTrue": True, "assertFalse": False}


def compared(test: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    """Read a condition: ``f(1) == 2``, ``2 == f(1)``, ``f(1) is True``, ``not f(1)``, ``isclose(f(1), 2.0)``, ...

    Returns:
        The result and the value, which is true or false where none is written; and whether the condition says that
        they are equal, no more and no less. A condition of truth also accepts other values than ``True``.

    Raises:
        ValueFormatError: the condition has another form.
    """
    left, right, is_exact = _sides(test)
    if not isinstance(left, _RESULT) and isinstance(right, _RESULT):
        left, right = right, left
    if not is_exact and not isinstance(left, _RESULT):
        raise ValueFormatError("the condition does not say that a result is equal to a value")
    return left, right, is_exact


def _sides(test: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    match test:
        case ast.Compare(left, [ast.Eq()], [ast.Call(function, [right, *_])]) if _last_name(function) == "approx":
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
        case ast.Call(function, [left, right, *_]) if (name := _last_name(function)) in _EQUAL:
            return left, right, _EQUAL[name]
        case ast.Call(function, [left, *_]) if _last_name(function) == "assertIsNone":
            return left, ast.Constant(None), False
        case ast.Call(function, [left, *_]) if (name := _last_name(function)) in _HOLDS:
            return _sides(left if _HOLDS[name] else ast.UnaryOp(ast.Not(), left))
    return test, ast.Constant(True), False


def _last_name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
