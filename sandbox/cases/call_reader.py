"""Reads the left side of an assert: which call it makes, in one text for all spellings, and the key of that call."""

import ast
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from ..errors import UnencodableError, ValueFormatError
from ..values.alike import alike_containers
from ..values.encoding import canonical_key
from ..values.literals import (
    INPUT_ENTRY,
    LIBRARY_MODULES,
    LIBRARY_NAMES,
    SPELLED_BUILTINS,
    LiteralReader,
    names_library,
    spell,
)
from .case import Call, Kind, RejectionReason
from .reference_interface import EntryPoint, Interface, Parameters

_READERS = frozenset(
    ["list", "tuple", "set", "frozenset", "dict", "sorted", "len", "sum", "min", "max", "abs", "round", "float"]
)
"""Builtins that may wrap the call under test, with nothing beside it but what ``_reads_plainly`` lists."""
_MAX_ROUNDED_DIGITS = 15
_MAX_CANONICAL_TEXT = 4_096
"""Characters; a call whose folded literals (``[0] * 10_000``) make it longer keeps its own text."""
_KEY_BYTES = 16
_LIBRARY = frozenset({*LIBRARY_NAMES, *LIBRARY_MODULES})


class RejectedError(Exception):
    """The text is no case. Its gate makes a ``Rejection`` of it."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _no_call(detail: str) -> RejectedError:
    return RejectedError(RejectionReason.NO_CALL, detail)


def _not_literal(detail: object) -> RejectedError:
    return RejectedError(RejectionReason.ARGUMENT_NOT_LITERAL, str(detail))


@dataclass(slots=True)
class _Target:
    """The call of the left side, spelling removed."""

    name: str
    text: str
    """The call and its read in canonical spelling."""
    steps: list[Any] = field(default_factory=list)
    """Bound arguments of the root call, then method calls on an object under test."""
    entry: EntryPoint = field(default_factory=EntryPoint)
    """Holds the methods that the next step may name: the class under test. A function has none."""
    awaitable: bool = False
    shows_nothing: bool = False
    """The last step is a method without a result, of an object that has more to show."""


class ReadCall(NamedTuple):
    """A call, and what ``Case`` says of its spelling."""

    call: Call
    key: bytes
    family: bytes


def _digest(value: Any) -> bytes:
    return blake2b(canonical_key(value), digest_size=_KEY_BYTES).digest()


class CallReader:
    """Reads the left side of one assert."""

    def __init__(self, interface: Interface, assert_chars: int) -> None:
        self._interface = interface
        self._assert_chars, self._longest_text = assert_chars, min(_MAX_CANONICAL_TEXT, assert_chars)
        self._literals = LiteralReader(arithmetic=True)

    def read(self, node: ast.expr) -> ReadCall:
        """Read one call.

        Raises:
            RejectedError: it is no call of what is under test, or an argument is no literal.
        """
        if self._interface.kind is Kind.STDIN:
            return self._input_call(node)
        node, awaited = _strip_await(node)
        target = self._target(node)
        is_in_place = self._interface.kind is Kind.IN_PLACE
        if is_in_place and (awaited or target.awaitable or not self._has_argument(node)):
            raise _no_call("what is compared is the first argument after the call: f(argument, ...) == what it is then")
        if target.shows_nothing and not is_in_place:
            raise _no_call(
                f"{target.steps[-1][0]}() returns nothing in the reference; read the object's state after it"
            )
        try:
            key = _digest((target.name, target.steps))
            family = _digest((target.name, alike_containers(target.steps)))
        except UnencodableError as error:
            raise _not_literal(error) from error
        expression, uses_library = self._expression(node, target)
        awaited = awaited or target.awaitable
        callee_chars = _callee_chars(expression) if is_in_place else 0
        call = Call(expression=expression, awaited=awaited, uses_library=uses_library, callee_chars=callee_chars)
        return ReadCall(call, key, family)

    def _input_call(self, node: ast.expr) -> ReadCall:
        """``run(text)``: the program gets these very characters, and other ones are another case."""
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == INPUT_ENTRY:
            arguments, keywords = self._values(node)
        if len(arguments) != 1 or keywords or not isinstance(arguments[0], str):
            raise _no_call(
                f"a program that reads standard input is tested by {INPUT_ENTRY}(text) == text, and nothing else"
            )
        expression = f"{INPUT_ENTRY}({arguments[0]!r})"
        if len(expression) > self._assert_chars:
            raise _not_literal(
                f"an input of {len(expression)} characters, more than limits.assert_chars = {self._assert_chars}"
            )
        key = _digest(arguments[0])
        return ReadCall(Call(expression=expression), key, key)

    def _has_argument(self, node: ast.expr) -> bool:
        """The outermost thing is a call of what is under test, with an argument by position that can change."""
        if not isinstance(node, ast.Call) or not node.args:
            return False
        if isinstance(node.func, ast.Name) and node.func.id not in self._interface.entry_points:
            return False
        # By its value, since a number may be written in many ways (`5--2`) and none of them can change.
        return not isinstance(self._literal(node.args[0]), Hashable)

    def _expression(self, node: ast.expr, target: _Target) -> tuple[str, bool]:
        """The text to evaluate, and whether it needs the library's names."""
        # The canonical text names constructors. It holds only where those names mean the library's.
        own_names = self._interface.entry_points.keys()
        if not _LIBRARY.isdisjoint(own_names):  # the question defines its own Counter, say: then it means that one
            return ast.unparse(node), False
        if len(target.text) > self._longest_text or not SPELLED_BUILTINS.isdisjoint(own_names):
            return ast.unparse(node), names_library(node)
        may_name = any(name in target.text for name in LIBRARY_NAMES)  # also inside a string
        return target.text, may_name and names_library(ast.parse(target.text, mode="eval"))

    def _target(self, node: ast.expr) -> _Target:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._named_call(node, node.func.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = self._target(node.func.value)
            method = target.entry.methods.get(node.func.attr, EntryPoint())
            bound, text = self._arguments(node, method.parameters)
            return _step(target, node.func.attr, [bound], method, text=text)
        if isinstance(node, ast.Attribute):
            return _step(self._target(node.value), node.attr, [], EntryPoint(), text="")
        if isinstance(node, ast.Subscript):
            target = self._target(node.value)
            # ``f(x)[:0]`` would be right about any program.
            if isinstance(node.slice, ast.Slice):
                raise _no_call("a slice of the result; compare the whole result")
            target.text += f"[{spell(self._literal(node.slice))}]"
            target.entry = EntryPoint()
            return target
        raise _no_call(f"the left side is no call of {_names(self._interface)}")

    def _named_call(self, node: ast.Call, name: str) -> _Target:
        entry = self._interface.entry_points.get(name)
        if entry is not None:
            bound, text = self._arguments(node, entry.parameters)
            return _Target(
                name=name,
                text=name + text,
                steps=[bound],
                entry=entry,
                awaitable=entry.is_async,
            )
        if name in _READERS and node.args:
            target = self._target(node.args[0])
            beside, keywords = self._values(ast.Call(func=node.func, args=node.args[1:], keywords=node.keywords))
            if not _reads_plainly(name, beside, keywords):
                raise _no_call(f"{name}() with further arguments; compare the whole result")
            # A coroutine is no value to wrap.
            if target.awaitable:
                raise _no_call(f"{name}() of a result that must be awaited first")
            target.text = f"{name}{_spell_arguments([target.text, *map(spell, beside)], keywords)}"
            target.entry = EntryPoint()
            return target
        raise _no_call(f"{name!r} is none of {_names(self._interface)}")

    def _arguments(self, node: ast.Call, parameters: Parameters | None) -> tuple[Any, str]:
        """The arguments in the form that is equal for all spellings, and their canonical text."""
        arguments, keywords = self._values(node)
        if parameters is None:
            return (arguments, keywords), _spell_arguments(map(spell, arguments), keywords)
        placed, named = parameters.by_position(arguments, keywords)
        return parameters.bind(arguments, keywords), _spell_arguments(map(spell, placed), named)

    def _values(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        arguments = [self._literal(argument) for argument in node.args]
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _not_literal("'**' in the arguments")
            keywords[keyword.arg] = self._literal(keyword.value)
        return arguments, keywords

    def _literal(self, node: ast.expr) -> Any:
        try:
            return self._literals.read(node)
        except ValueFormatError as error:
            raise _not_literal(error) from error


def _callee_chars(expression: str) -> int:
    called = ast.parse(expression, mode="eval").body
    assert isinstance(called, ast.Call), "the reader has seen that"
    return len(ast.get_source_segment(expression, called.func) or "")


def _strip_await(node: ast.expr) -> tuple[ast.expr, bool]:
    """Remove ``await X``, ``asyncio.run(X)`` and ``__import__("asyncio").run(X)``; the judge awaits itself."""
    if isinstance(node, ast.Await):
        return node.value, True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run":
        runs = ast.unparse(node.func.value) in ("asyncio", "__import__('asyncio')")
        if runs and len(node.args) == 1 and not node.keywords:
            return node.args[0], True
    return node, False


def _spell_arguments(positional: Iterable[str], keywords: dict[str, Any]) -> str:
    return f"({', '.join([*positional, *(f'{name}={spell(value)}' for name, value in keywords.items())])})"


def _step(target: _Target, attribute: str, arguments: list[Any], method: EntryPoint, *, text: str) -> _Target:
    """One attribute or method of an object under test; ``text`` spells the arguments."""
    if attribute.startswith("_"):
        raise _no_call(f"the attribute {attribute!r} is private")
    if attribute not in target.entry.members:
        raise _no_call(f"{attribute!r} is no member of a class under test; compare the whole result")
    others = {name for name in target.entry.members - {attribute} if not name.startswith("_")}
    target.steps.append([attribute, *arguments])
    target.text += f".{attribute}{text}"
    target.shows_nothing = method.returns_nothing and bool(others)
    target.awaitable = method.is_async
    return target


def _reads_plainly(name: str, beside: list[Any], keywords: dict[str, Any]) -> bool:
    """True for a read with nothing beside the result, ``sorted(x, reverse=...)`` and ``round(x, few digits)``."""
    if name == "sorted":
        return not beside and not set(keywords) - {"reverse"}
    if name == "round" and len(beside) == 1 and not keywords:
        return type(beside[0]) is int and 0 <= beside[0] <= _MAX_ROUNDED_DIGITS
    return not beside and not keywords


def _names(interface: Interface) -> str:
    names = sorted(interface.entry_points)
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") or "the question (it has no entry points)"
