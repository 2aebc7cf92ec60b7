"""A call with literal arguments, taken apart: change an argument, write the call again."""

import ast
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from sandbox import LiteralReader, ValueFormatError, spell

_RUNS_ASYNC = ("asyncio.run", "__import__('asyncio').run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument that may be changed."""

    place: int
    """Which of the call's argument lists it stands in: ``Stack([1]).push(2)`` has two."""
    name: str
    """Its keyword; empty for a positional one."""
    value: Any

    @property
    def text(self) -> str:
        return f"{self.name}={spell(self.value)}" if self.name else spell(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralCall:
    """The text of a call between its argument lists, and the arguments."""

    pieces: tuple[str, ...]
    """``pieces[i]`` stands before argument list i, the last piece after all of them."""
    arguments: tuple[Argument, ...]
    """In the order of the argument lists, positional ones first in each."""

    @property
    def text(self) -> str:
        """Source of the call; types are kept (``1``, ``1.0`` and ``True`` are three texts)."""
        lists: list[list[str]] = [[] for _ in self.pieces[1:]]
        for argument in self.arguments:
            lists[argument.place].append(argument.text)
        inner = [f"{piece}({', '.join(texts)})" for piece, texts in zip(self.pieces, lists, strict=False)]
        return "".join([*inner, self.pieces[-1]])

    def with_values(self, values: dict[int, Any]) -> "LiteralCall":
        """The same call with other values of some arguments, by their index."""
        changed = (
            replace(argument, value=values[index]) if index in values else argument
            for index, argument in enumerate(self.arguments)
        )
        return replace(self, arguments=tuple(changed))


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
    reader = _Reader(entry_points)
    try:
        reader.read(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return LiteralCall(pieces=tuple(reader.pieces), arguments=tuple(reader.arguments))


class _Reader:
    """Reads from the inside out: the call of the entry point first, then what is done with its result."""

    def __init__(self, entry_points: Collection[str]) -> None:
        self._entry_points = entry_points
        self._literals = LiteralReader(arithmetic=True)
        self.pieces = [""]
        self.arguments: list[Argument] = []

    def read(self, node: ast.expr) -> None:
        if isinstance(node, ast.Await):
            self.read(node.value)
            self.pieces[0] = f"await {self.pieces[0]}"
        elif isinstance(node, ast.Attribute):
            self.read(node.value)
            self.pieces[-1] += f".{node.attr}"
        elif isinstance(node, ast.Subscript):
            self.read(node.value)
            self.pieces[-1] += f"[{ast.unparse(node.slice)}]"
        elif isinstance(node, ast.Call):
            self._read_call(node)
        else:
            raise ValueFormatError(f"{ast.unparse(node)} calls no entry point")

    def _read_call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in self._entry_points:
            self.pieces[-1] += node.func.id
            self._read_arguments(node)
        elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func) not in _RUNS_ASYNC:
            self.read(node.func)
            self._read_arguments(node)
        elif node.args:  # a reader, or asyncio.run: what stands beside the result is left as it is
            self.read(node.args[0])
            beside = [ast.unparse(part) for part in (*node.args[1:], *node.keywords)]
            self.pieces[0] = f"{ast.unparse(node.func)}({self.pieces[0]}"
            self.pieces[-1] += f"{''.join(f', {part}' for part in beside)})"
        else:
            raise ValueFormatError(f"{ast.unparse(node)} calls no entry point")

    def _read_arguments(self, node: ast.Call) -> None:
        place = len(self.pieces) - 1
        given = [("", part) for part in node.args] + [(part.arg or "**", part.value) for part in node.keywords]
        self.arguments += [Argument(place=place, name=name, value=self._literals.read(value)) for name, value in given]
        self.pieces.append("")
