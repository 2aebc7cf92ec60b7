"""Names that a program defines, and the program without its examples.

The parser accepts some texts that Python's compiler refuses (``def f(a, a)``), and some texts that are nested too deep
for the functions of this module. For such a text, these functions return no names, or None. They never raise an error.
"""

import ast
import builtins
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .needs import MAY_CALL, bound_names, changed_names, changed_values, needed, read_names
from .reference_interface import PARSE_ERRORS, parse_program

_IMPORTED = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_MAIN = ("__name__ == '__main__'", "'__main__' == __name__")
_BUILTINS = {*dir(builtins), "__file__"}
_CHANGERS = {"delattr", "eval", "exec", "globals", "locals", "setattr", "vars"}
"""Builtins that may change any name."""
_SETTING = re.compile(
    r"(?:\w+\.)*(?:(?:seed|setrecursionlimit|set_int_max_str_digits|stack_size|setcontext)\(|getcontext\(\)\.\w+ = )|"
    r"from (?:__future__ import|\S+ import \*)"
)
"""Matches statements that change how definitions run, and imports of names that nobody lists. Such a statement is no
example."""


def defined_names(module: ast.Module) -> set[str]:
    """Collect names that the program binds at top level, also inside ``if``, ``try``, ``with`` and loops.

    Imports count only inside another statement, as in ``try: import numpy``.
    """
    names: set[str] = set()
    for statement in module.body:
        # A block of tests may begin with `from solution import add`. This import defines nothing.
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            names |= bound_names(statement)
    return names


def imported_names(module: ast.Module) -> set[str]:
    """Collect names that a program imports at top level, but not inside another statement."""
    names: set[str] = set()
    for statement in module.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names |= bound_names(statement)
    return names


def missing_names(module: ast.Module) -> set[str]:
    """Collect names that the program reads as global variables, but never binds. Other code may define these names."""
    try:
        missing = read_names(module) - _BUILTINS
        for statement in module.body:
            missing -= bound_names(statement)
        return missing
    except PARSE_ERRORS:
        return set()


def with_solution(source: str, methods: Collection[str]) -> str:
    """Unless the program has a class ``Solution``, add one with the program's functions that ``methods`` names.

    LiveCodeBench's judge, too, accepts a function where a method is expected.
    """
    try:
        module = parse_program(source)
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
    """No example can change what the definitions read, so a long example may be stopped early."""


def imports_quickly(source: str) -> bool:
    """Tell whether a text imports only the standard library. The text is only searched, not parsed."""
    return sys.stdlib_module_names >= set(_IMPORTED.findall(source))


def without_examples(source: str, names: Collection[str]) -> Definitions | None:
    """Keep a program's functions and classes, and the statements that define the names they use.

    Returns:
        The kept statements in their order. None if the program defines none of ``names``, if no statement is left out,
        or if the parser refuses the source, also because it is too large.
    """
    try:
        return _without_examples(parse_program(source), names)
    except PARSE_ERRORS:
        return None


def _without_examples(module: ast.Module, names: Collection[str]) -> Definitions | None:
    if defined_names(module).isdisjoint(names):
        return None
    imported = imported_names(module)
    kept = set()
    for number, statement in enumerate(module.body):
        if isinstance(statement, _DEFINITIONS) or _is_setting(statement):
            kept.add(number)
    # A needed statement may need other statements: a function reads a table, a loop fills the table, and a constant
    # ends the loop.
    makes = [_made(statement, imported) for statement in module.body]
    kept, _ = needed(module.body, makes, names, kept)
    if len(kept) == len(module.body):
        return None
    body = [statement for number, statement in enumerate(module.body) if number in kept]
    source = ast.unparse(ast.Module(body, type_ignores=[]))
    examples = [part for number, part in enumerate(module.body) if number not in kept and not _is_main_block(part)]
    try:
        may_change = _may_change(examples, body, names, imported)
    except PARSE_ERRORS:  # an example that the compiler refuses
        may_change = True
    return Definitions(source, not may_change)


def _may_change(
    examples: Sequence[ast.stmt], definitions: Sequence[ast.stmt], names: Collection[str], imported: set[str]
) -> bool:
    """Tell whether examples, or the program's functions that they call, may change what the definitions read.

    What the functions under test change does not count: a test calls them, too. A call that lacks what an example makes
    mostly raises an error, and the judge then runs the whole program.
    """
    helpers: dict[str, ast.stmt] = {}
    variables, known = set[str](), set[str]()
    for statement in definitions:
        bound = bound_names(statement)
        known |= bound
        if isinstance(statement, _DEFINITIONS):
            helpers |= dict.fromkeys(bound.difference(names), statement)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            variables |= bound
    pending: list[ast.stmt | ast.Module] = [ast.Module([*examples], type_ignores=[])]
    seen = set[str]()
    while pending:
        part = pending.pop()
        changed = changed_values(part, heeds_calls=True, imported=imported)
        has_global = any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(part))
        read = read_names(part)
        if has_global or changed & known or read & (variables | _CHANGERS):
            return True
        pending += [helpers[name] for name in (read & helpers.keys()) - seen]
        seen |= read
    return False


def _made(statement: ast.stmt, imported: set[str]) -> set[str]:
    """Collect the names that a statement makes or changes."""
    if _is_main_block(statement):
        return set()
    return changed_names(statement, heeds_calls=isinstance(statement, MAY_CALL), imported=imported)


def _is_main_block(statement: ast.stmt) -> bool:
    """Tell whether a statement is ``if __name__ == "__main__":``, which runs the program as a script."""
    return isinstance(statement, ast.If) and not statement.orelse and ast.unparse(statement.test) in _MAIN


def _is_setting(statement: ast.stmt) -> bool:
    kinds = ast.Expr | ast.Assign | ast.ImportFrom
    return isinstance(statement, kinds) and bool(_SETTING.match(ast.unparse(statement)))
