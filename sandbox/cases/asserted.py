"""Find the conditions that tests assert: plainly, by pytest, by unittest, and in loops over written values."""

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from .condition import last_name
from .definitions import changed_names

_MAX_WORK = 100_000
"""Limit for one module: statements that are read, plus nodes that replace names. Nested loops multiply both."""
_IS_TEST = re.compile(r"^[Tt]est|(?:^|_)tests?(?:_|$)|Tests?(?:Case)?$|^main$")
"""Finds names of tests: ``test_add``, ``TestAdd``, ``TotalTests``, ``run_tests``, but not ``latest``."""
_Node = TypeVar("_Node", bound=ast.expr)
_Known = dict[str, ast.expr]
"""The expression that each name stands for."""
_Asserted = Iterator[tuple[ast.stmt, ast.expr]]


def asserted(module: ast.Module, *, only_tests: bool, in_place: Collection[str] = frozenset()) -> _Asserted:
    """Yield each assert, or call of a method such as ``self.assertEqual``, with its condition, in written order.

    A loop over a list or tuple of expressions, or ``pytest.mark.parametrize`` with such a list, gives one condition
    for each round. A condition contains, in the place of a name, the expression that was assigned to it above, unless
    a statement in between may have changed it. A condition without such names is the statement's own node.

    Args:
        module: parsed tests.
        only_tests: leave out functions and classes whose names are no names of tests.
        in_place: functions that change their first argument. After a statement ``f(x)``, ``f(x)`` replaces ``x``.
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
                    pass  # conditions below `with pytest.raises(...)` are not meant to hold
                case ast.Assign([ast.Name(name)], value):
                    if not isinstance(value, ast.Name):
                        assigned[name] = self._put_in(value, known)
                case ast.Expr(ast.Call(ast.Name(called), [ast.Name(name), *_]) as call):
                    # From here on the name holds the argument that the call has changed.
                    if called in self._in_place:
                        assigned[name] = self._put_in(call, known)
                case _:
                    yield from self._below(statement, known)
            if known:
                for name in _changed(statement):
                    known.pop(name, None)
            known |= assigned

    def _below(self, statement: ast.AST, known: _Known) -> _Asserted:
        name = str(getattr(statement, "name", "test"))
        bases = map(last_name, getattr(statement, "bases", []))
        is_test = "TestCase" in bases or _IS_TEST.search(name)
        if self._only_tests and not is_test:
            return
        bound, rounds = self._rounds(statement, known)
        names = {part.arg for part in ast.walk(statement) if isinstance(part, ast.arg)}
        names.update(bound)
        if isinstance(statement, ast.For | ast.While):  # an earlier round may have changed these names
            names |= _changed(statement)
        outside = {name: value for name, value in known.items() if name not in names}
        for number, values in enumerate(rounds):
            # The first round is always read, so that every assert is found at least once.
            if number and self._work_left < 0:
                return
            self._work_left -= len(outside)
            yield from self.conditions(statement, outside | values)

    def _rounds(self, statement: ast.AST, known: _Known) -> tuple[list[str], list[_Known]]:
        """Return the names that a statement binds for the code below it, and their expressions in each round."""
        match statement:
            case ast.For(target=target, iter=values):
                names = _names(target)
            case ast.FunctionDef(decorator_list=[ast.Call(ast.Attribute(attr="parametrize"), [given, values, *_])]):
                # Pytest takes the names as "a, b" and as ["a", "b"].
                texts = [str(part.value) for part in ast.walk(given) if isinstance(part, ast.Constant)]
                joined = ",".join(texts)
                names = joined.replace(",", " ").split()
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
        # Without known rounds the code below is read once, and these names stay unknown in it.
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
        except RecursionError:  # the parser takes deeper trees than the copy
            return node


def _expressions(item: ast.expr, num_names: int) -> list[ast.expr]:
    """Take one round's item apart, into one expression for each name if it has so many."""
    match item:
        case ast.Call(ast.Attribute(attr="param"), arguments):  # pytest.param(1, 2, id="three")
            return arguments
    if num_names == 1:
        return [item]
    return getattr(item, "elts", [])


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _changed(statement: ast.AST) -> set[str]:
    """Collect names that a statement binds, or whose values it may change, also by passing them to a function."""
    names = set(changed_names(statement, heeds_calls=True))
    for part in ast.walk(statement):
        match part:
            case ast.Expr(ast.Call(ast.Name(called), arguments)):
                if called != "print":
                    names.update(*map(_names, arguments))
            case ast.Assign(value=ast.Name(name)):  # from here on, either of two names may change the value
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
    """Copy an expression with the known expressions in the place of names."""
    copied = copy.deepcopy(node)
    replaced: _Node = _Replacing(known).visit(copied)
    return replaced
