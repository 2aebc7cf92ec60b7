"""Reading the tests of problem sets as texts of the form ``assert f(literals) == literal``."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# EvalPlus's own comparison calls nothing but these; a row whose ``assertion`` calls more (``set``,
# ``isinstance``) compares something else than the values.
_PLAIN_COMPARISON_CALLS = frozenset({"is_floats", "np.allclose"})


class _InfinityToLiteral(ast.NodeTransformer):
    """Infinity has no literal of its own; Python prints an overflowing float for it, which is one."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(value=float("inf")) if node.id == "inf" else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node) in ("float('inf')", "math.inf"):
            return ast.Constant(value=float("inf"))
        return self.generic_visit(node)


def literal_text(node: ast.expr) -> str | None:
    """Source of a literal, with ``inf`` written as one; None when ``node`` is no literal."""
    try:
        text = repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        text = ""
    if text and "inf" not in text and "{" not in text:
        return text  # several times faster than ast.unparse, and the same but for infinities and set order
    plain = _InfinityToLiteral().visit(node)
    try:
        ast.literal_eval(plain)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return ast.unparse(plain)


def assert_text(callee: str, arguments: list[str], expected: str) -> str:
    """One assert; ``arguments`` and ``expected`` are source texts.

    Example:
        >>> assert_text("add", ["1", "b=2"], "3")
        'assert add(1, b=2) == 3'
    """
    return f"assert {callee}({', '.join(arguments)}) == {expected}"


def literal_assert(node: ast.Assert, *, callee: str | None = None) -> str | None:
    """``node`` as an assert about literals, or None when it is of another form.

    Args:
        node: the assert. Its message is left out.
        callee: written in place of the called name.
    """
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    call, expected = test.left, literal_text(test.comparators[0])
    if not isinstance(call, ast.Call) or expected is None:
        return None
    arguments = [literal_text(argument) for argument in call.args]
    for keyword in call.keywords:
        value = literal_text(keyword.value) if keyword.arg else None
        arguments.append(f"{keyword.arg}={value}" if value is not None else None)
    texts = [argument for argument in arguments if argument is not None]
    if len(texts) < len(arguments):
        return None
    return assert_text(callee or ast.unparse(call.func), texts, expected)


def asserts_in(node: ast.AST) -> Iterator[ast.Assert]:
    """All assert statements below ``node``."""
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Assert))


def literal_asserts(text: str) -> list[str]:
    """The literal asserts of a piece of test source; empty when it does not parse."""
    try:
        module = ast.parse(text.strip())
    except (SyntaxError, ValueError):
        return []
    return [found for node in asserts_in(module) if (found := literal_assert(node)) is not None]


