"""A perfect tester of the micro world: it reads question and program and asks where their branches change.

It tells how much a world has to offer to a Test LLM: no trained one can be much better. All its claims are 0, since the
judge's oracle computes what is right.
"""

import ast
import random
import re

from code_a1_recipe.micro_world.operations import Value
from code_a1_recipe.micro_world.world import READS, assert_text
from sandbox import Kind

_OTHERS = 3


def write_suites(question: str, program: str, *, num_suites: int, num_cases: int, seed: int) -> list[str]:
    """``num_suites`` texts of ``num_cases`` asserts, no call twice before all that it knows are asked.

    First the bounds themselves, where "at most" differs from "less than", then their neighbours, then elsewhere.
    """
    rng = random.Random(seed)
    bounds = _bounds(question, program)
    near = dict.fromkeys(x + step for x in bounds for step in (-1, 1))
    spread = [rng.choice(bounds) + rng.randint(-9, 9) for _ in range(_OTHERS)]
    known = [*bounds, *near, *spread]
    values: list[Value] = [*known]
    if " in v " in question:
        mixed = [rng.sample(known, len(known)) for _ in range(_OTHERS)]
        values = [[], *([x] for x in bounds), *mixed, *([x] for x in known)]
    kind = Kind.STDIN if question.endswith((READS.format("x"), READS.format("v"))) else Kind.FUNCTIONS
    calls = list(dict.fromkeys(assert_text(value, 0, kind) for value in values))
    asked = [calls[i % len(calls)] for i in range(num_suites * num_cases)]
    return ["\n".join(asked[s::num_suites]) for s in range(num_suites)]


def _bounds(question: str, program: str) -> list[int]:
    """Integers that something is compared with, the program's and the question's; 0 where there are none."""
    found = [int(number) for number in re.findall(r"(?:less than|at most|more than|at least|equal to) (\d+)", question)]
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError):
        nodes = []
    compared = [one for node in nodes if isinstance(node, ast.Compare) for one in node.comparators]
    found += [one.value for one in compared if isinstance(one, ast.Constant) and type(one.value) is int]
    return list(dict.fromkeys(found)) or [0]
