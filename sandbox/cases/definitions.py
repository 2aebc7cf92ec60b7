"""Names that a program defines, and the program without its examples.

The parser takes texts that Python then refuses (``def f(a, a)``) or that are too deep to walk. The names of such a
program are unknown, and no function here raises.
"""

import ast
import builtins
import contextlib
import re
import symtable
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .reference_interface import PARSE_ERRORS, parse_untrusted

_IMPORTED = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
_STATE = re.compile(r"@|\b(?:class|exec|globals?|nonlocal|setattr|vars)\b|\w\.\w+(?:\[.*\])* [^ ]?= |def .*=")
"""Finds ways to keep state: decorators, classes, variables of other scopes, attributes, default arguments."""
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BUILTINS = {*dir(builtins), "__file__"}
_SETTINGS = (
    "random.seed",
    "sys.setrecursionlimit",
    "sys.set_int_max_str_digits",
    "threading.stack_size",
)
"""Calls that change how definitions run. They are no examples."""


def defined_names(module: ast.Module) -> set[str]:
    """Collect names that the program itself makes at top level, also below ``if``, ``try``, ``with`` and loops.

    Imports at the very top level do not count.
    """
    names: set[str] = set()
    with contextlib.suppress(RecursionError):
        for statement in module.body:
            # A block of tests may begin with `from solution import add`, which defines nothing.
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                names.update(_bound(statement))
    return names


def imported_names(module: ast.Module) -> set[str]:
    """Collect names that statements at the very top level import."""
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names.update(_bound(statement))
    return names


def missing_names(module: ast.Module) -> set[str]:
    """Collect names that the program reads from its top level and never binds there. Other code may define them."""
    try:
        return _read(module).difference(_BUILTINS, *map(_bound, module.body))
    except PARSE_ERRORS:
        return set()


def with_solution(source: str, methods: Collection[str]) -> str:
    """Add a class ``Solution`` that holds the functions with these names, unless the program has such a class.

    LiveCodeBench's judge takes either form as well.
    """
    try:
        module = parse_untrusted(source)
    except PARSE_ERRORS:
        return source
    if "Solution" in defined_names(module):
        return source
    lines = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name in methods:
            # The class must not pass its object to a plain function, but to one that was written as a method.
            has_self = [parameter.arg for parameter in node.args.args[:1]] == ["self"]
            value = node.name if has_self else f"staticmethod({node.name})"
            lines.append(f"    {node.name} = {value}\n")
    return "".join([source, "\n\nclass Solution:\n", *lines]) if lines else source


@dataclass(frozen=True, slots=True)
class Definitions:
    """A program without its examples."""

    source: str
    needs_no_examples: bool
    """The text shows no example that could fill a state, and no slow import: the program may be stopped early."""


def without_examples(source: str, names: Collection[str]) -> Definitions | None:
    """Keep a program's functions and classes, and the statements that define the names they use.

    Returns:
        The kept statements in their order. None if the program defines none of ``names``, if nothing is left out, or
        if the parser refuses the source.
    """
    try:
        return _without_examples(parse_untrusted(source), names)
    except PARSE_ERRORS:
        return None


def _without_examples(module: ast.Module, names: Collection[str]) -> Definitions | None:
    if defined_names(module).isdisjoint(names):
        return None
    kept: list[ast.stmt] = []
    rest: list[ast.stmt] = []
    imported = imported_names(module)
    for statement in module.body:
        is_kept = isinstance(statement, _DEFINITIONS) or _is_setting(statement)
        (kept if is_kept else rest).append(statement)
    # A needed statement may need others in turn: a definition its table, the table a loop, and the loop its bound.
    while needed := [statement for statement in rest if _makes(statement, names, kept, imported)]:
        kept += needed
        rest = [statement for statement in rest if statement not in needed]
    if not rest:
        return None
    body = [statement for statement in module.body if statement in kept]
    plain_kinds = _DEFINITIONS | ast.Import | ast.ImportFrom
    is_plain = all(isinstance(statement, plain_kinds) for statement in kept)
    text = ast.unparse(module)
    is_quick = is_plain and not _STATE.search(text) and sys.stdlib_module_names >= set(_IMPORTED.findall(text))
    return Definitions(ast.unparse(ast.Module(body, type_ignores=[])), is_quick)


def _makes(
    statement: ast.stmt,
    names: Collection[str],
    kept: list[ast.stmt],
    imported: set[str],
) -> bool:
    """Tell whether a statement makes or changes one of the names, or a name that a kept statement reads."""
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        return False  # a script's own run
    # An assignment's value does not count as a change: `total = items.pop()` belongs to an example.
    may_call = isinstance(statement, ast.Expr | ast.For | ast.While)
    changed = set(changed_names(statement, heeds_calls=may_call, imported=imported))
    return not changed.isdisjoint(names) or any(changed & _read(one) for one in kept)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield names that a statement and the statements below it bind in the scope of that statement."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return  # the body has a scope of its own
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return  # names inside stay inside
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def changed_names(statement: ast.AST, *, heeds_calls: bool, imported: Collection[str] = frozenset()) -> Iterator[str]:
    """Yield names that a statement binds, or whose values it may change by an item, an attribute or a method call.

    Args:
        statement: any statement.
        heeds_calls: method calls count as changes.
        imported: modules. Their functions change the arguments (``heapq.heapify(heap)``) and not the module.
    """
    yield from _bound(statement)
    for node in ast.walk(statement):
        owner: ast.expr | None = None
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            owner = node.value
        elif heeds_calls and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
        while isinstance(owner, ast.Subscript | ast.Attribute):
            owner = owner.value
        if isinstance(owner, ast.Name):
            if isinstance(node, ast.Call) and owner.id in imported:
                yield from (given.id for given in node.args if isinstance(given, ast.Name))
            else:
                yield owner.id


def _read(node: ast.Module | ast.stmt) -> set[str]:
    """Collect names that a statement, or a function in it, reads from the program's top level."""
    table = symtable.symtable(ast.unparse(node), "<program>", "exec")
    names = set()
    tables = [table]
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        for symbol in inner.get_symbols():
            # At top level every name is global, though symtable calls some of them local.
            if symbol.is_referenced() and (inner is table or symbol.is_global()):
                names.add(symbol.get_name())
    return names


def _is_setting(statement: ast.stmt) -> bool:
    """Tell whether this is a call of ``_SETTINGS``, ``from __future__`` or ``from module import *``."""
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function) in _SETTINGS
        case ast.ImportFrom(module="__future__") | ast.ImportFrom(names=[ast.alias(name="*")]):
            return True
    return False
