"""Right and incorrect programs for an EvalPlus problem: a model's, or made from its reference. The judges decide.

A fifth are meant to be right. Most of the others are mutants (``mutants``); the rest are references whose result is
changed in ways that test the comparison: another type of equal value, a value close by, another order. About half of
those, and some mutants, are right too, so that a third of all is.
"""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from code_a1_recipe.data.reader import read_rows
from code_a1_recipe.errors import InputError
from code_a1_recipe.evaluation.benchmarks.evalplus import EvalPlusProblem
from code_a1_recipe.test_quality.mutants import mutants_of
from sandbox import decode

KINDS = {
    "reference": "the reference itself",
    "renamed": "the reference with other names for its local variables, and a comment",
    "mutant": "one small change of the reference's body, by an operator of cosmic-ray",
    "response": "a program of --programs",
    "reshaped": "the reference with its result changed: another type, order or digits, or wrong for some inputs only",
}
"""What a sample is made of. Also the words of the report."""
_SHARES = {"reference": 1, "renamed": 1, "mutant": 6, "reshaped": 2}

RESHAPES = {
    "int_to_float": ("int", "float(value) if type(value) is int and abs(value) < 2**53 else value"),
    "float_to_int": ("float", "int(value) if type(value) is float and value.is_integer() else value"),
    "closer_than_allowed": ("float", "value + 1e-8 if type(value) is float else value"),
    "further_than_allowed": ("float", "value * (1 + 1e-5) if type(value) is float else value"),
    "to_numpy": ("float", "__import__('numpy').float64(value) if type(value) is float else value"),
    "to_decimal": ("int float", "__import__('decimal').Decimal(value) if type(value) in (int, float) else value"),
    "one_more": ("int float", "value + 1 if type(value) in (int, float) else value"),
    "bool_to_int": ("bool", "int(value) if type(value) is bool else value"),
    "bool_to_text": ("bool", "str(value) if type(value) is bool else value"),
    "list_to_tuple": ("list", "tuple(value) if type(value) is list else value"),
    "list_to_generator": ("list", "(item for item in value) if type(value) is list else value"),
    "list_to_set": ("list", "set(value) if type(value) is list else value"),
    "items_to_float": ("list", "[float(item) if type(item) is int else item for item in value]"),
    "without_repetitions": ("list", "list(dict.fromkeys(value)) if type(value) is list else value"),
    "tuple_to_list": ("tuple", "list(value) if type(value) is tuple else value"),
    "tuple_to_set": ("tuple", "set(value) if type(value) is tuple else value"),
    "reversed": ("list tuple str", "value[::-1] if type(value) in (list, tuple, str) else value"),
    "to_subclass": ("str", "type('Text', (str,), {})(value) if type(value) is str else value"),
    "stripped": ("str", "value.strip() if type(value) is str else value"),
    "falsy_to_none": ("", "value or None"),
    "in_a_list": ("", "[value]"),
    "clears_its_input": ("", "(value, [part.clear() for part in arguments if type(part) is list])[0]"),
    "none_after_40_calls": ("", "value if len(calls) < 40 else None"),
    "none_for_long_inputs": ("", "value if len(repr(arguments)) < 50 else None"),
}
"""Name -> the types of result that it is meant for (any, where none is named), and what becomes of ``value``."""
_RESHAPED = """{reference}

_reference = {entry_point}
calls = []


def {entry_point}(*arguments):
    calls.append(None)
    value = _reference(*arguments)
    return {expression}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which program is to be made: it is made where it is judged, since mutants take a while."""

    item: int
    """Position among all samples, from 0."""
    problem: int
    """Position of the problem in its file."""
    kind: str
    choice: int
    """Which of the programs of this kind; taken modulo their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One program to judge."""

    item: int
    kind: str
    detail: str
    """The mutant's operator, or the key of ``RESHAPES``."""
    program: str


