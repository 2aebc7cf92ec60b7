"""The callables of a reference solution and their parameters, read from the source without executing it."""

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
from .needs import PARSE_ERRORS as PARSE_ERRORS

_NO_SHAPE_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "cache", "lru_cache", "cached_property"})
_UNTRUSTED = "<untrusted>"
MAX_PARSED_CHARS = 65_536
"""Longest program or response that the trusted process parses, in characters."""
# Generated code often causes warnings, for example about invalid escapes. With ``-W error``, these warnings would be
# errors. The filter selects warnings by the file name, because warnings.catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", module=_UNTRUSTED)
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters of one callable. A method's parameters do not include ``self``."""

    positional: tuple[str, ...]
    num_positional_only: int
    keyword_only: tuple[str, ...]
    defaults: dict[str, Any]
    """Maps a parameter's name to the value of its default. Defaults that are no literals are left out."""
    has_varargs: bool

    @property
    def _nameable(self) -> tuple[str, ...]:
        """Names of the parameters that a call can pass as keywords, in the signature's order."""
        return *self.positional[self.num_positional_only :], *self.keyword_only

    def bind(self, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        """Return a form of the arguments that all spellings share. Literal defaults are filled in.

        Every dict in this form is a value of the call.
        """
        num_positional = len(self.positional)
        # A call with too many arguments, or with one argument twice, will raise an error. The form of such a call must
        # differ from the forms of all other calls.
        if len(arguments) > num_positional and not self.has_varargs:
            return arguments, sorted(keywords.items())
        bound = dict(zip(self.positional, arguments, strict=False))
        nameable = self._nameable
        if given_twice := sorted(bound.keys() & keywords & set(nameable)):
            return arguments, sorted(keywords.items()), given_twice
        others: dict[str, Any] = {}
        for name, value in keywords.items():
            if name in nameable:
                bound[name] = value
            else:
                others[name] = value
        return sorted((self.defaults | bound).items()), arguments[num_positional:], sorted(others.items())

    def by_position(
        self,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        """Make as many keyword arguments as possible positional, and sort the others in the signature's order.

        Defaults are neither filled in nor removed, because another program may have other defaults.
        """
        placed, named = list(arguments), dict(keywords)
        for position, name in enumerate(self.positional):
            is_placed = position < len(arguments)
            is_named = name in named and position >= self.num_positional_only
            if is_placed and is_named:
                break  # the argument is given twice, so the call will raise
            if not is_placed and not is_named:
                break  # the argument is left out, so later arguments cannot be positional
            if is_named:
                placed.append(named.pop(name))
        ordered: dict[str, Any] = {}
        for name in self._nameable:
            if name in named:
                ordered[name] = named.pop(name)
        return placed, ordered | named


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A top-level name that a test may call."""

    parameters: Parameters | None = None
    """None if the parameters are unknown: for an imported name, an unknown decorator or a constructor of another
    module."""
    is_async: bool = False
    returns_nothing: bool = False
    """The function's source never returns a value, so its result is always None."""
    methods: "dict[str, EntryPoint]" = field(default_factory=dict)
    members: frozenset[str] = frozenset()
    """Names of the methods and attributes that a test may use. A candidate need not have any other attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The entry points of one reference solution."""

    entry_points: dict[str, EntryPoint]
    kind: Kind = Kind.FUNCTIONS

    @classmethod
    def of(
        cls,
        reference: str,
        names: Sequence[str] = (),
        *,
        kind: Kind = Kind.FUNCTIONS,
    ) -> "Interface":
        """Read a reference's entry points. If the reference reads standard input, ``run`` is its only entry point.

        Args:
            reference: source of the reference solution. If the source does not parse, the entry points are ``names``
                without parameters.
            names: names of the entry points; empty means all public names at top level. ``Stack.items`` also lets tests
                read the attribute ``items`` of ``Stack``'s objects. By default, tests may use an object's methods and
                fields, and attributes with the name of a constructor's parameter. A candidate need not have any other
                attributes.
            kind: how tests use a program.
        """
        if kind is Kind.STDIN:
            return cls(entry_points={INPUT_ENTRY: EntryPoint()}, kind=kind)
        try:
            found = _top_level(parse_untrusted(reference))
        except PARSE_ERRORS:
            found = {}
        entry_points: dict[str, EntryPoint] = {}
        if not names:
            # A candidate need not have the reference's private helpers.
            names = [name for name in found if not name.startswith("_")]
        for name in names:
            owner, _, attribute = name.partition(".")
            entry = entry_points.get(owner) or found.get(owner, EntryPoint())
            if attribute:
                entry = replace(entry, members=entry.members | {attribute})
            entry_points[owner] = entry
        return cls(entry_points=entry_points, kind=kind)


def parse_untrusted(text: str) -> ast.Module:
    """Parse a text, and keep Python's warnings about this text out of our log.

    Raises:
        PARSE_ERRORS: the text does not parse.
    """
    # CPython counts the depth of all threads' trees in one variable, so another thread's parsing can cause a
    # SystemError here (seen once with 3.11.7; python/cpython#106905). The text is correct, so it is parsed again.
    for _ in range(5):
        with contextlib.suppress(SystemError):
            return ast.parse(text, filename=_UNTRUSTED)
    return ast.parse(text, filename=_UNTRUSTED)


def parse_program(text: str) -> ast.Module:
    """Parse a program or a response, which anybody may have written, if it has at most ``MAX_PARSED_CHARS``.

    Raises:
        PARSE_ERRORS: the text does not parse; ``ValueError`` if it is too large.
    """
    if len(text) > MAX_PARSED_CHARS:
        raise ValueError(f"too large: {len(text)} characters, and at most {MAX_PARSED_CHARS} are parsed")
    return parse_untrusted(text)


def _top_level(module: ast.Module) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    classes: dict[str, ast.ClassDef] = {}
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = node
    read: dict[str, EntryPoint] = {}
    for node in module.body:
        if isinstance(node, _FunctionNode):
            found[node.name] = _function(node, skip_first=False)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = _class(classes[node.name], classes, read)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            parameters = _parameters(node.value.args, skip_first=False)
            for name in _plain_names(node.targets):
                found[name] = EntryPoint(parameters=parameters)
    return found


def _plain_names(targets: list[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _function(node: _FunctionNode, *, skip_first: bool) -> EntryPoint:
    decorators = set()
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        decorators.add(last_name(decorator))
    # An unknown decorator may change the parameters of the function.
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
    skip_first = skip_first and "staticmethod" not in decorators
    return EntryPoint(
        parameters=_parameters(node.args, skip_first=skip_first),
        is_async=isinstance(node, ast.AsyncFunctionDef) and not is_generator,
        returns_nothing=not is_generator and not returns_value,
    )


def _own_parts(node: _FunctionNode) -> Iterator[ast.AST]:
    """Yield all nodes of a function's body, except nodes inside nested functions and classes."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, _FunctionNode | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(part))


def _parameters(arguments: ast.arguments, *, skip_first: bool) -> Parameters:
    positional = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = [parameter.arg for parameter in arguments.kwonlyargs]
    # ``arguments.defaults`` belongs to the last positional parameters.
    with_default = positional[len(positional) - len(arguments.defaults) :]
    names = [*with_default, *keyword_only]
    nodes = [*arguments.defaults, *arguments.kw_defaults]
    defaults: dict[str, Any] = {}
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue  # this keyword-only parameter has no default
        # If the default is not a literal, f() and f(default) count as two different calls.
        with contextlib.suppress(ValueFormatError):
            defaults[name] = LiteralReader(arithmetic=False).read(node)
    num_skipped = 1 if skip_first else 0
    return Parameters(
        positional=tuple(positional[num_skipped:]),
        num_positional_only=max(0, len(arguments.posonlyargs) - num_skipped),
        keyword_only=tuple(keyword_only),
        defaults=defaults,
        has_varargs=arguments.vararg is not None,
    )


def _class(node: ast.ClassDef, classes: dict[str, ast.ClassDef], read: dict[str, EntryPoint]) -> EntryPoint:
    """Read a class once. ``read`` holds the classes that have been read."""
    if node.name in read:
        return read[node.name]
    read[node.name] = EntryPoint()  # a hostile class may inherit from itself
    methods: dict[str, EntryPoint] = {}
    members: set[str] = set()
    stored: set[str] = set()
    constructor: Parameters | None = None
    for base in node.bases:
        name = base.id if isinstance(base, ast.Name) else ""
        # A base class of another module is unknown, so tests cannot use the members of such a base class.
        if name not in classes:
            continue
        inherited = _class(classes[name], classes, read)
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
        # A test may use a stored attribute only if a constructor's parameter has the attribute's name. A candidate need
        # not have any other attributes.
        parameters = {*constructor.positional, *constructor.keyword_only}
        members |= stored & parameters
    read[node.name] = EntryPoint(parameters=constructor, methods=methods, members=frozenset(members))
    return read[node.name]


def _stored_attributes(method: _FunctionNode) -> Iterator[str]:
    """Yield names of the attributes that a method assigns on its own object."""
    first_parameters = [parameter.arg for parameter in method.args.args[:1]]
    for part in ast.walk(method):
        match part:
            case ast.Attribute(ast.Name(owner), attribute, ast.Store()):
                if owner in first_parameters:
                    yield attribute
