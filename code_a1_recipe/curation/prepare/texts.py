"""What is left of a prompt and of a reference when the accidental is taken away, for comparing them.

A prompt becomes the words of its statement: code, doctest examples, addresses and the sentence in which our adapters
name the function do not count, nor do phrases that many prompts of a set share. A reference becomes a program in which
names, comments, docstrings, annotations and imports no longer count.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

PROMPT_NGRAM = 3
"""Words in a row whose sets are compared by Jaccard similarity."""
PHRASE_WORDS = 4
PHRASE_SHARE = 0.05
"""A phrase of ``PHRASE_WORDS`` words in more than this share of a set's prompts says nothing about one of them."""
LEAST_PROMPTS = 5
"""What occurs in this many prompts or fewer is no common phrase, however small the set is."""
SAMPLED_PROMPTS = 20_000
"""Prompts looked at for common phrases; more are sampled at even distances."""

_LEAST_STATEMENT_WORDS = 3
_QUOTES = re.compile(r"\"{3}|'{3}")
_CODE_LINE = re.compile(r"\s*(?:def |async def |class |import |from \w[\w.]* import\b|assert\b|@\w|>>>|\.\.\. )")
_ADAPTER_LINE = re.compile(r"(?:Name the function|The function is declared as) `|Complete this code:$")
_ADDRESS = re.compile(r"https?://\S+")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")

Words = list[str]


def words_of(text: str) -> Words:
    """Lower-case words and numbers, in order."""
    return _WORD.findall(_ADDRESS.sub(" ", text.lower()))


def statement_words(prompt: str) -> Words:
    """The words of a prompt's statement; of fenced code only comments and docstrings belong to it.

    Example:
        >>> statement_words("def f(x):\n    '''Add one to x.\n    >>> f(1)\n    2\n    '''")
        ['add', 'one', 'to', 'x']
    """
    kept: list[str] = []
    is_fenced = is_quoted = shows_result = False
    for line in prompt.split("\n"):
        if line.lstrip().startswith("```"):
            is_fenced, is_quoted = not is_fenced, False
            continue
        was_quoted, num_quotes = is_quoted, len(_QUOTES.findall(line))
        is_quoted ^= num_quotes % 2 == 1
        is_code = is_fenced and not (was_quoted or num_quotes or line.lstrip().startswith("#"))
        if is_code or _ADAPTER_LINE.match(line):
            continue
        if _CODE_LINE.match(line):
            shows_result = line.lstrip().startswith(">>>")
        elif shows_result:  # the line below a doctest's call
            shows_result = False
        else:
            kept.append(line)
    return words_of("\n".join(kept))


def ngrams(words: Sequence[str], size: int) -> set[str]:
    """All runs of ``size`` words, joined by spaces; the whole where there are fewer; empty for none."""
    if len(words) <= size:
        return {" ".join(words)} if words else set()
    return {" ".join(words[at : at + size]) for at in range(len(words) - size + 1)}


def phrases_of_prompts(prompts: Sequence[str]) -> frozenset[str]:
    """Phrases that more than ``PHRASE_SHARE`` of one set's statements share, and more than ``LEAST_PROMPTS``.

    Of many prompts a sample is looked at.
    """
    sampled = prompts[:: max(1, len(prompts) // SAMPLED_PROMPTS)]
    found: Counter[str] = Counter()
    for words in map(statement_words, sampled):
        if len(words) >= PHRASE_WORDS:
            found.update(ngrams(words, PHRASE_WORDS))
    least = max(LEAST_PROMPTS, PHRASE_SHARE * len(sampled))
    return frozenset(phrase for phrase, count in found.items() if count > least)


def without_phrases(words: Sequence[str], phrases: frozenset[str]) -> Words:
    """The words that no common phrase covers.

    Example:
        >>> without_phrases("write a function to find the nth prime".split(), frozenset({"write a function to"}))
        ['find', 'the', 'nth', 'prime']
    """
    covered = [False] * len(words)
    for at in range(len(words) - PHRASE_WORDS + 1):
        if " ".join(words[at : at + PHRASE_WORDS]) in phrases:
            covered[at : at + PHRASE_WORDS] = [True] * PHRASE_WORDS
    return [word for word, is_covered in zip(words, covered, strict=True) if not is_covered]


def content_words(prompt: str, phrases: frozenset[str]) -> Words:
    """The words by which a prompt is compared: its statement without common phrases.

    Where next to nothing is left of that ("complete this code:"), the words of the whole prompt, but for what our
    adapters add.
    """
    words = without_phrases(statement_words(prompt), phrases)
    if len(words) >= _LEAST_STATEMENT_WORDS:
        return words
    return words_of("\n".join(line for line in prompt.split("\n") if not _ADAPTER_LINE.match(line)))


def assert_key(text: str) -> bytes:
    """A digest, equal for asserts that differ in blanks and in the kind of quotes only."""
    plain = re.sub(r"\s+", "", text).replace('"', "'")
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# ------------------------------ references ------------------------------


def reference_form(source: str) -> str | None:
    """The program in canonical form: its own names numbered, and no comment, docstring, annotation or import.

    Attributes, keywords and names that the program does not bind (builtins, modules) keep their names.

    Args:
        source: any text; it is parsed and never run.

    Returns:
        Source that equals that of any program with the same form; None where ``source`` does not parse.

    Example:
        >>> print(reference_form("import math\\ndef area(r: float):\\n    return math.pi * r"))
        def v0(v1):
            return math.pi * v1
    """
    try:
        tree = ast.parse(source)
        names = _BoundNames()
        names.visit(tree)
        _Canonical(names.found).visit(tree)  # in place
        return ast.unparse(ast.fix_missing_locations(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tokens_of(form: str) -> Words:
    """Names, numbers and single signs of a program text, in order."""
    return _TOKEN.findall(form)


class _BoundNames(ast.NodeVisitor):
    """Names that a program binds, numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return  # goes, and must leave no gap
        name: str | None = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        if name:
            self.found.setdefault(name, f"v{len(self.found)}")
        self.generic_visit(node)


class _Canonical(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST | None:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = list(_telling(body)) or [ast.Pass()]  # type: ignore[attr-defined]
        for field in ("name", "id", "arg"):
            # A keyword belongs to whoever is called, and an imported name to its module.
            if isinstance(value := getattr(node, field, None), str) and not isinstance(node, ast.keyword | ast.alias):
                setattr(node, field, self._names.get(value, value))
        for field in ("annotation", "returns"):
            if hasattr(node, field) and not isinstance(node, ast.AnnAssign):
                setattr(node, field, None)
        if isinstance(node, ast.AnnAssign):
            plain = ast.Assign(targets=[node.target], value=node.value) if node.value else None
            return self.generic_visit(plain) if plain else None
        return self.generic_visit(node)


def _telling(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    """Statements that do something: no import, no text or number that stands alone, no bare annotation."""
    for statement in body:
        is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_bare = isinstance(statement, ast.AnnAssign) and statement.value is None
        if not (is_constant or is_bare or isinstance(statement, ast.Import | ast.ImportFrom)):
            yield statement
