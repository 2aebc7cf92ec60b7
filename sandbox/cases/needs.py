"""Names that statements bind, change and read, and the statements that functions need.

A program's own process uses this module too, so it imports only the standard library.
"""

import ast
import symtable
from collections.abc import Collection, Iterable, Sequence

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of Python's parser and compiler, and of walks, for a text that is wrong, too large or nested too deep."""
MAY_CALL = ast.Expr | ast.For | ast.While
"""Statements in which a method call counts as a change. A call in an assignment does not count as a change:
``total = items.pop()`` belongs to an example."""
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_EXPRESSION_SCOPES = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def bound_names(node: ast.AST) -> set[str]:
    """Collect names that a statement, or a statement inside it, binds in the scope of the outer statement."""
    names: set[str] = set()
    pending = [node]
    while pending:
        part = pending.pop()
        match part:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(part.name)
            case ast.Import() | ast.ImportFrom():
                names.update((alias.asname or alias.name).partition(".")[0] for alias in part.names)
            case ast.Name(ctx=ast.Store()):
                names.add(part.id)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                names |= {node.target.id for node in ast.walk(part) if isinstance(node, ast.NamedExpr)}
        if not isinstance(part, _SCOPES | _EXPRESSION_SCOPES):  # names inside these belong to another scope
            pending.extend(ast.iter_child_nodes(part))
    return names


def changed_names(statement: ast.AST, *, heeds_calls: bool, imported: Collection[str] = frozenset()) -> set[str]:
    """Collect names that a statement binds, and names whose values it may change, as ``changed_values`` does."""
    return bound_names(statement) | changed_values(statement, heeds_calls=heeds_calls, imported=imported)


def changed_values(statement: ast.AST, *, heeds_calls: bool, imported: Collection[str]) -> set[str]:
    """Collect names whose values a statement may change by an item, attribute or method.

    Args:
        statement: any statement.
        heeds_calls: a method call counts as a change of its object.
        imported: names of modules. A function of a module may change an argument, as in ``heapq.heapify(heap)``, but
            not the module.
    """
    names: set[str] = set()
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                names.update(_owner(node))
            case ast.Call(ast.Attribute() as function, arguments) if heeds_calls:
                owner = _owner(function)
                if owner.isdisjoint(imported):
                    names |= owner
                else:
                    names.update(given.id for given in arguments if isinstance(given, ast.Name))
    return names


def _owner(node: ast.expr) -> set[str]:
    """Return ``{"a"}`` for ``a.b[0].c``, and an empty set if the expression begins with no name."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def read_names(node: ast.Module | ast.stmt) -> set[str]:
    """Collect global names that a module or statement reads, also in functions and classes inside.

    Raises:
        PARSE_ERRORS: the compiler refuses the statement, or it is nested too deep.
    """
    table = symtable.symtable(ast.unparse(node), "<program>", "exec")
    names = set()
    tables = [table]
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        for symbol in inner.get_symbols():
            # At top level every name is global, though symtable calls some of them local.
            is_global = inner is table or symbol.is_global()
            # A function with `global count` may do no more than `count += 1`, which counts as no reference.
            if is_global and (symbol.is_referenced() or symbol.is_declared_global()):
                names.add(symbol.get_name())
    return names


def needed(
    body: Sequence[ast.stmt], makes: Sequence[Collection[str]], names: Iterable[str], kept: Iterable[int] = ()
) -> tuple[set[int], set[str]]:
    """Find the statements that make ``names``, and then the statements that make what needed statements read.

    Args:
        body: the statements of a program.
        makes: the names that each statement makes.
        names: the names that are needed first.
        kept: numbers of further statements that are needed.

    Returns:
        The numbers of all needed statements, and all needed names.

    Raises:
        PARSE_ERRORS: as ``read_names``.
    """
    makers: dict[str, list[int]] = {}
    for number, made in enumerate(makes):
        for name in made:
            makers.setdefault(name, []).append(number)
    found = set(kept)
    pending, known = set(names), set[str]()
    for number in found:
        pending |= read_names(body[number])
    while pending:  # each name and each statement is visited once
        name = pending.pop()
        known.add(name)
        for number in makers.pop(name, ()):
            if number not in found:
                found.add(number)
                pending |= read_names(body[number]) - known
    return found, known


class Examples:
    """Finds the examples at a program's top level, that is, the statements that may fail.

    A statement is no example if it binds a name that the functions under test need, directly or through other
    statements. Before all functions under test are bound, a statement that changes the value of such a name is no
    example either. A program that binds no function under test has no examples.

    Args:
        body: the statements of the program.
        names: names of the functions under test; those that the program never binds do not count.
    """

    def __init__(self, body: Sequence[ast.stmt], names: Iterable[str]) -> None:
        self._body = body
        self._bound = [bound_names(statement) for statement in body]
        first: dict[str, int] = {}
        for number, bound in enumerate(self._bound):
            for name in bound:
                first.setdefault(name, number)
        self._asked = first.keys() & set(names)
        self._last_asked = max((first[name] for name in self._asked), default=0)
        _, self._needed = needed(body, self._bound, self._asked)

    def has(self, number: int) -> bool:
        """Tell whether the statement of this number is an example."""
        made = self._bound[number]
        if number < self._last_asked:
            made = made | changed_names(self._body[number], heeds_calls=isinstance(self._body[number], MAY_CALL))
        return bool(self._asked) and self._needed.isdisjoint(made)
