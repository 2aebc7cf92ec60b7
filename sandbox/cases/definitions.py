"""What a program defines, and what of it the definitions need: its examples left out.

The parser takes texts that Python then refuses (``def f(a, a)``) or that are too deep to walk. Nothing is known of such
a program's names, and none of the functions here raises.
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
"""Decorators, classes, variables of other scopes, attributes of functions or modules, defaults."""
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BUILTINS = {*dir(builtins), "__file__"}
_SETTINGS = (
    "random.seed",
    "sys.setrecursionlimit",
    "sys.set_int_max_str_digits",
    "threading.stack_size",
)
"""Calls that change how definitions run, so that they are no examples."""


def defined_names(module: ast.Module) -> set[str]:
    """Names that the program itself makes at top level, also below ``if``, ``try``, ``with`` and loops: no imports."""
    names: set[str] = set()
    with contextlib.suppress(RecursionError):
        for statement in module.body:
            # `from solution import add` in a block of tests defines nothing.
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                names.update(_bound(statement))
    return names


def imported_names(module: ast.Module) -> set[str]:
    """Names that statements at the very top level import."""
    return {name for one in module.body if isinstance(one, ast.Import | ast.ImportFrom) for name in _bound(one)}


def missing_names(module: ast.Module) -> set[str]:
    """Names that the program reads from its top level and never binds there: other code may define them."""
    try:
        return _read(module).difference(_BUILTINS, *map(_bound, module.body))
    except PARSE_ERRORS:
        return set()


def with_solution(source: str, methods: Collection[str]) -> str:
    """A program of functions, where a class ``Solution`` with some of these methods is asked for, with that class.

    LiveCodeBench's judge takes either, too.
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
            # One that was written as a method is bound by the class; a function would get the object as an argument.
            has_self = [one.arg for one in node.args.args][:1] == ["self"]
            lines.append(f"    {node.name} = {node.name if has_self else f'staticmethod({node.name})'}\n")
    return "".join([source, "\n\nclass Solution:\n", *lines]) if lines else source


@dataclass(frozen=True, slots=True)
class Definitions:
    """What is left of a program without its examples."""

    source: str
    needs_no_examples: bool
    """By its text, the whole program may be stopped early: no example could fill a state, and no import is slow."""


def without_examples(source: str, names: Collection[str]) -> Definitions | None:
    """The functions and classes of a program that defines one of ``names``, and what makes the names that they read.

    Returns:
        The rest in its order; None where no name is defined, nothing is left out, or the parser refuses the source.
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
    # A statement that is needed may need others in turn: a table that a loop fills, and the bound of that loop.
    while needed := [one for one in rest if _makes(one, names, kept, imported)]:
        kept += needed
        rest = [one for one in rest if one not in needed]
    if not rest:
        return None
    body = [statement for statement in module.body if statement in kept]
    is_plain = all(isinstance(one, _DEFINITIONS | ast.Import | ast.ImportFrom) for one in kept)
    text = ast.unparse(module)
    is_quick = is_plain and not _STATE.search(text) and sys.stdlib_module_names >= set(_IMPORTED.findall(text))
    return Definitions(ast.unparse(ast.Module(body, type_ignores=[])), is_quick)


def _makes(
    statement: ast.stmt,
    names: Collection[str],
    kept: list[ast.stmt],
    imported: set[str],
) -> bool:
    """It makes, or changes, one of the names or something that a kept statement reads."""
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        return False  # what a script does when it is called
    # The value of an assignment changes nothing that counts: `total = items.pop()` is an example's.
    may_call = isinstance(statement, ast.Expr | ast.For | ast.While)
    changed = set(changed_names(statement, heeds_calls=may_call, imported=imported))
    return not changed.isdisjoint(names) or any(changed & _read(one) for one in kept)


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds in the scope where it stands, and those of the statements below it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def changed_names(statement: ast.AST, *, heeds_calls: bool, imported: Collection[str] = frozenset()) -> Iterator[str]:
    """Names that a statement binds or whose values it may change: an item, an attribute, a call of a method.

    Args:
        statement: any.
        heeds_calls: calls of methods count.
        imported: modules, whose functions change what they are given (``heapq.heapify(heap)``) and not the module.
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
    """Names that a statement, or what it defines, reads from the program's top level."""
    table = symtable.symtable(ast.unparse(node), "<program>", "exec")
    names = set()
    tables = [table]
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        for symbol in inner.get_symbols():
            # At top level every name is global, and symtable calls some of them local.
            if symbol.is_referenced() and (inner is table or symbol.is_global()):
                names.add(symbol.get_name())
    return names


def _is_setting(statement: ast.stmt) -> bool:
    """A call that changes how definitions run, ``from __future__`` or ``from module import *``."""
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function) in _SETTINGS
        case ast.ImportFrom(module="__future__") | ast.ImportFrom(names=[ast.alias(name="*")]):
            return True
    return False
