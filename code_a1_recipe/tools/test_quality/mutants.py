"""Mutants of a reference: small changes of its function bodies that a good suite should notice.

The library cosmic-ray makes the changes in its default configuration, as in UnLeakedTestBench (Huang et al., arXiv
2508.00408). ``OPERATORS`` lists the changes. This module makes mutants as texts, and only the sandbox runs a mutant.

A mutant is left out if the original or an earlier mutant has the same syntax tree, or the same bytecode and constants
(Papadakis et al. 2015, "Trivial compiler equivalence"). Some of the remaining mutants may still be equivalent to the
original, but no program can decide this. So even a perfect suite may kill fewer than 100 % of the mutants. Therefore,
also report the rate over "killable" mutants, which at least one known test kills.
"""

import contextlib
import hashlib
import importlib
import logging
import random
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sandbox.text import syntax_key

from ...errors import PARSE_ERRORS, InputError

logger = logging.getLogger(__name__)

OPERATORS = {
    "AddNot",  # negates the condition of an if, a while, an assert or a conditional expression
    "ExceptionReplacer",  # catches an exception that no code raises
    "NumberReplacer",  # adds 1 to a number, or subtracts 1
    "RemoveDecorator",  # removes a decorator of an inner function
    "ReplaceAndWithOr",  # and -> or
    "ReplaceBinaryOperator",  # one of + - * / // % ** >> << | & ^ becomes each of the others
    "ReplaceBreakWithContinue",  # break -> continue
    "ReplaceComparisonOperator",  # one of == != < <= > >= is (is not) becomes each of the others
    "ReplaceContinueWithBreak",  # continue -> break
    "ReplaceFalseWithTrue",  # False -> True
    "ReplaceOrWithAnd",  # or -> and
    "ReplaceTrueWithFalse",  # True -> False
    "ReplaceUnaryOperator",  # one of + - ~ becomes another or is removed; not is removed
    "ZeroIterationForLoop",  # a for loop runs over an empty list
}
"""Families of operators. In cosmic-ray, a family ``Replace...`` has a class for each pair of an old and a new operator.

VariableInserter and VariableReplacer are left out, as in cosmic-ray's default configuration. Both operators need names
of variables as arguments, and choose places at random.
"""

