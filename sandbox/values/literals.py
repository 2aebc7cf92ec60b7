"""Static evaluation of literal expressions. No program code runs, and no large value is built.

Literals are constants, signed numbers, ``1+2j``, containers of literals (``[1, {2}]``), and calls of a few constructors
with literals (``set()``, ``float('inf')``, ``deque([1])``...). An integer with a power, such as ``10 ** 9 + 7``, is a
literal as well, because Python cannot read a decimal integer of more than 4,300 digits. The reader of arguments
(``arithmetic=True``) also evaluates constant arithmetic such as ``[0] * 1000``, up to a limit of items.
"""

import ast
import math
import operator
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..errors import ValueFormatError

MAX_ITEMS = 100_000
"""Limit of the number of items in all computed and constructed values together, including nested items."""
MAX_INT_BITS = 65_536
_MAX_RANGE_END = 1 << 60
"""Limit for the numbers of a range. Python hashes integers modulo 2**61 - 1. So all numbers of
``range(0, 10**24, 2**61 - 1)`` have the same hash, and a set of these numbers would take quadratic time."""
LIBRARY_NAMES: dict[str, Any] = {
    "Counter": Counter,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "OrderedDict": OrderedDict,
    "defaultdict": defaultdict,
    "deque": deque,
}
"""Names of the standard library that literals may use. A program need not import them."""
INPUT_ENTRY = "run"
"""If a program reads standard input, its tests may call only this name. The call runs the whole program."""
NODE_NAMES = ("list_node", "tree_node")
"""Functions that turn a list into LeetCode's linked list or tree. The prelude of a question defines these functions."""
LIBRARY_MODULES = ("collections", "decimal", "fractions", "math")
LIBRARY = frozenset({*LIBRARY_NAMES, *LIBRARY_MODULES})
SPELLED_BUILTINS = frozenset({"bytearray", "complex", "float", "frozenset", "range", "set"})
"""Builtins that the source from ``spell`` may call."""
_MATH_CONSTANTS = {"math.inf": math.inf, "math.nan": math.nan, "math.pi": math.pi, "math.e": math.e}
MAX_DECIMAL_INT_BITS = 14_000
"""Python neither prints nor parses a longer decimal integer (about 4,300 digits). Hexadecimal integers have no such
limit."""
_RATIO_TEXT = re.compile(r"\s*[+-]?\d{1,400}(/\d{1,400}|\.\d{1,400})?\s*")


class Nodes(list[Any]):
    """The values of a linked list or of a tree. A tree's levels follow one another; None is a missing node."""

    made_by: str = ""
    """The name from ``NODE_NAMES`` that was called."""


def names_library(node: ast.AST) -> bool:
    """Tell whether the expression uses names of the standard library, which a program may not have imported."""
    return any(isinstance(part, ast.Name) and part.id in LIBRARY for part in ast.walk(node))


def spell(value: Any) -> str:
    """Return the canonical source of a value of ``LiteralReader``, which reads the same value from this source.

    The source keeps types and the order of dicts, because programs can see both: ``1``, ``1.0`` and ``True`` have
    different sources. The source uses at most the names ``SPELLED_BUILTINS`` and ``LIBRARY_NAMES``.
    """
    kind = type(value)
    if kind is Nodes:
        return f"{value.made_by}({_spell_items(value, list)})"
    if kind in (list, tuple, set, frozenset):
        return _spell_items(value, kind)
    if kind is dict:
        items = [f"{spell(key)}: {spell(item)}" for key, item in value.items()]
        return "{" + ", ".join(items) + "}"
    if kind in (Counter, OrderedDict):
        return f"{kind.__name__}({spell(dict(value))})"
    if kind is defaultdict:
        factory = value.default_factory
        name = factory.__name__ if factory else None
        return f"defaultdict({name}, {spell(dict(value))})"
    if kind is deque:
        return f"deque({spell(list(value))})"
    if kind is int:
        # Python could not read such a long integer in decimal.
        is_long = value.bit_length() >= MAX_DECIMAL_INT_BITS
        return hex(value) if is_long else repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is complex:
        return f"complex({spell(value.real)}, {spell(value.imag)})"
    if kind is Fraction:
        return f"Fraction({spell(value.numerator)}, {spell(value.denominator)})"
    if kind is range:
        return f"range({spell(value.start)}, {spell(value.stop)}, {spell(value.step)})"
    return repr(value)  # None, bool, str, bytes, bytearray, Decimal


