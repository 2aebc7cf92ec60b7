"""A call with literal arguments, taken apart: change an argument, write the call again."""

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
    """A call's syntax tree and its arguments, which are written into the tree for the text."""

    tree: ast.expr
    places: list[ast.Name]
    """The nodes that stand in the tree for the arguments."""
    values: list[Any]
    """The arguments, list by list (``Stack([1]).push(2)`` has two lists), positional ones first in each."""

    @property
    def text(self) -> str:
        """Source of the call; types are kept (``1``, ``1.0`` and ``True`` are three texts)."""
        for place, value in zip(self.places, self.values, strict=True):
            place.id = spell(value)
        return ast.unparse(self.tree)

    def with_values(self, changed: Mapping[int, Any]) -> "LiteralCall":
        """The same call with other values of some arguments, by their index."""
        values = [changed.get(index, value) for index, value in enumerate(self.values)]
        return replace(self, values=values)


def take_apart(text: str, entry_points: Collection[str]) -> LiteralCall | None:
    """The arguments of a call that passed the gate (``sandbox.Call.text``).

    Args:
        text: such as ``f([1], n=2)``, ``Stack([1]).size()``, ``sorted(f(3))[0]``, ``await f(1)``.
        entry_points: names of the functions and classes under test.

    Returns:
        None where an argument is no literal, or no call of an entry point is there.

    Example:
        >>> call = take_apart("sorted(f([3, 1], n=2))", {"f"})
        >>> call.values[0], call.with_values({1: 0}).text
        ([3, 1], 'sorted(f([3, 1], n=0))')
    """
    read = LiteralReader(arithmetic=True).read
    places: list[ast.Name] = []
    values = []

    def take(argument: ast.expr) -> ast.Name:
        values.append(read(argument))
        places.append(ast.Name(""))
        return places[-1]

    try:
        tree = ast.parse(text, mode="eval").body
        for node in _argument_lists(tree, entry_points):
            node.args = list(map(take, node.args))
            for keyword in node.keywords:
                keyword.value = take(keyword.value)
    except PARSE_ERRORS:
        return None
    return LiteralCall(tree=tree, places=places, values=values)


def _argument_lists(node: ast.expr, entry_points: Collection[str]) -> list[ast.Call]:
    """From the inside out: the call of the entry point first, then those of methods of its result."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in entry_points:
            return [node]
        case ast.Call(func=ast.Attribute()) if ast.unparse(node.func) not in _RUNS_ASYNC:
            return [*_argument_lists(node.func, entry_points), node]
        # Of a reader, or asyncio.run, what stands beside the result is left as it is.
        case (
            ast.Call(args=[inner, *_])
            | ast.Await(value=inner)
            | ast.Attribute(value=inner)
            | ast.Subscript(value=inner)
        ):
            return _argument_lists(inner, entry_points)
    raise ValueFormatError(f"{ast.unparse(node)} calls no entry point")
