"""A call with literal arguments, taken apart: change an argument, write the call again."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox import LiteralReader, ValueFormatError, spell

from ...errors import PARSE_ERRORS

_RUNS_ASYNC = ("asyncio.run", "__import__('asyncio').run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument that may be changed."""

    place: int
    """Which of the call's argument lists it stands in: ``Stack([1]).push(2)`` has two."""
    name: str
    """Its keyword; empty for a positional one."""
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralCall:
    """A call's syntax tree and its arguments, which stand in the tree only while the text is written."""

    tree: ast.expr
    lists: list[ast.Call]
    """The nodes of the tree that have argument lists, that of the entry point first."""
    arguments: list[Argument]
    """In the order of the argument lists, positional ones first in each."""

    @property
    def text(self) -> str:
        """Source of the call; types are kept (``1``, ``1.0`` and ``True`` are three texts)."""
        for node in self.lists:
            node.args, node.keywords = [], []
        for argument in self.arguments:
            node = self.lists[argument.place]
            value = ast.Name(spell(argument.value))  # written as it is
            if argument.name:
                node.keywords.append(ast.keyword(argument.name, value))
            else:
                node.args.append(value)
        return ast.unparse(self.tree)

    def with_values(self, values: Mapping[int, Any]) -> "LiteralCall":
        """The same call with other values of some arguments, by their index."""
        arguments = list(self.arguments)
        for index, value in values.items():
            arguments[index] = replace(arguments[index], value=value)
        return replace(self, arguments=arguments)


def take_apart(text: str, entry_points: Collection[str]) -> LiteralCall | None:
    """The arguments of a call that passed the gate (``sandbox.Call.text``).

    Args:
        text: such as ``f([1], n=2)``, ``Stack([1]).size()``, ``sorted(f(3))[0]``, ``await f(1)``.
        entry_points: names of the functions and classes under test.

    Returns:
        None where an argument is no literal, or no call of an entry point is there.

    Example:
        >>> call = take_apart("sorted(f([3, 1], n=2))", {"f"})
        >>> call.arguments[0].value, call.with_values({1: 0}).text
        ([3, 1], 'sorted(f([3, 1], n=0))')
    """
    read = LiteralReader(arithmetic=True).read
    arguments = []
    try:
        tree = ast.parse(text, mode="eval").body
        lists = _argument_lists(tree, entry_points)
        for place, node in enumerate(lists):
            given = [("", value) for value in node.args] + [(part.arg or "**", part.value) for part in node.keywords]
            arguments += [Argument(place=place, name=name, value=read(value)) for name, value in given]
    except PARSE_ERRORS:
        return None
    return LiteralCall(tree=tree, lists=lists, arguments=arguments)


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
