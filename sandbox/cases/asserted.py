"""Finds the conditions that tests assert: plainly, by pytest, by unittest, in loops over what is written there."""

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from .definitions import changed_names

_MAX_WORK = 100_000
"""Statements, and nodes that are put in the place of names; a module cannot ask for more, however its loops nest."""
_IS_TEST = re.compile(r"^[Tt]est|(?:^|_)tests?(?:_|$)|Tests?(?:Case)?$|^main$")
"""Names of tests: ``test_add``, ``TestAdd``, ``TotalTests``, ``run_tests``; not ``latest``."""
_Node = TypeVar("_Node", bound=ast.expr)
_Known = dict[str, ast.expr]


def asserted(
    module: ast.Module, *, only_tests: bool, in_place: Collection[str] = frozenset()
) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yield each assert, or call of a method such as ``self.assertEqual``, with its condition, in written order.

    A loop over a list or tuple of expressions, and ``pytest.mark.parametrize`` with one, gives one condition for each
    round. In a condition a name stands for the expression that was assigned to it above, unless something in between
    may have changed it; a condition without such names is the statement's own.

    Args:
        module: parsed tests.
        only_tests: leave out functions and classes that are no tests by their names.
        in_place: functions that change their first argument: after ``f(x)`` the name stands for that call.
    """
    yield from _Reader(only_tests, in_place).conditions(module, {})


class _Reader:
    def __init__(self, only_tests: bool, in_place: Collection[str]) -> None:
        self._only_tests, self._in_place = only_tests, in_place
        self._work_left = _MAX_WORK

    def conditions(self, node: ast.AST, known: _Known) -> Iterator[tuple[ast.stmt, ast.expr]]:
        for statement in ast.iter_child_nodes(node):
            self._work_left -= 1
            match statement:
                case ast.expr():
                    continue
                case ast.Assert(test=test):
                    yield statement, self._put_in(test, known)
                case ast.Expr(ast.Call(ast.Attribute(attr=name)) as call) if name.startswith("assert"):
                    yield statement, self._put_in(call, known)
                case ast.With(items=[item, *_]) if "aises" in ast.unparse(item):
                    pass  # `with pytest.raises(...)`: what stands below must not hold
                case _:
                    yield from self._below(statement, known)
            assigned: _Known = {}
            match statement:
                case ast.Assign([ast.Name(name)], value) if not isinstance(value, ast.Name):
                    assigned[name] = self._put_in(value, known)
                # What the name holds from here on is what the call made of it.
                case ast.Expr(ast.Call(ast.Name(called), [ast.Name(name), *_]) as call) if called in self._in_place:
                    assigned[name] = self._put_in(call, known)
            if known:
                for name in _changed(statement):
                    known.pop(name, None)
            known |= assigned

    def _below(self, statement: ast.AST, known: _Known) -> Iterator[tuple[ast.stmt, ast.expr]]:
        name = str(getattr(statement, "name", "test"))
        is_test_case = isinstance(statement, ast.ClassDef) and "TestCase" in map(_last_word, statement.bases)
        if self._only_tests and not is_test_case and not _IS_TEST.search(name):
            return
        names, rounds = self._rounds(statement, known)
        if isinstance(statement, ast.For | ast.While):  # an earlier round may have changed them
            names |= _changed(statement)
        for part in ast.walk(statement):
            if isinstance(part, ast.arg):
                names.add(part.arg)
        outside = dict(known)
        for name in names:
            outside.pop(name, None)
        for number, values in enumerate(rounds):
            if number and self._work_left < 0:
                return
            self._work_left -= len(outside)
            yield from self.conditions(statement, outside | values)

    def _rounds(self, statement: ast.AST, known: _Known) -> tuple[set[str], list[_Known]]:
        """Names that a statement binds for what stands below it, and their expressions in each round."""
        match statement:
            case ast.For(target=target, iter=values):
                names = _names(target)
            case ast.FunctionDef(
                decorator_list=[
                    ast.Call(
                        ast.Attribute(attr="parametrize"),
                        [given, values, *_],
                    )
                ]
            ):
                texts = [str(part.value) for part in ast.walk(given) if isinstance(part, ast.Constant)]
                names = " ".join(texts).replace(",", " ").split()
            case _:
                return set(), [{}]
        values = self._put_in(values, known)
        items = getattr(values, "elts", [])
        self._work_left -= len(items)
        rounds = []
        for item in items:
            match item:
                case ast.Call(ast.Attribute(attr="param"), own):  # pytest.param(1, 2, id="three")
                    pass
                case _:
                    own = [item] if len(names) == 1 else getattr(item, "elts", [])
            if len(own) != len(names):
                return set(names), [{}]
            rounds.append(dict(zip(names, own, strict=True)))
        if not rounds or self._work_left < 0:
            rounds = [{}]
        return set(names), rounds

    def _put_in(self, node: ast.expr, known: _Known) -> ast.expr:
        if not known:
            return node
        replaced = [known[name] for name in _names(node) if name in known]
        for part in (node, *replaced):
            self._work_left -= sum(1 for _ in ast.walk(part))
        if not replaced or self._work_left < 0:
            return node
        try:
            return put_in(node, known)
        except RecursionError:  # as deep as the parser just takes
            return node


def _last_word(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _changed(statement: ast.AST) -> set[str]:
    """Names that a statement binds, or whose values it may change, also by giving them to a function."""
    names = set(changed_names(statement, heeds_calls=True))
    for part in ast.walk(statement):
        match part:
            case ast.Expr(ast.Call(ast.Name(called), arguments)) if called != "print":
                names.update(*map(_names, arguments))
            case ast.Assign(value=ast.Name(name)):  # two names of one value: either may change it
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
        for argument in node.args:  # `f(*(1, 2))` is `f(1, 2)`
            match argument:
                case ast.Starred(ast.List(values) | ast.Tuple(values)):
                    given += values
                case _:
                    given.append(argument)
        node.args = given
        return node


def put_in(node: _Node, known: Mapping[str, ast.expr]) -> _Node:
    """A copy of an expression with expressions in the place of names."""
    replaced: _Node = _Replacing(known).visit(copy.deepcopy(node))
    return replaced
