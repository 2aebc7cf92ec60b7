"""Kinds of cases: what a call is given and how a program fails it, the cells of the Mistake Book's archive.

MAP-Elites (Mouret and Clune, arXiv 1504.04909) keeps what is good of every kind, so that one kind cannot push out the
others. Nothing of a call is run here.
"""

import ast
import builtins
import contextlib
import sys
from collections.abc import Sized

from sandbox import parse_untrusted

_UNREADABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
_READS = (ast.Call, ast.Subscript, ast.Attribute, ast.Await)


def cell_of(call: str, outcome: str) -> str:
    """Cell of a case: "kind of input / kind of failure", such as ``int neg, list many / wrong_value``.

    The kind of input is, for each argument, its type with the sign of a number (neg, zero, pos) or the length of a
    text or container (empty, one, many). Equal cells are one object, since a book holds very many.
    """
    kinds = ["unreadable"]
    with contextlib.suppress(*_UNREADABLE):
        (line,) = parse_untrusted(call).body
        if isinstance(line, ast.Expr):
            kinds = [_kind(argument) for argument in _arguments(line.value)]
    return sys.intern(f"{', '.join(kinds) or 'no argument'} / {outcome}")


def _arguments(node: ast.expr) -> list[ast.expr]:
    """Arguments of the call and of the methods called on it, no matter how it is read: 1 of ``abs(f(1)[0])``."""
    arguments: list[ast.expr] = []
    while isinstance(node, _READS):
        if not isinstance(node, ast.Call):
            node = node.value
        elif _is_builtin(node.func) and node.args and isinstance(node.args[0], _READS):
            node = node.args[0]
        else:
            arguments = [*node.args, *(keyword.value for keyword in node.keywords), *arguments]
            node = node.func
    return arguments


def _is_builtin(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and hasattr(builtins, function.id)


def _kind(node: ast.expr) -> str:
    try:
        value = ast.literal_eval(node)
    except _UNREADABLE:  # a constructor, such as set(), or constant arithmetic
        return ast.unparse(node.func) if isinstance(node, ast.Call) else "expression"
    name = type(value).__name__
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{name} {'neg' if value < 0 else 'pos' if value else 'zero'}"
    return f"{name} {('empty', 'one', 'many')[min(len(value), 2)]}" if isinstance(value, Sized) else name
