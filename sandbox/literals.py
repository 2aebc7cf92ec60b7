"""Static evaluation of literal expressions. Nothing is executed, and nothing large is built.

Literals are constants, signed numbers, ``1+2j``, displays of literals, and calls of a few constructors
on literals (``set()``, ``float('inf')``, ``deque([1])``...). With ``arithmetic=True`` (arguments only)
constant arithmetic such as ``10 ** 5`` or ``[0] * 1000`` is folded under size caps.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_ITEMS = 100_000
"""Items a folded or constructed value may hold in all, nested ones included."""
MAX_INT_BITS = 65_536
LIBRARY_NAMES: dict[str, Any] = {
    "Counter": Counter,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
    "deque": deque,
}
"""Names outside the builtins that literals may use. Programs need not import them for their tests."""
LIBRARY_MODULES = ("collections", "decimal", "fractions", "math")
_MATH_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e}
_RATIO_TEXT = re.compile(r"\s*[+-]?\d{1,400}(/\d{1,400}|\.\d{1,400})?\s*")


class NotLiteralError(ValueError):
    """The expression is not a literal; the message names the part that is not."""


def read_literal(node: ast.expr) -> Any:
    """The value of one literal expression, without constant arithmetic.

    Raises:
        NotLiteralError: some part is not literal, does not evaluate, or is too large.
    """
    return LiteralReader(arithmetic=False).read(node)


def names_library(node: ast.AST) -> bool:
    """True when the expression needs names that a program may not have imported."""
    return any(
        isinstance(part, ast.Name) and (part.id in LIBRARY_NAMES or part.id in LIBRARY_MODULES)
        for part in ast.walk(node)
    )


def num_items(value: Any) -> int:
    """Items of a value, nested ones included."""
    if isinstance(value, dict):
        return 1 + sum(num_items(key) + num_items(item) for key, item in value.items())
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return 1 + sum(map(num_items, value))
    if isinstance(value, (str, bytes, bytearray)):
        return 1 + len(value)
    return 1


class LiteralReader:
    """Reads the literals of one assert; their folded parts share one allowance of ``MAX_ITEMS`` items."""

    def __init__(self, *, arithmetic: bool) -> None:
        self._arithmetic = arithmetic
        self._items_left = MAX_ITEMS

    def read(self, node: ast.expr) -> Any:
        """The value of ``node``.

        Raises:
            NotLiteralError: some part is not literal, does not evaluate, or is too large.
        """
        try:
            return self._read(node)
        except NotLiteralError:
            raise
        except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError) as error:
            raise NotLiteralError(f"does not evaluate: {type(error).__name__}: {error}") from error

    def _take(self, count: int, what: str) -> None:
        self._items_left -= count
        if self._items_left < 0:
            raise NotLiteralError(f"{what} makes more than {MAX_ITEMS} items")

    def _read(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            if node.value is Ellipsis:
                raise NotLiteralError("'...' is not a value")
            return node.value
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items = [self._read(item) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items) if isinstance(node, ast.Tuple) else set(items)
        if isinstance(node, ast.Dict):
            if any(key is None for key in node.keys):
                raise NotLiteralError("'**' in a dict display")
            return {self._read(key): self._read(item) for key, item in zip(node.keys, node.values, strict=True) if key}
        if isinstance(node, ast.Call):
            return self._construct(node)
        if isinstance(node, ast.Attribute) and _dotted(node).startswith("math.") and node.attr in _MATH_CONSTANTS:
            return _MATH_CONSTANTS[node.attr]
        raise NotLiteralError(f"{_source(node)} is not a literal")

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self._read(node.operand)
        if isinstance(value, (int, float, complex, Fraction, Decimal)):
            if isinstance(node.op, ast.USub):
                return -value
            if isinstance(node.op, ast.UAdd):
                return +value
            if isinstance(node.op, ast.Invert) and isinstance(value, int):
                return ~value
        raise NotLiteralError(f"{_source(node)} is not a literal")

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self._read(node.left), self._read(node.right)
        number = (int, float)
        if isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(right, complex) and isinstance(left, number):
            return left + right if isinstance(node.op, ast.Add) else left - right
        if not self._arithmetic:
            raise NotLiteralError(f"{_source(node)} is computed, not literal")
        if isinstance(left, number) and isinstance(right, number):
            return _fold_numbers(node.op, left, right)
        return self._fold_sequences(node.op, left, right)

    def _fold_sequences(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Mult) and isinstance(left, int):
            left, right = right, left
        is_sequence = isinstance(left, (str, bytes, list, tuple))
        if isinstance(op, ast.Mult) and is_sequence and isinstance(right, int):
            self._take(num_items(left) * max(right, 1), "a repetition")
            return left * right
        if isinstance(op, ast.Add) and is_sequence and type(left) is type(right):
            self._take(num_items(left) + num_items(right), "a concatenation")
            return left + right
        raise NotLiteralError(f"operator {type(op).__name__} on {type(left).__name__} is not folded")

    def _construct(self, node: ast.Call) -> Any:
        name = _dotted(node.func)
        constructor = _CONSTRUCTORS.get(name)
        if constructor is None:
            raise NotLiteralError(f"a call of {_source(node.func)} is not a literal")
        if name.rsplit(".", 1)[-1] == "defaultdict":
            return self._defaultdict(node)
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise NotLiteralError("'*' in the arguments of a constructor")
        keywords = {keyword.arg or "**": self._read(keyword.value) for keyword in node.keywords}
        if "**" in keywords or (keywords and constructor not in (dict, OrderedDict, Counter)):
            raise NotLiteralError(f"keyword arguments of {name} are not literal")
        arguments = [_bounded(self._read(argument), name) for argument in node.args]
        if name != "range":
            self._take(sum(len(part) for part in arguments if hasattr(part, "__len__")), name)
        return constructor(*arguments, **keywords)

    def _defaultdict(self, node: ast.Call) -> dict[Any, Any]:
        first = node.args[0] if node.args else ast.Constant(value=None)
        factory_ok = (isinstance(first, ast.Constant) and first.value is None) or (
            isinstance(first, ast.Name) and first.id in ("int", "float", "str", "list", "set", "dict", "tuple", "bool")
        )
        if not factory_ok or node.keywords or len(node.args) > 2:
            raise NotLiteralError("defaultdict takes a builtin type and one literal here")
        return dict(self._read(node.args[1])) if len(node.args) == 2 else {}


def _bounded(value: Any, name: str) -> Any:
    if name in _SIZED_BY_INT and not hasattr(value, "__len__"):
        raise NotLiteralError(f"{name} of {type(value).__name__} is not a literal")
    if name.endswith("Fraction") and isinstance(value, str) and not _RATIO_TEXT.fullmatch(value):
        raise NotLiteralError("Fraction takes 'n', 'n/d' or 'n.d' of at most 400 digits")
    if name.endswith("Fraction") and isinstance(value, Decimal):
        raise NotLiteralError("Fraction of a Decimal may be too large")
    return value


def _fold_numbers(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
        if right > 0 and left.bit_length() * right > MAX_INT_BITS:
            raise NotLiteralError(f"a power of more than {MAX_INT_BITS} bits")
        return left**right
    fold = _NUMBER_FOLDS.get(type(op))
    if fold is None:
        raise NotLiteralError(f"operator {type(op).__name__} is not folded")
    value = fold(left, right)
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        raise NotLiteralError(f"a number of more than {MAX_INT_BITS} bits")
    return value


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _source(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else text[:77] + "..."


_NUMBER_FOLDS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_SIZED_BY_INT = frozenset({"list", "tuple", "set", "frozenset", "bytes", "bytearray", "deque", "collections.deque"})
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (list, tuple, set, frozenset, dict, float, complex, range, bytes, bytearray)},
    **LIBRARY_NAMES,
    **{f"collections.{name}": LIBRARY_NAMES[name] for name in ("Counter", "OrderedDict", "defaultdict", "deque")},
    "decimal.Decimal": Decimal,
    "fractions.Fraction": Fraction,
}
