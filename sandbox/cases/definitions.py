"""Names that a program defines, and the program without its examples.

The parser accepts some texts that Python's compiler refuses (``def f(a, a)``), and some texts that are nested too deep
for the functions of this module. For such a text, these functions return no names, or None. They never raise an error.
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
"""Finds code that may keep state: decorators, classes, assignments to variables of other scopes or to attributes, and
default arguments."""
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BUILTINS = {*dir(builtins), "__file__"}
_SETTINGS = (
    "random.seed",
    "sys.setrecursionlimit",
    "sys.set_int_max_str_digits",
    "threading.stack_size",
)
"""Functions that change how definitions run. A call of such a function does not count as an example."""


def defined_names(module: ast.Module) -> set[str]:
    """Collect names that the program binds at top level, also inside ``if``, ``try``, ``with`` and loops.

    Imports count only inside another statement, as in ``try: import numpy``.
    """
    names: set[str] = set()
    with contextlib.suppress(RecursionError):
        for statement in module.body:
            # A block of tests may begin with `from solution import add`. This import defines nothing.
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                names.update(_bound(statement))
    return names


def imported_names(module: ast.Module) -> set[str]:
    """Collect names that a program imports at top level, but not inside another statement."""
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names.update(_bound(statement))
    return names


def missing_names(module: ast.Module) -> set[str]:
    """Collect names that the program reads as global variables, but never binds. Other code may define these names."""
    try:
        missing = _read(module) - _BUILTINS
        for statement in module.body:
            missing.difference_update(_bound(statement))
        return missing
    except PARSE_ERRORS:
        return set()


def with_solution(source: str, methods: Collection[str]) -> str:
    """Unless the program has a class ``Solution``, add one with the program's functions that ``methods`` names.

    LiveCodeBench's judge, too, accepts a function where a method is expected.
    """
    try:
        module = parse_untrusted(source)
    except PARSE_ERRORS:
        return source
    if "Solution" in defined_names(module):
        return source
    lines = []
    for node in module.body:
        if not isinstance(node, ast.FunctionDef) or node.name not in methods:
            continue
        value = node.name
        first_parameters = [parameter.arg for parameter in node.args.args[:1]]
        # A function whose first parameter is `self` must get the object. Any other function must not get the object.
        if first_parameters != ["self"]:
            value = f"staticmethod({value})"
        lines.append(f"    {node.name} = {value}\n")
    if not lines:
        return source
    return "".join([source, "\n\nclass Solution:\n", *lines])


@dataclass(frozen=True, slots=True)
class Definitions:
    """A program without its examples."""

    source: str
    needs_no_examples: bool
    """The whole program has neither code that may keep state nor a slow import. So a long example may be stopped
    early."""


def without_examples(source: str, names: Collection[str]) -> Definitions | None:
    """Keep a program's functions and classes, and the statements that define the names they use.

    Returns:
        The kept statements in their order. None if the program defines none of ``names``, if no statement is left out,
        or if the parser refuses the source.
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
    # A needed statement may need other statements: a function reads a table, a loop fills the table, and a constant
    # ends the loop.
    while needed := [statement for statement in rest if _makes(statement, names, kept, imported)]:
        kept += needed
        rest = [statement for statement in rest if statement not in needed]
    if not rest:
        return None
    body = [statement for statement in module.body if statement in kept]
    definitions = ast.unparse(ast.Module(body, type_ignores=[]))
    plain_kinds = _DEFINITIONS | ast.Import | ast.ImportFrom
    is_plain = all(isinstance(statement, plain_kinds) for statement in kept)
    text = ast.unparse(module)
    imports_quickly = sys.stdlib_module_names >= set(_IMPORTED.findall(text))
    needs_no_examples = is_plain and imports_quickly and not _STATE.search(text)
    return Definitions(definitions, needs_no_examples)


def _makes(
    statement: ast.stmt,
    names: Collection[str],
    kept: list[ast.stmt],
    imported: set[str],
) -> bool:
    """Tell whether a statement makes or changes one of ``names``, or a name that a kept statement reads."""
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        return False  # `if __name__ == "__main__":` runs the program as a script
    # A call in an assignment does not count as a change: `total = items.pop()` belongs to an example.
    may_call = isinstance(statement, ast.Expr | ast.For | ast.While)
    changed = set(changed_names(statement, heeds_calls=may_call, imported=imported))
    if not changed.isdisjoint(names):
        return True
    return any(changed & _read(other) for other in kept)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield names that a statement, or a statement inside it, binds in the scope of the outer statement."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return  # names in the function's or class's body belong to another scope
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return  # names in the lambda or comprehension belong to another scope
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def changed_names(
    statement: ast.AST,
    *,
    heeds_calls: bool,
    imported: Collection[str] = frozenset(),
) -> Iterator[str]:
    """Yield names that a statement binds, and names whose values it may change by an item, attribute or method.

    Args:
        statement: any statement.
        heeds_calls: a method call counts as a change of its object.
        imported: names of modules. A function of a module may change an argument, as in ``heapq.heapify(heap)``, but
            not the module.
    """
    yield from _bound(statement)
    for node in ast.walk(statement):
        owner = _changed_value(node, heeds_calls=heeds_calls)
        while isinstance(owner, ast.Subscript | ast.Attribute):
            owner = owner.value
        if not isinstance(owner, ast.Name):
            continue
        if isinstance(node, ast.Call) and owner.id in imported:
            yield from (given.id for given in node.args if isinstance(given, ast.Name))
        else:
            yield owner.id


def _changed_value(node: ast.AST, *, heeds_calls: bool) -> ast.expr | None:
    """Return the expression whose value a node changes in part, or None if the node changes no value."""
    match node:
        case ast.Subscript(owner, ctx=ast.Store() | ast.Del()):
            return owner
        case ast.Attribute(owner, ctx=ast.Store() | ast.Del()):
            return owner
        case ast.Call(ast.Attribute(owner)) if heeds_calls:
            return owner
    return None


def _read(node: ast.Module | ast.stmt) -> set[str]:
    """Collect global names that a module or statement reads, also in functions and classes inside."""
    table = symtable.symtable(ast.unparse(node), "<program>", "exec")
    names = set()
    tables = [table]
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        for symbol in inner.get_symbols():
            # At top level every name is global, though symtable calls some of them local.
            is_global = inner is table or symbol.is_global()
            if is_global and symbol.is_referenced():
                names.add(symbol.get_name())
    return names


def _is_setting(statement: ast.stmt) -> bool:
    """Tell whether a statement is a call of ``_SETTINGS``, ``from __future__ import`` or ``from module import *``."""
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function) in _SETTINGS
        case ast.ImportFrom(module="__future__"):
            return True
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            return True
    return False
