"""Types of a function's parameters from example calls, written into its source as annotations."""

import ast
from collections.abc import Sequence
from typing import Any

from code_a1_recipe.algorithm.question import parsed
from sandbox import parse_untrusted

MAX_TUPLE = 4
"""Longest tuple whose places have types of their own."""


def annotated(source: str, name: str, asserts: Sequence[str]) -> str:
    """The program with an annotation for each parameter of ``name`` that has none and that an example call fills.

    The tools see the types of the examples, never their values. Annotations that the program has stay.
    """
    module = parse_untrusted(source)
    function = next((one for one in module.body[::-1] if isinstance(one, ast.FunctionDef) and one.name == name), None)
    if function is None:
        return source
    parameters = [*function.args.posonlyargs, *function.args.args]
    values: dict[str, list[Any]] = {one.arg: [] for one in parameters}
    for call in example_calls(name, asserts):
        pairs = list(zip((one.arg for one in parameters), call.args, strict=False))
        pairs += [(one.arg, one.value) for one in call.keywords if one.arg in values]
        for parameter, node in pairs:
            try:
                values[parameter].append(ast.literal_eval(node))
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
    for one in parameters:
        if one.annotation is None and values[one.arg]:
            one.annotation = ast.parse(type_text(values[one.arg]), mode="eval").body
    return ast.unparse(module) + "\n"


def example_calls(name: str, asserts: Sequence[str]) -> list[ast.Call]:
    """The calls of ``name`` in assert statements."""
    nodes = [node for text in asserts for node in ast.walk(parsed(text))]
    return [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == name]


def type_text(values: Sequence[Any]) -> str:
    """A type that all values have, as an annotation.

    Example:
        >>> type_text([[1, 2], []]), type_text([None, "a"]), type_text([(1, "a"), (2, "b")])
        ('list[int]', 'None | str', 'tuple[int, str]')
    """
    texts: dict[str, None] = {}
    kinds = dict.fromkeys(type(value) for value in values)
    if {int, float} <= kinds.keys():  # as in annotations, an int is a float
        values = [float(value) if type(value) is int and abs(value) < 2**53 else value for value in values]
        kinds = dict.fromkeys(type(value) for value in values)
    for kind in kinds:
        texts[_one_kind(kind, [value for value in values if type(value) is kind])] = None
    return " | ".join(texts) or "int"


def _one_kind(kind: type, values: Sequence[Any]) -> str:
    if kind is dict:
        keys = type_text([key for value in values for key in value])
        return f"dict[{keys}, {type_text([one for value in values for one in value.values()])}]"
    if kind is tuple and len({len(value) for value in values}) == 1 and 0 < len(values[0]) <= MAX_TUPLE:
        return f"tuple[{', '.join(type_text(column) for column in zip(*values, strict=True))}]"
    if kind in (list, set, frozenset, tuple):
        inner = type_text([one for value in values for one in value])
        return f"{kind.__name__}[{inner}{', ...' if kind is tuple else ''}]"
    return "None" if kind is type(None) else kind.__name__