def called_names(text: str) -> list[str]:
    """Names called on the left of an assert's comparison, outermost first; empty when nothing parses."""
    try:
        module = ast.parse(text.strip())
    except (SyntaxError, ValueError):
        return []
    return [
        node.func.id
        for check in asserts_in(module)
        for node in ast.walk(check.test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def asserts_about_candidate(module: ast.Module, *, called_as: str) -> tuple[list[str], int]:
    """The asserts of ``def check(candidate)``, about ``called_as`` instead.

    Args:
        module: test source of the HumanEval form.
        called_as: what to call in place of ``candidate``: ``f`` or ``Solution().f``.

    Returns:
        The literal ones, and how many others there were. ``assert True`` is not counted.
    """
    found: list[str] = []
    num_other = 0
    for node in asserts_in(module):
        if isinstance(node.test, ast.Constant):
            continue
        left = node.test.left if isinstance(node.test, ast.Compare) else None
        is_plain = isinstance(left, ast.Call) and ast.unparse(left.func) == "candidate"
        text = literal_assert(node, callee=called_as) if is_plain else None
        if text is None:
            num_other += 1
        else:
            found.append(text)
    return found, num_other


def asserts_of_pairs(callee: str, inputs: list[Any], outputs: list[Any]) -> tuple[list[str], int]:
    """Asserts about ``callee`` from lists of arguments and of answers, as JSON gave them.

    Args:
        callee: ``f`` or ``Solution().f``.
        inputs: one list of arguments a call.
        outputs: one answer a call; where each is a list of one value, that value.

    Returns:
        The asserts, and how many calls there were beside them.

    Example:
        >>> asserts_of_pairs("f", [[1, "a"], [2, "b"]], [[True], [False]])
        (["assert f(1, 'a') == True", "assert f(2, 'b') == False"], 0)
    """
    if all(isinstance(answer, list) and len(answer) == 1 for answer in outputs):
        outputs = [answer[0] for answer in outputs]
    found = []
    for given, answer in zip(inputs, outputs, strict=False):
        values = [_value_text(value) for value in [*given, answer]] if isinstance(given, list) else [None]
        texts = [text for text in values if text is not None]
        if len(texts) == len(values):
            found.append(assert_text(callee, texts[:-1], texts[-1]))
    return found, max(len(inputs), len(outputs)) - len(found)


def _value_text(value: Any) -> str | None:
    try:
        return literal_text(ast.parse(repr(value), mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def top_level_names(source: str) -> list[str]:
    """Functions, classes and variables that ``source`` defines at top level; empty when it does not parse."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    names: list[str] = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names.extend(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return names


def signature_of(source: str, name: str) -> str:
    """``name(parameters)`` as ``source`` defines it at top level; ``name(...)`` when it is no ``def``.

    Example:
        >>> signature_of("def f(a, b=2): pass", "f")
        'f(a, b=2)'
    """
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return f"{name}({ast.unparse(node.args)})"
    return f"{name}(...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPlusCheck:
    """The ``check`` function of an EvalPlus test: inputs and results as two lists."""

    entry: str
    tests: tuple[str, ...]
    num_dropped: int

    @classmethod
    def read(cls, module: ast.Module, *, declared_name: str) -> "EvalPlusCheck":
        """Read the lists of ``check``; no tests when it compares otherwise than value by value.

        Args:
            module: the parsed test.
            declared_name: the function's name by the dataset; ``check`` is believed where it calls another.

        Raises:
            ValueError: there is no ``check`` with a list called ``inputs``.
        """
        functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
        check = functions.get("check")
        lists = _lists_of(check) if check else {}
        if check is None or "inputs" not in lists:
            raise ValueError("must define check() with a list called 'inputs'")
        entry = _compared_name(check) or "candidate"
        entry = declared_name if entry == "candidate" else entry
        inputs, results = lists["inputs"], lists.get("results", [])
        tests: list[str] = []
        if _compares_plainly(functions.get("assertion")) and _compared_name(check):
            tests = [
                text
                for given, expected in zip(inputs, results, strict=False)
                if (text := _pair_text(entry, given, expected)) is not None
            ]
        return cls(entry=entry, tests=tuple(tests), num_dropped=len(inputs) - len(tests))


def _lists_of(check: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """``name = [...]`` statements directly in ``check``."""
    return {
        node.targets[0].id: node.value.elts
        for node in check.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.List)
    }


def _compared_name(check: ast.FunctionDef) -> str | None:
    """``f`` where ``check`` says ``assertion(f(*inp), exp, ...)``."""
    for node in ast.walk(check):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "assertion"):
            continue
        if isinstance(node.args[0], ast.Call) and isinstance(node.args[0].func, ast.Name):
            return node.args[0].func.id
    return None


def _compares_plainly(assertion: ast.FunctionDef | None) -> bool:
    if assertion is None:
        return False
    calls = {ast.unparse(node.func) for node in ast.walk(assertion) if isinstance(node, ast.Call)}
    return calls <= _PLAIN_COMPARISON_CALLS


def _pair_text(entry: str, given: ast.expr, expected: ast.expr) -> str | None:
    if not isinstance(given, ast.List | ast.Tuple):
        return None
    arguments = [literal_text(argument) for argument in given.elts]
    answer = literal_text(expected)
    texts = [argument for argument in arguments if argument is not None]
    if answer is None or len(texts) < len(arguments):
        return None
    return assert_text(entry, texts, answer)