def plan_samples(num_problems: int, num_samples: int, *, seed: int) -> list[Plan]:
    """Every problem in turn, in an order of chance; kinds by their shares. The same for the same numbers.

    The first samples of a larger number are those of a smaller one.
    """
    rng = random.Random(seed)
    kinds = [kind for kind, share in _SHARES.items() for _ in range(share)]
    plans: list[Plan] = []
    while len(plans) < num_samples:
        for problem in rng.sample(range(num_problems), num_problems):
            kind = rng.choice(kinds)
            plans.append(Plan(item=len(plans), problem=problem, kind=kind, choice=rng.randrange(1 << 30)))
    return plans[:num_samples]


def read_programs(path: Path, names: Container[str]) -> dict[str, list[Sample]]:
    """A file of ``code-a1 eval code --export-evalplus``, or of EvalPlus's own code generation: samples by problem.

    Raises:
        InputError: a line is none of EvalPlus's samples, or its problem is not among ``names``.
    """
    found: dict[str, list[Sample]] = {}
    for item, row in enumerate(read_rows(path)):
        name, program = str(row.get("task_id")).replace("Mbpp/", "MBPP/"), row.get("solution")
        if name not in names or not isinstance(program, str):
            raise InputError(
                f"{path}: row {item} must have a text 'solution' and as 'task_id' a problem of FILE, got {name!r}; "
                "write it with `code-a1 eval code FILE --export-evalplus`"
            )
        found.setdefault(name, []).append(Sample(item=item, kind="response", detail="", program=program))
    return found


def make_samples(plans: Sequence[Plan], problem: EvalPlusProblem) -> list[Sample]:
    """The programs of some plans of one problem, in their order. A mutant that does not exist becomes a reshaping."""
    mutants = mutants_of(problem.reference) if any(plan.kind == "mutant" for plan in plans) else []
    samples = []
    for plan in plans:
        kind, detail, program = plan.kind, "", problem.reference
        if kind == "mutant" and mutants:
            mutant = mutants[plan.choice % len(mutants)]
            detail, program = mutant.operator, mutant.source
        elif kind == "renamed":
            program = rename_locals(problem.reference)
        elif kind != "reference":
            kind, detail = "reshaped", _reshape_for(problem, plan.choice)
            expression = RESHAPES[detail][1]
            program = _RESHAPED.format(
                reference=problem.reference, entry_point=problem.entry_point, expression=expression
            )
        samples.append(Sample(item=plan.item, kind=kind, detail=detail, program=program))
    return samples


def _reshape_for(problem: EvalPlusProblem, choice: int) -> str:
    """One that is meant for the problem's results; for any result where the file lists none."""
    result = type(decode(problem.expected[0])).__name__ if problem.expected else ""
    fitting = sorted(name for name, (types, _) in RESHAPES.items() if not types or result in types.split())
    return fitting[choice % len(fitting)]


def rename_locals(source: str) -> str:
    """The same program in other words: local variables are called ``<name>_renamed``, and a comment leads.

    A name stays where renaming it could be heard outside: parameters, whatever is also a global, a builtin or a
    keyword argument, and all names of a program that looks at its own (``locals``, ``eval``...).

    Raises:
        SyntaxError: the source does not parse.
    """
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    kept = set(dir(builtins)) | {"_"} | {name for node in nodes for name in _names_heard_outside(node)}
    kept |= {node.id for node in _outside_functions(tree) if isinstance(node, ast.Name)}
    if names & {"locals", "globals", "vars", "eval", "exec"}:
        kept |= names
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in stored - kept:
            node.id += "_renamed"
    return f"# The same in other words.\n{ast.unparse(tree)}\n"


def _names_heard_outside(node: ast.AST) -> list[str]:
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.keyword):
        return [node.arg or ""]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name or ""]
    return [node.rest or ""] if isinstance(node, ast.MatchMapping) else []


def _outside_functions(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found += [child, *_outside_functions(child)]
    return found
