"""The interface of a reference solution: its callables, their parameters, which of them are async."""

import ast
import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ValueFormatError
from ..values.literals import INPUT_ENTRY, LiteralReader
from .case import Kind

_NO_SHAPE_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "cache", "lru_cache", "cached_property"})
_UNTRUSTED = "<untrusted>"
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of ``parse_untrusted``; nesting too deep is one."""
# Invalid escapes and the like, common in generated code, and errors under -W error. By file name because
# warnings.catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", module=_UNTRUSTED)
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one callable, as far as they are known without running it."""

    positional: tuple[str, ...]
    num_positional_only: int
    keyword_only: tuple[str, ...]
    defaults: dict[str, Any]
    """Literal defaults only."""
    has_varargs: bool

    def bind(self, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """One form for all spellings of the same arguments, literal defaults filled in."""
        if len(arguments) > len(self.positional) and not self.has_varargs:
            return list(arguments), keywords  # the call will raise; keep it apart from the well-formed ones
        bound: dict[str, Any] = dict(zip(self.positional, arguments, strict=False))
        extra = list(arguments[len(self.positional) :])
        named = set(self.positional[self.num_positional_only :]) | set(self.keyword_only)
        # Given twice: the call will raise, and must not pass for one that does not.
        if clash := sorted(named & set(bound) & set(keywords)):
            return list(arguments), keywords, clash
        bound |= {name: value for name, value in keywords.items() if name in named}
        bound = self.defaults | bound
        return bound, extra, {name: value for name, value in keywords.items() if name not in named}

    def by_position(self, arguments: Sequence[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The same arguments with as many as possible given by position; the rest by name, in the signature's order.

        Nothing is filled in or left out: a program may have defaults of its own.
        """
        placed, named = list(arguments), dict(keywords)
        for place, name in enumerate(self.positional):
            if place < len(arguments):
                if name in named and place >= self.num_positional_only:
                    break  # given twice: the call will raise
            elif name in named and place >= self.num_positional_only:
                placed.append(named.pop(name))
            else:
                break
        known = (*self.positional[self.num_positional_only :], *self.keyword_only)
        order = {name: place for place, name in enumerate(known)}
        return placed, dict(sorted(named.items(), key=lambda item: order.get(item[0], len(order))))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A top-level name that a test may call."""

    parameters: Parameters | None = None
    """Unknown for imported names, decorated functions and inherited constructors."""
    is_async: bool = False
    returns_nothing: bool = False
    """A function whose text never returns a value, so that its result is None whatever it does."""
    methods: "dict[str, EntryPoint]" = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    """Methods and attributes that a test may read: what only the reference's text names is not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The entry points of one reference solution."""

    entry_points: dict[str, EntryPoint]
    kind: Kind = Kind.FUNCTIONS

    @classmethod
    def of(cls, reference: str, names: Sequence[str] = (), *, kind: Kind = Kind.FUNCTIONS) -> "Interface":
        """Read the reference's text; of a program that reads standard input nothing is to be read.

        ``names`` restricts the entry points; empty means all at top level.

        ``Stack.items`` among them lets tests read that attribute of ``Stack``'s objects. Other attributes than fields
        and the constructor's parameters are the reference's own affair: another program need not have them.

        A reference that does not parse yields the given names without parameters.
        """
        if kind is Kind.STDIN:
            return cls(entry_points={INPUT_ENTRY: EntryPoint()}, kind=kind)
        read = [name.partition(".")[::2] for name in names if "." in name]
        names = list(dict.fromkeys(name.partition(".")[0] for name in names))
        try:
            found = _top_level(parse_untrusted(reference))
            if not names:  # helpers of the reference, which a candidate need not have
                found = {name: entry for name, entry in found.items() if not name.startswith("_")}
        except PARSE_ERRORS:
            found = {}
        if names:
            found = {name: found.get(name, EntryPoint()) for name in names}
        for owner, attribute in read:
            found[owner] = replace(found[owner], members=found[owner].members | {attribute})
        return cls(entry_points=found, kind=kind)


def parse_untrusted(text: str) -> ast.Module:
    """``ast.parse`` without the compiler's warnings about style, which are not for our log.

    Raises:
        PARSE_ERRORS: the text does not parse.
    """
    # CPython counts the depth of all threads' trees in one place and may take another thread's parsing for a mistake of
    # its own (seen once with 3.11.7; python/cpython#106905). Nothing is wrong with the text then.
    for _ in range(5):
        with contextlib.suppress(SystemError):
            return ast.parse(text, filename=_UNTRUSTED)
    return ast.parse(text, filename=_UNTRUSTED)


def _top_level(module: ast.Module) -> dict[str, EntryPoint]:
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    found: dict[str, EntryPoint] = {}
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = _function(node, skip_first=False)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = _class(node, classes)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            lambda_entry = EntryPoint(parameters=_parameters(node.value.args, skip_first=False))
            found |= {target.id: lambda_entry for target in node.targets if isinstance(target, ast.Name)}
    return found


def _decorators(node: _FunctionNode) -> set[str]:
    names = set()
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.add(target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "?"))
    return names


def _function(node: _FunctionNode, *, skip_first: bool) -> EntryPoint:
    decorators = _decorators(node)
    # An unknown decorator may take other arguments than the function below it.
    if not decorators <= _NO_SHAPE_DECORATORS:
        return EntryPoint()
    own = list(_own_parts(node))
    is_generator = any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in own)
    returned = [part.value for part in own if isinstance(part, ast.Return) and part.value is not None]
    return EntryPoint(
        parameters=_parameters(node.args, skip_first=skip_first and "staticmethod" not in decorators),
        is_async=isinstance(node, ast.AsyncFunctionDef) and not is_generator,
        returns_nothing=not is_generator
        and all(isinstance(value, ast.Constant) and value.value is None for value in returned),
    )


def _own_parts(node: _FunctionNode) -> Iterator[ast.AST]:
    """Everything in a function's body but what belongs to functions and classes inside it."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(part))


def _parameters(arguments: ast.arguments, *, skip_first: bool) -> Parameters:
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    defaults: dict[str, Any] = {}
    given = zip(positional[::-1], arguments.defaults[::-1], strict=False)
    keyword_only = [parameter.arg for parameter in arguments.kwonlyargs]
    for name, default in (
        *given,
        *zip(keyword_only, arguments.kw_defaults, strict=True),
    ):
        if default is not None:
            try:
                defaults[name] = LiteralReader(arithmetic=False).read(default)
            except ValueFormatError:
                continue  # then leaving the argument out is a spelling of its own
    dropped = 1 if skip_first else 0
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
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes and base.id not in seen | {node.name}:
            inherited = _class(classes[base.id], classes, seen | {node.name})
            methods |= inherited.methods
            members |= inherited.members
            constructor = inherited.parameters
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            methods[part.name] = _function(part, skip_first=True)
            members.add(part.name)
            stored |= _stored_attributes(part)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            members.add(part.target.id)
        elif isinstance(part, ast.Assign):
            members |= {target.id for target in part.targets if isinstance(target, ast.Name)}
    if "__init__" in methods:
        constructor = methods["__init__"].parameters
    if constructor:
        # Attributes named like parameters follow from the constructor's call; others are the reference's own affair.
        members |= stored & {*constructor.positional, *constructor.keyword_only}
    return EntryPoint(
        parameters=constructor,
        methods=methods,
        members=frozenset(members),
    )


def _stored_attributes(method: _FunctionNode) -> set[str]:
    if not method.args.args:
        return set()
    owner = method.args.args[0].arg
    return {
        part.attr
        for part in ast.walk(method)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == owner
    }
