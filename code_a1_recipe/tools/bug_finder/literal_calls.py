"""Separates a call from its literal arguments, so that the call can be written with other arguments."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox import ValueFormatError
from sandbox.text import LiteralReader, spell

from ...errors import PARSE_ERRORS

_RUNS_ASYNC = ("asyncio.run", "__import__('asyncio').run")


@dataclass(frozen=True, kw_only=True)
class LiteralCall:
    """A call's syntax tree with a placeholder for each argument, and the values of the arguments."""

    tree: ast.expr
    placeholders: list[ast.Name]
    """The nodes of the tree that stand for the arguments."""
    values: list[Any]
    """The arguments in order. ``Stack([1]).push(2)`` has two calls; the arguments of the inner call, ``Stack([1])``,
    come first. In each call, keyword arguments come last."""

    @property
    def text(self) -> str:
        """Source of the call. It shows the arguments' types: ``1``, ``1.0`` and ``True`` give three different texts."""
        for placeholder, value in zip(self.placeholders, self.values, strict=True):
            placeholder.id = spell(value)
        return ast.unparse(self.tree)

    def with_values(self, changed: Mapping[int, Any]) -> "LiteralCall":
        """Make the same call with some arguments changed. ``changed`` maps an index in ``values`` to the new value."""
        values = [changed.get(index, value) for index, value in enumerate(self.values)]
        return replace(self, values=values)


def take_apart(text: str, entry_points: Collection[str]) -> LiteralCall | None:
    """Separate the arguments of a call from its syntax tree.

    Args:
        text: canonical text (``sandbox.Call.text``) of a call that passed the gate, such as ``f([1], n=2)``,
            ``Stack([1]).size()``, ``sorted(f(3))[0]``, ``await f(1)``.
        entry_points: names of the functions and classes under test.

    Returns:
        The call in parts; None if an argument is no literal, or if the text calls no entry point.

    Example:
        >>> call = take_apart("sorted(f([3, 1], n=2))", {"f"})
        >>> call.values[0], call.with_values({1: 0}).text
        ([3, 1], 'sorted(f([3, 1], n=0))')
    """
    read = LiteralReader(arithmetic=True).read
    placeholders: list[ast.Name] = []
    values = []

    def take(argument: ast.expr) -> ast.Name:
        values.append(read(argument))
        placeholders.append(ast.Name(""))
        return placeholders[-1]

    try:
        tree = ast.parse(text, mode="eval").body
        for node in _calls_with_arguments(tree, entry_points):
            node.args = list(map(take, node.args))
            for keyword in node.keywords:
                keyword.value = take(keyword.value)
    except PARSE_ERRORS:
        return None
    return LiteralCall(tree=tree, placeholders=placeholders, values=values)


def _calls_with_arguments(node: ast.expr, entry_points: Collection[str]) -> list[ast.Call]:
    """List the calls whose arguments may change: the call of the entry point, then the method calls on its result."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in entry_points:
            return [node]
        case ast.Call(func=ast.Attribute()) if ast.unparse(node.func) not in _RUNS_ASYNC:
            inner_calls = _calls_with_arguments(node.func, entry_points)
            return [*inner_calls, node]
        # Code around the result, such as `sorted(..., reverse=True)`, an index or asyncio.run, does not change.
        case (
            ast.Call(args=[inner, *_])
            | ast.Await(value=inner)
            | ast.Attribute(value=inner)
            | ast.Subscript(value=inner)
        ):
            return _calls_with_arguments(inner, entry_points)
    raise ValueFormatError(f"{ast.unparse(node)} calls no entry point")