_PROVIDER = "core/"
_MUTANT = "<mutant>"
_FUNCTIONS = ("funcdef", "lambdef")
_ANNOTATED = ("annassign", "tfpdef")
"""Types of nodes whose annotation follows a colon."""
# Ignore the compiler's warnings about mutants such as `x is 1`. The warnings would fill our log or become errors.
warnings.filterwarnings("ignore", module=_MUTANT)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A changed program, which defines the same names as the original."""

    source: str
    operator: str
    """Name of the change in cosmic-ray, such as ``ReplaceBinaryOperator_Add_Sub``."""
    line: int
    """Number of the changed line, from 1."""


def mutants_of(source: str, *, max_mutants: int | None = None, seed: int = 0) -> list[Mutant]:
    """Make all distinct mutants of the function bodies of a program, sorted by line.

    Inner functions and methods are changed too. Docstrings and annotations stay unchanged, and so do the signatures and
    decorators of outer functions. Code outside of functions is changed only if the program has no function.

    Args:
        source: a Python program, such as a reference. The program is parsed and compiled, but never run.
        max_mutants: largest number of mutants, at least 1. All mutants are sorted by line, and the chosen mutants are
            spread evenly over this order.
        seed: seed of the choice. The same seed gives the same mutants.

    Raises:
        ValueError: the source is no Python program.
    """
    mutants = _make_all(source)
    total = len(mutants)
    if max_mutants is None or total <= max_mutants:
        return mutants
    # Cut the sorted mutants into equal parts, and draw one mutant from each part.
    rng = random.Random(f"{seed}:{hashlib.sha256(source.encode()).hexdigest()}")
    starts = [part * total // max_mutants for part in range(max_mutants + 1)]
    return [mutants[rng.randrange(start, end)] for start, end in pairwise(starts)]


def family_of(operator: str) -> str:
    """Return the family of a cosmic-ray operator, as in ``OPERATORS``."""
    return operator.removeprefix(_PROVIDER).partition("_")[0]


def bytecode_key(source: str) -> types.CodeType:
    """Compile a program and drop its line numbers. Equal instructions and constants give equal keys.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source does not compile.
    """
    return _without_lines(compile(source, _MUTANT, "exec", dont_inherit=True, optimize=0))


def _without_lines(code: types.CodeType) -> types.CodeType:
    constants = []
    for constant in code.co_consts:
        constants.append(_without_lines(constant) if isinstance(constant, types.CodeType) else constant)
    return code.replace(co_consts=tuple(constants), co_firstlineno=1, co_linetable=b"")


def _make_all(source: str) -> list[Mutant]:
    # Try several times, because CPython may raise SystemError while another thread parses (see
    # `sandbox.text.parse_untrusted`).
    for _ in range(5):
        with contextlib.suppress(SystemError):
            return _made(source)
    return _made(source)


def _made(source: str) -> list[Mutant]:
    known: set[object]
    try:
        known = {syntax_key(source), bytecode_key(source)}
    except PARSE_ERRORS as error:
        raise ValueError(f"only Python programs have mutants, and this program does not compile: {error}") from error
    mutants = []
    for operator, line, text in _changes(source):
        try:
            keys = {syntax_key(text), bytecode_key(text)}
        except PARSE_ERRORS:
            continue
        if not text or keys & known:
            continue
        known |= keys
        mutants.append(Mutant(source=text, operator=operator.removeprefix(_PROVIDER), line=line))
    return sorted(mutants, key=lambda mutant: mutant.line)


def _changes(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield (operator, line, changed source) for every change that cosmic-ray can make in function bodies."""
    trees, plugins = _library("ast"), _library("plugins")
    nodes = list(trees.ast_nodes(trees.get_ast(source)))
    # A program that reads standard input may have no function.
    is_whole = not any(node.type in _FUNCTIONS for node in nodes)
    for name in plugins.operator_names():
        if family_of(name) not in OPERATORS:
            continue
        operator = plugins.get_operator(name)()
        starts = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, (line, _)) in enumerate(starts):
            is_inside, is_annotation = _surroundings(node)
            if (is_inside or is_whole) and not is_annotation:
                yield name, line, _mutated(source, operator, occurrence)


def _surroundings(node: Any) -> tuple[bool, bool]:
    """Return whether the node lies in the body of a function or lambda, and whether it lies in an annotation."""
    is_inside = is_annotation = False
    while (parent := node.parent) is not None:
        is_inside |= parent.type in _FUNCTIONS and node is parent.children[-1]
        before = getattr(node.get_previous_sibling(), "value", "")
        is_annotation |= before == "->" or (before == ":" and parent.type in _ANNOTATED)
        node = parent
    return is_inside, is_annotation


def _mutated(source: str, operator: Any, occurrence: int) -> str:
    """Return the changed source, or "" if the operator failed."""
    try:
        return str(_library("mutating").mutate_code(source, operator, occurrence) or "")
    except (AttributeError, IndexError, ArithmeticError) as error:  # the operator cannot handle the syntax
        logger.debug("operator=%r occurrence=%d: %r", operator, occurrence, error)
        return ""


def _library(name: str) -> Any:
    """Load a module of cosmic-ray.

    Raises:
        InputError: cosmic-ray is not installed.
    """
    try:
        return importlib.import_module(f"cosmic_ray.{name}")
    except ModuleNotFoundError as error:
        raise InputError(f"mutants need the package cosmic-ray ({error}): pip install cosmic-ray") from error


def check_cosmic_ray() -> None:
    """Raises InputError if cosmic-ray is not installed."""
    _library("plugins")
