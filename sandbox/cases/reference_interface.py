"""The callables of a reference solution and their parameters, read from its text."""

import ast
import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ValueFormatError
from ..values.literals import INPUT_ENTRY, LiteralReader
from .case import Kind
from .condition import last_name

_NO_SHAPE_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "cache", "lru_cache", "cached_property"})
_UNTRUSTED = "<untrusted>"
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of ``parse_untrusted``. Nesting that is too deep is among them."""
# Generated code often has invalid escapes and the like, whose warnings would be errors under ``-W error``. The filter
# goes by file name, because warnings.catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", module=_UNTRUSTED)
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of one callable, as far as its text shows them."""

    positional: tuple[str, ...]
    num_positional_only: int
    keyword_only: tuple[str, ...]
    defaults: dict[str, Any]
    """Only defaults that are literals."""
    has_varargs: bool

    @property
    def _nameable(self) -> tuple[str, ...]:
        """Parameters that a call can give by name, in the signature's order."""
        return *self.positional[self.num_positional_only :], *self.keyword_only

    def bind(self, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """Return one form for all spellings of the same arguments, with literal defaults filled in."""
        num_positional = len(self.positional)
        # This call and the one with a clash will raise. Their forms differ from the forms of calls that do not.
        if len(arguments) > num_positional and not self.has_varargs:
            return arguments, keywords
        bound = dict(zip(self.positional, arguments, strict=False))
        nameable = self._nameable
        if clash := sorted(bound.keys() & keywords & set(nameable)):
            return arguments, keywords, clash
        others: dict[str, Any] = {}
        for name, value in keywords.items():
            (bound if name in nameable else others)[name] = value
        return self.defaults | bound, arguments[num_positional:], others

    def by_position(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Move as many arguments as possible to their positions; the rest follows by name, in the signature's order.

        Nothing is filled in or left out, because a program may have defaults of its own.
        """
        placed, named = list(arguments), dict(keywords)
        for place, name in enumerate(self.positional):
            is_given = place < len(arguments)
            is_named = name in named and place >= self.num_positional_only
            if is_given == is_named:
                break  # the argument is left out, or given twice, so that the call will raise
            if is_named:
                placed.append(named.pop(name))
        ordered = {name: named.pop(name) for name in self._nameable if name in named}
        return placed, ordered | named


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A top-level name that a test may call."""

    parameters: Parameters | None = None
    """Unknown (None) for imported names, decorated functions and inherited constructors."""
    is_async: bool = False
    returns_nothing: bool = False
    """The function's text never returns a value, so that its result is always None."""
    methods: "dict[str, EntryPoint]" = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    """Methods and attributes that a test may read. Another program need not have the other attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The entry points of one reference solution."""

    entry_points: dict[str, EntryPoint]
    kind: Kind = Kind.FUNCTIONS

    @classmethod
    def of(cls, reference: str, names: Sequence[str] = (), *, kind: Kind = Kind.FUNCTIONS) -> "Interface":
        """Read the reference's text. A program that reads standard input has the one entry point ``run``.

        ``names`` restricts the entry points; empty means all public names at top level. ``Stack.items`` among them
        lets tests read that attribute of ``Stack``'s objects. Without it, they may read methods, fields and attributes
        named like the constructor's parameters, because another program need not have the others.

        A reference that does not parse yields the given names without parameters.
        """
        if kind is Kind.STDIN:
            return cls(entry_points={INPUT_ENTRY: EntryPoint()}, kind=kind)
        try:
            found = _top_level(parse_untrusted(reference))
            if not names:  # a candidate need not have the reference's private helpers
                found = {name: entry for name, entry in found.items() if not name.startswith("_")}
        except PARSE_ERRORS:
            found = {}
        if not names:
            return cls(entry_points=found, kind=kind)
        entry_points: dict[str, EntryPoint] = {}
        for name in names:
            owner, _, attribute = name.partition(".")
            entry = entry_points.get(owner) or found.get(owner, EntryPoint())
            if attribute:
                entry = replace(entry, members=entry.members | {attribute})
            entry_points[owner] = entry
        return cls(entry_points=entry_points, kind=kind)


def parse_untrusted(text: str) -> ast.Module:
    """Parse a text without the compiler's warnings about style, which do not belong in our log.

    Raises:
        PARSE_ERRORS: the text does not parse.
    """
    # CPython counts the depth of all threads' trees in one place, so that another thread's parsing can raise a
    # SystemError here (seen once with 3.11.7; python/cpython#106905). The text is not at fault, and is parsed again.
    for _ in range(5):
        with contextlib.suppress(SystemError):
            return ast.parse(text, filename=_UNTRUSTED)
    return ast.parse(text, filename=_UNTRUSTED)


def _top_level(module: ast.Module) -> dict[str, EntryPoint]:
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    found: dict[str, EntryPoint] = {}
    for node in module.body:
        if isinstance(node, _FunctionNode):
            found[node.name] = _function(node, skip_first=False)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = _class(node, classes)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            entry = EntryPoint(parameters=_parameters(node.value.args, skip_first=False))
            found |= dict.fromkeys(_plain_names(node.targets), entry)
    return found


def _plain_names(targets: list[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _function(node: _FunctionNode, *, skip_first: bool) -> EntryPoint:
    decorators = set()
    for decorator in node.decorator_list:
        decorators.add(last_name(decorator.func if isinstance(decorator, ast.Call) else decorator))
    # An unknown decorator may take other arguments than the function below it.
    if not decorators <= _NO_SHAPE_DECORATORS:
        return EntryPoint()
    is_generator = returns_value = False
    for part in _own_parts(node):
        match part:
            case ast.Yield() | ast.YieldFrom():
                is_generator = True
            case ast.Return(None | ast.Constant(None)):
                pass
            case ast.Return():
                returns_value = True
    return EntryPoint(
        parameters=_parameters(node.args, skip_first=skip_first and "staticmethod" not in decorators),
        is_async=isinstance(node, ast.AsyncFunctionDef) and not is_generator,
        returns_nothing=not is_generator and not returns_value,
    )


def _own_parts(node: _FunctionNode) -> Iterator[ast.AST]:
    """Yield all nodes of a function's body except the inside of nested functions and classes."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, _FunctionNode | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(part))


def _parameters(arguments: ast.arguments, *, skip_first: bool) -> Parameters:
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = [parameter.arg for parameter in arguments.kwonlyargs]
    # Python lists the defaults of the last positional parameters alone, hence both lists from their ends.
    written = dict(zip(positional[::-1], arguments.defaults[::-1], strict=False))
    for name, keyword_default in zip(keyword_only, arguments.kw_defaults, strict=True):
        if keyword_default:
            written[name] = keyword_default
    defaults: dict[str, Any] = {}
    for name, default in written.items():
        # Without a literal default, leaving the argument out counts as a call of its own.
        with contextlib.suppress(ValueFormatError):
            defaults[name] = LiteralReader(arithmetic=False).read(default)
    dropped = int(skip_first)
    return Parameters(
        positional=tuple(positional[dropped:]),
        num_positional_only=max(0, len(arguments.posonlyargs) - dropped),
        keyword_only=tuple(keyword_only),
        defaults=defaults,
        has_varargs=arguments.vararg is not None,
    )


def _class(node: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: frozenset[str] = frozenset()) -> EntryPoint:
    methods: dict[str, EntryPoint] = {}
    members: set[str] = set()
    stored: set[str] = set()
    constructor: Parameters | None = None
    seen |= {node.name}  # a hostile text may let classes inherit in a circle
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes.keys() - seen:
            # Bases from other modules are unknown, so that tests cannot name their members.
            inherited = _class(classes[base.id], classes, seen)
            methods |= inherited.methods
            members |= inherited.members
            constructor = inherited.parameters
    for part in node.body:
        if isinstance(part, _FunctionNode):
            methods[part.name] = _function(part, skip_first=True)
            members.add(part.name)
            stored.update(_stored_attributes(part))
        elif isinstance(part, ast.AnnAssign):
            members.update(_plain_names([part.target]))
        elif isinstance(part, ast.Assign):
            members.update(_plain_names(part.targets))
    if "__init__" in methods:
        constructor = methods["__init__"].parameters
    if constructor:
        # An attribute named like a parameter follows from the constructor's call. Another program need not have others.
        members |= stored & {*constructor.positional, *constructor.keyword_only}
    return EntryPoint(
        parameters=constructor,
        methods=methods,
        members=frozenset(members),
    )


def _stored_attributes(method: _FunctionNode) -> Iterator[str]:
    first_parameters = [parameter.arg for parameter in method.args.args[:1]]
    for part in ast.walk(method):
        match part:
            case ast.Attribute(ast.Name(owner), attribute, ast.Store()) if owner in first_parameters:
                yield attribute