def _spell_items(values: Any, kind: type) -> str:
    texts = [spell(value) for value in values]
    if kind is list:
        return f"[{', '.join(texts)}]"
    if kind is tuple:
        comma = "," if len(texts) == 1 else ""
        return f"({', '.join(texts)}{comma})"
    # All spellings of a set must share one text, so its items are sorted.
    display = "{" + ", ".join(sorted(texts)) + "}" if texts else ""
    if kind is frozenset:
        return f"frozenset({display})"
    return display or "set()"


def num_items(value: Any) -> int:
    """Count the items of a value, nested items included."""
    if isinstance(value, dict):
        return 1 + sum(num_items(key) + num_items(item) for key, item in value.items())
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return 1 + sum(map(num_items, value))
    if isinstance(value, (str, bytes, bytearray)):
        return 1 + len(value)
    return 1


class LiteralReader:
    """Reads the literals of one assert. All computed and constructed parts together may have ``MAX_ITEMS`` items.

    A computed integer counts as one item for each 64 bits, because dividing large integers takes quadratic time.
    """

    def __init__(self, *, arithmetic: bool) -> None:
        self._arithmetic = arithmetic
        self._items_left = MAX_ITEMS

    def read(self, node: ast.expr) -> Any:
        """Return the value of ``node``.

        Raises:
            ValueFormatError: some part is not a literal, cannot be evaluated, or is too large. The message names it.
        """
        try:
            return self._read(node)
        except ValueFormatError:
            raise
        except (TypeError, ValueError, ArithmeticError, AttributeError, IndexError) as error:
            raise ValueFormatError(f"does not evaluate: {type(error).__name__}: {error}") from error

    def _take(self, count: int, what: str) -> None:
        self._items_left -= count
        if self._items_left < 0:
            raise ValueFormatError(f"{what} makes more than {MAX_ITEMS} items")

    def _read(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value):
                if value is Ellipsis:
                    raise ValueFormatError("'...' is not a value")
                return value
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.List(items):
                return [self._read(item) for item in items]
            case ast.Tuple(items):
                return tuple([self._read(item) for item in items])
            case ast.Set(items):
                return {self._read(item) for item in items}
            case ast.Dict(keys, values):
                if None in keys:
                    raise ValueFormatError("'**' in a dict display")
                return {self._read(key): self._read(item) for key, item in zip(keys, values, strict=True) if key}
            case ast.Call():
                return self._construct(node)
        source = _source(node)
        if source in _MATH_CONSTANTS:
            return _MATH_CONSTANTS[source]
        raise ValueFormatError(f"{source} is not a literal")

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self._read(node.operand)
        sign = _SIGNS.get(type(node.op))
        if sign and isinstance(value, (int, float, complex, Fraction, Decimal)):
            return sign(value)
        raise ValueFormatError(f"{_source(node)} is not a literal")

    def _binary(self, node: ast.BinOp) -> Any:
        left = self._read(node.left)
        right = self._read(node.right)
        # ``1+2j`` is one literal, though it is written with an operator.
        if isinstance(left, (int, float)) and isinstance(right, complex):
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
        # An expected output must state its value. If the value were computed, the author would not need to predict it.
        if not self._arithmetic and not _has_power(node):
            raise ValueFormatError(f"{_source(node)} is computed, not literal")
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            return self._fold_sequences(node.op, left, right)
        value = _fold_numbers(node.op, left, right)
        if isinstance(value, int):
            self._take(value.bit_length() // 64, "arithmetic on large integers")
        return value

    def _fold_sequences(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Mult) and isinstance(left, int):
            left, right = right, left
        is_sequence = isinstance(left, (str, bytes, list, tuple))
        if is_sequence and isinstance(op, ast.Mult) and isinstance(right, int):
            # The items are counted before the value is built: `[0] * 10**12` would need terabytes.
            self._take(num_items(left) * max(right, 1), "a repetition")
            return left * right
        if is_sequence and isinstance(op, ast.Add) and type(left) is type(right):
            self._take(num_items(left) + num_items(right), "a concatenation")
            return left + right
        raise ValueFormatError(f"operator {type(op).__name__} on {type(left).__name__} is not allowed in a literal")

    def _construct(self, node: ast.Call) -> Any:
        name = _source(node.func)
        match node:
            case ast.Call(_, [ast.List() as values], []) if name in NODE_NAMES:
                nodes = Nodes(self._read(values))
                nodes.made_by = name
                # None stands for LeetCode's empty list or tree.
                return nodes or None
        constructor = _CONSTRUCTORS.get(name)
        if constructor is None:
            raise ValueFormatError(f"a call of {name} is not a literal")
        if constructor is defaultdict:
            return self._defaultdict(node)
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise ValueFormatError("'*' in the arguments of a constructor")
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None or constructor not in (dict, OrderedDict, Counter):
                raise ValueFormatError(f"keyword arguments of {name} are not literal")
            keywords[keyword.arg] = self._read(keyword.value)
        arguments = [self._read(argument) for argument in node.args]
        num_taken = 0
        for argument in arguments:
            _check_argument(argument, constructor, name)
            if hasattr(argument, "__len__"):
                num_taken += len(argument)
        # A range stores only three numbers, so its items need not be counted.
        if constructor is not range:
            self._take(num_taken, name)
        return constructor(*arguments, **keywords)

    def _defaultdict(self, node: ast.Call) -> defaultdict[Any, Any]:
        first, *others = node.args or [ast.Constant(None)]
        is_none = isinstance(first, ast.Constant) and first.value is None
        factory = _FACTORIES.get(first.id) if isinstance(first, ast.Name) else None
        is_known = is_none or factory is not None
        if not is_known or node.keywords or len(others) > 1:
            raise ValueFormatError("defaultdict takes a builtin type and one literal here")
        content = self._read(others[0]) if others else {}
        return defaultdict(factory, dict(content))


def _has_power(node: ast.expr) -> bool:
    """Tell whether a node is a power such as ``2 ** 64``, or combines one power and one integer by +, - or *."""
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult(), right):
            if _is_integer(left):
                return _is_power(right)
            return _is_integer(right) and _is_power(left)
    return _is_power(node)


