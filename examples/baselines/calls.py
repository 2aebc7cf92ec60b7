"""Texts of the tools -> calls ``f(literals)``; nothing is run here."""

import ast
from collections.abc import Iterator, Mapping

from sandbox import parse_untrusted

MAX_CALLS = 2_000
MARKS = "+=!"
"""Of calls that reached something new, that returned, and that raised; the order in which they are taken."""


def calls_in_lines(text: str, name: str) -> list[str]:
    """Calls of ``name``, one a line, as CrossHair prints them.

    A line is taken where it is one call with literals; anything else (remarks, objects, a last line that was cut) is
    passed over. Repeated calls are dropped.
    """
    return _distinct([_call_in(line, name) for line in text.split("\n")])


def calls_after_marks(text: str, name: str) -> list[str]:
    """Calls of ``name`` as ``drivers/sample.py`` prints them, in the order of ``MARKS``; otherwise as above."""
    lines = [line for mark in MARKS for line in text.split("\n") if line.startswith(f"{mark} ")]
    return _distinct([_call_in(line[2:], name) for line in lines])


def _call_in(line: str, name: str) -> str | None:
    try:
        return _call_text(ast.parse(line.strip(), mode="eval").body, name, {})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def calls_in_tests(text: str, name: str) -> list[str]:
    """Calls of ``name`` in the test functions that Pynguin writes, with the variables' values put in.

    Only the values that were assigned count: what an earlier call changed in place is not seen. A call with an
    object, a lambda or another call's result as an argument is passed over. A file that does not parse has no call.
    """
    try:
        module = parse_untrusted(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[str | None] = []
    for function in module.body:
        if isinstance(function, ast.FunctionDef):
            values: dict[str, ast.expr] = {}
            for statement in _simple_statements(function.body):
                found += [_call_text(node, name, values) for node in ast.walk(statement) if isinstance(node, ast.Call)]
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    values[statement.targets[0].id] = _Filled(values).visit(statement.value)
    return _distinct(found)


def _simple_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in order; those below ``with pytest.raises`` and ``try`` too."""
    for statement in body:
        if isinstance(statement, ast.With | ast.Try):
            yield from _simple_statements(statement.body)
        else:
            yield statement


class _Filled(ast.NodeTransformer):
    """Puts values in the place of names."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)


def _call_text(node: ast.AST, name: str, values: Mapping[str, ast.expr]) -> str | None:
    """The call as text, without the module's name; None where it is another one, or an argument is no literal."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] != name:
        return None
    copied = ast.parse(ast.unparse(node), mode="eval").body  # filling in changes nodes, which others share
    assert isinstance(copied, ast.Call)
    arguments = [_Filled(values).visit(one) for one in copied.args]
    keywords = [ast.keyword(arg=one.arg, value=_Filled(values).visit(one.value)) for one in copied.keywords]
    try:
        for one in [*arguments, *(keyword.value for keyword in keywords)]:
            ast.literal_eval(one)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    if any(one.arg is None for one in keywords):
        return None
    return ast.unparse(ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords))


def _distinct(calls: list[str | None]) -> list[str]:
    return list(dict.fromkeys(call for call in calls if call is not None))[:MAX_CALLS]
