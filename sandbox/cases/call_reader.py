"""Read the left side of an assert: its call in canonical spelling, and the call's key."""

import ast
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ..errors import UnencodableError, ValueFormatError
from ..values.alike import alike_value, alike_words
from ..values.encoding import canonical_key
from ..values.literals import (
    INPUT_ENTRY,
    LIBRARY,
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
"""Builtins that may wrap the call under test. ``_reads_plainly`` decides which further arguments are allowed."""
# Negative digits could round every result to 0, and rounding a Fraction to many digits would take long.
_MAX_ROUNDED_DIGITS = 15
_MAX_CANONICAL_TEXT = 4_096
"""Limit in characters. If the canonical text of a call would be longer, as for ``[0] * 10_000``, the call keeps the
literals of the assert."""
_KEY_BYTES = 16


class RejectedError(Exception):
    """A text is not a valid case. The gate turns this error into a ``Rejection``."""

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
    """The part of the left side that has been read so far."""

    name: str
    """The function or class that the first call names."""
    text: str
    """Canonical source of the call, and of the expressions that read the call's result."""
    steps: list[Any] = field(default_factory=list)
    """First the bound arguments of the first call, then the members that the test calls or reads on the object."""
    entry: EntryPoint = field(default_factory=EntryPoint)
    """The class of the object, with the methods that the next step may name. Empty if the result is not such an
    object."""
    awaitable: bool = False
    """The result of the last step must be awaited."""
    reads: bool = False
    """An expression around the call reads its result."""
    shows_nothing: bool = False
    """The last step calls a method that returns nothing, although the test could read other members of the object."""


def _digest(value: Any) -> bytes:
    return blake2b(canonical_key(value), digest_size=_KEY_BYTES).digest()


class CallReader:
    """Reads the left side of one assert."""

    def __init__(self, interface: Interface, assert_chars: int) -> None:
        self._interface = interface
        self._assert_chars = assert_chars
        self._literals = LiteralReader(arithmetic=True)

    def read(self, node: ast.expr) -> tuple[Call, bytes]:
        """Read one call.

        Returns:
            The call, and the ``key`` of a ``Case`` that makes this call.

        Raises:
            RejectedError: the node does not call an entry point, or an argument is not a literal.
        """
        if self._interface.kind is Kind.STDIN:
            return self._input_call(node)
        node, awaited = _strip_await(node)
        target = self._target(node)
        awaited = awaited or target.awaitable
        is_in_place = self._interface.kind is Kind.IN_PLACE
        if is_in_place and (awaited or not self._has_argument(node)):
            raise _no_call("the test must compare the first argument after the call: f(argument, ...) == value")
        if target.shows_nothing and not is_in_place:
            method = target.steps[-1][0]
            raise _no_call(f"{method}() returns nothing in the reference; read the object's state after it")
        try:
            key = _digest((target.name, target.steps))
            alike = bag = _digest((target.name, alike_value(target.steps)))
            if target.text.count("(") > 1 or any(mark in target.text for mark in ("[", "{", "b'", 'b"')):
                bag = _digest((target.name, alike_value(target.steps, is_bag=True)))
        except UnencodableError as error:
            raise _not_literal(error) from error
        expression, uses_library = self._expression(node, target)
        call = Call(
            expression=expression,
            awaited=awaited,
            uses_library=uses_library,
            callee_chars=_callee_chars(expression) if is_in_place else 0,
            alike=alike,
            bag=bag,
            reads=target.reads,
        )
        return call, key

    def _input_call(self, node: ast.expr) -> tuple[Call, bytes]:
        """Read ``run(text)``. The key depends on every character of the text, because the program reads them all."""
        text = None
        match node:
            case ast.Call(ast.Name(name)) if name == INPUT_ENTRY:
                arguments, keywords = self._values(node)
                if len(arguments) == 1 and not keywords:
                    text = arguments[0]
        if not isinstance(text, str):
            raise _no_call(f"a test of a program that reads standard input must be {INPUT_ENTRY}(text) == text")
        expression = f"{INPUT_ENTRY}({text!r})"
        if len(expression) > self._assert_chars:
            raise _not_literal(
                f"an input of {len(expression)} characters, more than limits.assert_chars = {self._assert_chars}"
            )
        alike = _digest(alike_words(text))
        return Call(expression=expression, alike=alike, bag=alike), _digest(text)

    def _has_argument(self, node: ast.expr) -> bool:
        """Tell whether the outermost call is the call under test and can change its first argument."""
        if not isinstance(node, ast.Call) or not node.args:
            return False
        called = node.func
        if isinstance(called, ast.Name) and called.id not in self._interface.entry_points:
            return False
        # Only the value shows that an argument cannot change, because a number has many spellings, such as `5--2`.
        return not isinstance(self._literal(node.args[0]), Hashable)

    def _expression(self, node: ast.expr, target: _Target) -> tuple[str, bool]:
        """Return the source to evaluate, and whether it needs names of the standard library."""
        own_names = self._interface.entry_points.keys()
        # If a question defines a class ``Counter``, tests of the question mean this class and not the library's.
        if not LIBRARY.isdisjoint(own_names):
            return ast.unparse(node), False
        # The canonical text calls builtins such as ``float``. A question may define functions with the same names.
        is_redefined = not SPELLED_BUILTINS.isdisjoint(own_names)
        longest_text = min(_MAX_CANONICAL_TEXT, self._assert_chars)
        if is_redefined or len(target.text) > longest_text:
            return ast.unparse(node), names_library(node)
        # This search avoids parsing, which takes long: most texts contain no library name. The search also finds names
        # inside strings, so the text is parsed after a hit.
        if not any(name in target.text for name in LIBRARY_NAMES):
            return target.text, False
        parsed = ast.parse(target.text, mode="eval")
        return target.text, names_library(parsed)

    def _target(self, node: ast.expr) -> _Target:
        match node:
            case ast.Call(ast.Name(name)):
                return self._named_call(node, name)
            case ast.Call(ast.Attribute(owner, name)):
                target = self._target(owner)
                method = target.entry.methods.get(name, EntryPoint())
                bound, text = self._arguments(node, method.parameters)
                return _step(target, name, [bound], method, text=text)
            case ast.Attribute(owner, name):
                target = self._target(owner)
                return _step(target, name, [], EntryPoint(), text="")
            case ast.Subscript(owner, index):
                target = self._target(owner)
                # ``f(x)[:0] == []`` is true for almost every program.
                if isinstance(index, ast.Slice):
                    raise _no_call("the test takes a slice of the result; compare the whole result")
                target.text += f"[{spell(self._literal(index))}]"
                target.reads = True
                target.entry = EntryPoint()
                return target
        raise _no_call(f"the left side calls no entry point of the question ({_names(self._interface)})")

    def _named_call(self, node: ast.Call, name: str) -> _Target:
        entry = self._interface.entry_points.get(name)
        if entry is not None:
            bound, text = self._arguments(node, entry.parameters)
            return _Target(name, name + text, [bound], entry, awaitable=entry.is_async)
        if name not in _READERS or not node.args:
            raise _no_call(f"{name!r} is not an entry point of the question ({_names(self._interface)})")
        first, *others = node.args
        target = self._target(first)
        further, keywords = self._values(ast.Call(node.func, others, node.keywords))
        if not _reads_plainly(name, further, keywords):
            raise _no_call(f"{name}() has further arguments; compare the whole result")
        if target.awaitable:
            raise _no_call(f"{name}() gets a result that must be awaited first")
        arguments = [target.text, *map(spell, further)]
        target.text = name + _spell_arguments(arguments, keywords)
        target.reads = True
        target.entry = EntryPoint()
        return target

    def _arguments(self, node: ast.Call, parameters: Parameters | None) -> tuple[Any, str]:
        """Return a form of the arguments that does not depend on their spelling, and their canonical text."""
        arguments, keywords = self._values(node)
        if parameters is None:
            text = _spell_arguments(map(spell, arguments), keywords)
            return (arguments, sorted(keywords.items())), text
        placed, named = parameters.by_position(arguments, keywords)
        text = _spell_arguments(map(spell, placed), named)
        return parameters.bind(arguments, keywords), text

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
    assert isinstance(called, ast.Call), "_has_argument has seen a call"
    callee = ast.get_source_segment(expression, called.func)
    return len(callee or "")


def _strip_await(node: ast.expr) -> tuple[ast.expr, bool]:
    """Strip ``await`` or ``asyncio.run``, and tell whether there was one. The judge itself awaits results."""
    match node:
        case ast.Await(awaited):
            return awaited, True
        case ast.Call(ast.Attribute(owner, "run"), [coroutine], []):
            if ast.unparse(owner) in ("asyncio", "__import__('asyncio')"):
                return coroutine, True
    return node, False


def _spell_arguments(positional: Iterable[str], keywords: dict[str, Any]) -> str:
    named = [f"{name}={spell(value)}" for name, value in keywords.items()]
    arguments = ", ".join([*positional, *named])
    return f"({arguments})"


def _step(
    target: _Target,
    attribute: str,
    arguments: list[Any],
    method: EntryPoint,
    *,
    text: str,
) -> _Target:
    """Add one attribute or method call to the target that describes an object under test.

    Args:
        target: the object under test; the function changes this target.
        attribute: the attribute, or the name of the method.
        arguments: a list with one item, the method's bound arguments; empty for an attribute.
        method: the method; an empty entry point for an attribute.
        text: source of the method's arguments; empty for an attribute.
    """
    if attribute.startswith("_"):
        raise _no_call(f"the attribute {attribute!r} is private")
    if attribute not in target.entry.members:
        raise _no_call(f"{attribute!r} is not a member of a class under test; compare the whole result")
    other_members = target.entry.members - {attribute}
    has_others = any(not name.startswith("_") for name in other_members)
    target.steps.append([attribute, *arguments])
    target.text += f".{attribute}{text}"
    target.shows_nothing = method.returns_nothing and has_others
    target.awaitable = method.is_async
    return target


def _reads_plainly(name: str, further: list[Any], keywords: dict[str, Any]) -> bool:
    """Tell whether a builtin may have further arguments after the result.

    Only two builtins may have further arguments: ``sorted`` may have ``reverse``, and ``round`` may have a small number
    of digits.
    """
    if not further and not keywords:
        return True
    if name == "sorted":
        return not further and keywords.keys() <= {"reverse"}
    if name != "round" or keywords or len(further) != 1:
        return False
    digits = further[0]
    return type(digits) is int and 0 <= digits <= _MAX_ROUNDED_DIGITS


def _names(interface: Interface) -> str:
    names = sorted(interface.entry_points)
    if len(names) > 8:
        names = [*names[:8], "..."]
    return ", ".join(names) or "it has none"