def _is_power(node: ast.expr) -> bool:
    match _unsigned(node):
        case ast.BinOp(left, ast.Pow(), ast.Constant() as right):
            return _is_integer(left) and _is_integer(right)
    return False


def _unsigned(node: ast.expr) -> ast.expr:
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)) else node


def _is_integer(node: ast.expr) -> bool:
    node = _unsigned(node)
    return isinstance(node, ast.Constant) and type(node.value) is int


def _check_argument(value: Any, constructor: Callable[..., Any], name: str) -> None:
    # ``bytes(10**12)`` would build a terabyte.
    if constructor in _SIZED_BY_INT and not hasattr(value, "__len__"):
        raise ValueFormatError(f"{name} of {type(value).__name__} is not a literal")
    if isinstance(value, range):
        farthest = max(abs(value.start), abs(value.stop))
        if farthest > _MAX_RANGE_END:
            raise ValueFormatError(f"{name} of a range beyond {_MAX_RANGE_END}")
    if constructor is Fraction:
        # A short text such as ``1e10000000`` would give a ratio of megabytes.
        if isinstance(value, str) and not _RATIO_TEXT.fullmatch(value):
            raise ValueFormatError("Fraction takes 'n', 'n/d' or 'n.d' of at most 400 digits")
        if isinstance(value, Decimal):
            raise ValueFormatError("Fraction of a Decimal may be too large")
    is_exact = constructor in (Fraction, Decimal)
    if is_exact and isinstance(value, int) and value.bit_length() > MAX_DECIMAL_INT_BITS:
        raise ValueFormatError(f"{name} of an integer of more than {MAX_DECIMAL_INT_BITS} bits")


def _fold_numbers(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Pow) and isinstance(left, int) and isinstance(right, int):
        # The size is checked before the power is computed, because the power may not fit into memory.
        num_bits = left.bit_length() * right
        if num_bits > MAX_INT_BITS:
            raise ValueFormatError(f"a power of more than {MAX_INT_BITS} bits")
        return left**right
    fold = _NUMBER_FOLDS.get(type(op))
    if fold is None:
        raise ValueFormatError(f"operator {type(op).__name__} is not allowed in a literal")
    value = fold(left, right)
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        raise ValueFormatError(f"a number of more than {MAX_INT_BITS} bits")
    return value


def _source(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else text[:77] + "..."


_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_NUMBER_FOLDS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FACTORY_KINDS = (int, float, str, list, set, dict, tuple, bool)
_FACTORIES: dict[str, type] = {kind.__name__: kind for kind in _FACTORY_KINDS}
_SIZED_BY_INT = (list, tuple, set, frozenset, bytes, bytearray, deque)
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (*_SIZED_BY_INT, dict, float, complex, range)},
    **LIBRARY_NAMES,
    **{f"{kind.__module__}.{name}": kind for name, kind in LIBRARY_NAMES.items()},
}
