"""Find the conditions that test code asserts with ``assert``, pytest or unittest, also in loops over literal lists."""

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from .condition import last_name
from .needs import changed_names

_MAX_WORK = 100_000
"""Limit of work on one module: statements that are read, plus syntax nodes that are copied. Nested loops multiply
both."""
_TEST_NAME = re.compile(r"^[Tt]est|(?:^|_)tests?(?:_|$)|Tests?(?:Case)?$|^main$")
"""Finds names of tests: ``test_add``, ``TestAdd``, ``TotalTests``, ``run_tests``, but not ``latest``."""
_Node = TypeVar("_Node", bound=ast.expr)
_Known = dict[str, ast.expr]
"""Maps a variable's name to the expression that was assigned to it."""
_Asserted = Iterator[tuple[ast.stmt, ast.expr]]


def asserted(
    module: ast.Module,
    *,
    only_tests: bool,
    in_place: Collection[str] = frozenset(),
) -> _Asserted:
    """Yield each ``assert``, and each call of a method such as ``self.assertEqual``, with its condition.

    The conditions come in written order. A condition in a ``for`` loop over a literal list or tuple comes once for each
    item. So does a condition in a function with ``pytest.mark.parametrize``. Each variable in a condition is replaced
    by the expression that was assigned to the variable. A variable stays if a later statement may have changed the
    variable's value. A condition without replaced variables is not copied.

    Args:
        module: parsed tests.
        only_tests: skip functions and classes that do not have the name of a test.
        in_place: names of functions that change their first argument. After the statement ``f(x)``, the variable ``x``
            is replaced by the call ``f(x)``.
    """
    yield from _Reader(only_tests, in_place).conditions(module, {})


class _Reader:
    def __init__(self, only_tests: bool, in_place: Collection[str]) -> None:
        self._only_tests = only_tests
        self._in_place = in_place
        self._work_left = _MAX_WORK

    def conditions(self, node: ast.AST, known: _Known) -> _Asserted:
        for statement in ast.iter_child_nodes(node):
            self._work_left -= 1
            assigned: _Known = {}
            match statement:
                case ast.expr():
                    continue
                case ast.Assert(test=test):
                    yield statement, self._put_in(test, known)
                case ast.Expr(ast.Call(ast.Attribute(attr=name)) as call):
                    if name.startswith("assert"):
                        yield statement, self._put_in(call, known)
                case ast.With(items=[item, *_]) if "aises" in ast.unparse(item):
                    pass  # conditions inside `with pytest.raises(...)` are expected to fail
                case ast.Assign([ast.Name(name)], value):
                    if not isinstance(value, ast.Name):
                        assigned[name] = self._put_in(value, known)
                case ast.Expr(ast.Call(ast.Name(called), [ast.Name(name), *_]) as call):
                    # After this statement, the variable holds the argument that the call has changed.
                    if called in self._in_place:
                        assigned[name] = self._put_in(call, known)
                case _:
                    yield from self._below(statement, known)
            if known:
                for name in _changed(statement):
                    known.pop(name, None)
            known |= assigned

    def _below(self, statement: ast.AST, known: _Known) -> _Asserted:
        """Yield the conditions inside a compound statement, once for each round of a loop."""
        if self._only_tests and not _is_test(statement):
            return
        bound, rounds = self._rounds(statement, known)
        unknown = set(bound)
        for part in ast.walk(statement):
            if isinstance(part, ast.arg):
                unknown.add(part.arg)
        if isinstance(statement, ast.For | ast.While):
            # In a later round, variables that the loop changes may no longer have their values from before the loop.
            unknown |= _changed(statement)
        outside = {name: value for name, value in known.items() if name not in unknown}
        for number, values in enumerate(rounds):
            # The first round is always read, so that every assert is found at least once.
            if number and self._work_left < 0:
                return
            self._work_left -= len(outside)
            yield from self.conditions(statement, outside | values)

    def _rounds(self, statement: ast.AST, known: _Known) -> tuple[list[str], list[_Known]]:
        """Return the names that a loop or decorator binds for the code inside, and their expressions in each round."""
        match statement:
            case ast.For(target=target, iter=values):
                names = _names(target)
            case ast.FunctionDef(
                decorator_list=[ast.Call(ast.Attribute(attr="parametrize"), [written, values, *_])],
            ):
                names = _parameter_names(written)
            case _:
                return [], [{}]
        values = self._put_in(values, known)
        items = getattr(values, "elts", [])
        self._work_left -= len(items)
        rounds = []
        for item in items:
            expressions = _expressions(item, len(names))
            if len(expressions) != len(names):
                return names, [{}]
            rounds.append(dict(zip(names, expressions, strict=True)))
        # If the rounds are unknown, the code inside is read once, and the bound names have no known expressions.
        if not rounds or self._work_left < 0:
            rounds = [{}]
        return names, rounds

    def _put_in(self, node: ast.expr, known: _Known) -> ast.expr:
        if not known:
            return node
        replaced = [known[name] for name in _names(node) if name in known]
        for part in (node, *replaced):
            num_nodes = sum(1 for _ in ast.walk(part))
            self._work_left -= num_nodes
        if not replaced or self._work_left < 0:
            return node
        try:
            return put_in(node, known)
        except RecursionError:  # the parser accepts deeper trees than ``deepcopy``
            return node


def _is_test(statement: ast.AST) -> bool:
    """Tell whether a function or class is a test. Statements without a name count as tests."""
    bases = map(last_name, getattr(statement, "bases", []))
    if "TestCase" in bases:
        return True
    name = str(getattr(statement, "name", "test"))
    return _TEST_NAME.search(name) is not None


def _parameter_names(node: ast.expr) -> list[str]:
    """Read names of parameters, which pytest accepts as "a, b" and as ["a", "b"]."""
    names: list[str] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Constant):
            text = str(part.value)
            names += text.replace(",", " ").split()
    return names


def _expressions(item: ast.expr, num_names: int) -> list[ast.expr]:
    """Split the item of one round into expressions, one for each name if that is possible."""
    match item:
        case ast.Call(ast.Attribute(attr="param"), arguments):  # pytest.param(1, 2, id="three")
            return arguments
    if num_names == 1:
        return [item]
    return getattr(item, "elts", [])


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _changed(statement: ast.AST) -> set[str]:
    """Collect names that a statement binds, and names whose values the statement or a called function may change."""
    names = changed_names(statement, heeds_calls=True)
    for part in ast.walk(statement):
        match part:
            case ast.Expr(ast.Call(ast.Name(called), arguments)):
                if called != "print":
                    for argument in arguments:
                        names.update(_names(argument))
            case ast.Assign(value=ast.Name(name)):
                # After `b = a`, a change through either name changes the value of both.
                names.add(name)
    return names


class _Replacing(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._known.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        given: list[ast.expr] = []
        for argument in node.args:  # `f(*pair)` becomes `f(1, 2)`
            match argument:
                case ast.Starred(ast.List(values) | ast.Tuple(values)):
                    given += values
                case _:
                    given.append(argument)
        node.args = given
        return node


def put_in(node: _Node, known: Mapping[str, ast.expr]) -> _Node:
    """Copy an expression, and replace each name by its known expression."""
    copied = copy.deepcopy(node)
    replaced: _Node = _Replacing(known).visit(copied)
    return replaced
