"""Normal forms of prompts, programs and tests, for comparison.

A prompt becomes the list of its words, or of the words of its statement. Web addresses and the line in which our
adapters name the function are left out, and from the statement also code and doctest examples. A reference becomes a
program without comments, docstrings, annotations and imports, and with numbered names.
"""

import ast
import re
from collections.abc import Iterator

from ...errors import PARSE_ERRORS
from ...files import fingerprint

_LEAST_STATEMENT_WORDS = 3
_QUOTES = re.compile(r"\"{3}|'{3}")
_CODE_LINE = re.compile(r"\s*(?:def |async def |class |import |from \w[\w.]* import\b|assert\b|@\w|>>>|\.\.\. )")
_ADAPTER_LINE = re.compile(r"(?:Name the function|Declare) `|Complete this code:$")
_ADDRESS = re.compile(r"https?://\S+")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")

Words = list[str]


# ------------------------------ prompts ------------------------------


def words_of(text: str) -> Words:
    """List the words and numbers of a text, in lower case and in order."""
    return _WORD.findall(_ADDRESS.sub(" ", text.lower()))


def statement_words(prompt: str) -> Words:
    """List the words of a prompt's statement. In fenced code, only comments and docstrings belong to the statement.

    Example:
        >>> statement_words("def f(x):\\n    '''Add one to x.\\n    >>> f(1)\\n    2\\n    '''")
        ['add', 'one', 'to', 'x']
    """
    kept = []
    is_fenced = is_quoted = shows_result = False
    for line in prompt.split("\n"):
        start = line.lstrip()
        if start.startswith("```"):
            is_fenced, is_quoted = not is_fenced, False
            continue
        num_quotes = len(_QUOTES.findall(line))
        is_text = is_quoted or num_quotes or start.startswith("#")
        is_quoted ^= num_quotes % 2 == 1
        if _ADAPTER_LINE.match(line) or (is_fenced and not is_text):
            continue
        if _CODE_LINE.match(line):
            shows_result = start.startswith(">>>")
        elif shows_result:  # this line shows the result of the doctest call in the line above
            shows_result = False
        else:
            kept.append(line)
    return words_of("\n".join(kept))


def content_words(prompt: str) -> Words:
    """List the words by which a prompt is compared: those of its statement.

    If the statement has fewer than three words ("complete this code:"), the list has all words of the prompt.
    """
    words = statement_words(prompt)
    return words if len(words) >= _LEAST_STATEMENT_WORDS else prompt_words(prompt)


def prompt_words(prompt: str) -> Words:
    """List all words of a prompt, except for the lines that our adapters add."""
    return words_of("\n".join(line for line in prompt.split("\n") if not _ADAPTER_LINE.match(line)))


# ------------------------------ tests and programs ------------------------------


def assert_key(text: str) -> str:
    """Hash an assert. Asserts that differ only in blanks or in the kind of quotes have equal digests."""
    return fingerprint(re.sub(r"\s+", "", text).replace('"', "'"))


def tokens_of(program: str) -> Words:
    """List the names, numbers and single signs of a program, in order."""
    return _TOKEN.findall(program)


def reference_form(source: str) -> str:
    """Bring a program into canonical form.

    Comments, docstrings, annotations and imports are removed, and the names that the program binds are numbered.
    Attributes, keywords and names that the program does not bind (builtins, modules) stay unchanged.

    Args:
        source: any text; it is parsed and never run.

    Returns:
        The canonical form; empty if ``source`` does not parse.

    Example:
        >>> print(reference_form("import math\\ndef area(r: float):\\n    return math.pi * r"))
        def v0(v1):
            return math.pi * v1
    """
    try:
        tree = ast.parse(source)
        bound_names = dict.fromkeys(_bound_names(tree))
        names = {name: f"v{number}" for number, name in enumerate(bound_names)}
        _Canonical(names).visit(tree)  # changes the tree in place
        return ast.unparse(ast.fix_missing_locations(tree))
    except PARSE_ERRORS:
        return ""


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a program binds, in the order of the tree."""
    match node:
        case ast.AnnAssign(value=None):
            return  # this statement will be removed, so its name must not get a number
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler(name=str()):
            yield str(node.name)
        case ast.arg():
            yield node.arg
        case ast.Name(ctx=ast.Store()):
            yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _bound_names(child)


class _Canonical(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.AnnAssign):
            if node.value is None:
                return None
            node = ast.Assign(targets=[node.target], value=node.value)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [statement for statement in body if _does_something(statement)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
        for field in ("name", "id", "arg"):
            value = getattr(node, field, None)
            # A keyword belongs to the called function, and an imported name belongs to its module.
            if isinstance(value, str) and not isinstance(node, ast.keyword | ast.alias):
                setattr(node, field, self._names.get(value, value))
        for field in ("annotation", "returns"):
            setattr(node, field, None)
        return self.generic_visit(node)


def _does_something(statement: ast.stmt) -> bool:
    """Return False for imports, for annotations without a value, and for constants that stand alone (docstrings)."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None):
            return False
    return True
