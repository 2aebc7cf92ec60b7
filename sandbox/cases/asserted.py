"""Finds the conditions that tests assert: plainly, by pytest, by unittest, in loops over what is written there."""

import ast
import copy
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

_MAX_WORK = 100_000
"""Statements, and nodes that are put in the place of names; a module cannot ask for more, however its loops nest."""
_Node = TypeVar("_Node", bound=ast.expr)


class Asserted(NamedTuple):
    """One condition that tests assert."""

    statement: ast.stmt
    """The ``assert``, or the call of a method such as ``self.assertEqual``."""
    test: ast.expr
    """Its condition, with the expressions that were last assigned to names in the place of these."""
    is_as_written: bool
    """No name was replaced."""


def asserted(module: ast.Module, *, only_tests: bool) -> Iterator[Asserted]:
    """Yield the conditions of a module in written order.

    A loop over a list or tuple of expressions, and ``pytest.mark.parametrize`` with one, gives one condition for each
    round. A name has the expression that was last assigned to it above, unless a method was called on it since.

    Args:
        module: parsed tests.
        only_tests: leave out functions and classes whose names do not begin with "test".
    """
    yield from _Reader(only_tests).conditions(module, {})


class _Reader:
    def __init__(self, only_tests: bool) -> None:
        self._only_tests = only_tests
        self._work_left = _MAX_WORK

    def conditions(self, node: ast.AST, known: dict[str, ast.expr]) -> Iterator[Asserted]:
        for statement in ast.iter_child_nodes(node):
            self._work_left -= 1
            match statement:
                case ast.expr():
                    pass
                case ast.Assign(targets=[ast.Name(name)], value=value):
                    known[name] = self._put_in(value, known)
                case ast.Assert(test=test):
                    yield self._asserted(statement, test, known)
                case ast.Expr(ast.Call(ast.Attribute(attr=name)) as call) if name.startswith("assert"):
                    yield self._asserted(statement, call, known)
                case (
                    ast.Expr(ast.Call(ast.Attribute())) | ast.AugAssign()
                ):  # `values.append(1)` changes what the name stands for
                    for name in _names(statement):
                        known.pop(name, None)
                case ast.With(items=[item, *_]) if "aises" in ast.unparse(item):
                    pass  # `with pytest.raises(...)`: what stands below must not hold
                case _:
                    yield from self._below(statement, known)

    def _below(self, statement: ast.AST, known: Mapping[str, ast.expr]) -> Iterator[Asserted]:
        name = getattr(statement, "name", "test")
        if self._only_tests and not str(name).lower().startswith("test"):
            return
        names, rounds = self._rounds(statement, known)
        outside = {name: value for name, value in known.items() if name not in names}
        for number, values in enumerate(rounds):
            if number and self._work_left < 0:
                return
            self._work_left -= len(outside)
            yield from self.conditions(statement, outside | values)

    def _rounds(self, statement: ast.AST, known: Mapping[str, ast.expr]) -> tuple[list[str], list[dict[str, ast.expr]]]:
        """Names that a statement binds for what stands below it, and their expressions in each round."""
        match statement:
            case ast.For(target=target, iter=values):
                names = _names(target)
            case ast.FunctionDef(
                decorator_list=[ast.Call(ast.Attribute(attr="parametrize"), [ast.Constant(str(text)), values, *_])]
            ):
                names = text.replace(",", " ").split()
            case _:
                return [], [{}]
        values = self._put_in(values, known)
        if isinstance(values, ast.List | ast.Tuple) and self._work_left > len(values.elts):
            self._work_left -= len(values.elts)
            rounds = [[value] if len(names) == 1 else getattr(value, "elts", []) for value in values.elts]
            if all(len(one) == len(names) for one in rounds):
                return names, [dict(zip(names, one, strict=True)) for one in rounds]
        return names, [{}]

    def _asserted(self, statement: ast.stmt, test: ast.expr, known: Mapping[str, ast.expr]) -> Asserted:
        put_in = self._put_in(test, known)
        return Asserted(statement, put_in, put_in is test)

    def _put_in(self, node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
        replaced = known and [known[name] for name in _names(node) if name in known]
        if not replaced:
            return node
        self._work_left -= sum(1 for part in (node, *replaced) for _ in ast.walk(part))
        try:
            return put_in(node, known) if self._work_left > 0 else node
        except RecursionError:  # as deep as the parser just takes
            return node


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


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
