"""A perfect tester of the micro world: it reads the question and the program, and calls the program at their bounds.

It gives an upper bound of the gain by a Test LLM: no trained Test LLM can be much better. Its asserts always expect 0,
because the judge uses the reference's return value anyway.
"""

import ast
import random
import re

from code_a1_recipe.micro_world.operations import Value
from code_a1_recipe.micro_world.world import READS, assert_text
from sandbox import Kind

_OTHERS = 3


def write_suites(question: str, program: str, *, num_suites: int, num_cases: int, seed: int) -> list[str]:
    """Write ``num_suites`` texts of ``num_cases`` asserts. A call is repeated only after all known calls were used.

    The first calls have the bounds themselves as arguments, where "at most" differs from "less than". Then come the
    neighbours of the bounds, and then random values.
    """
    rng = random.Random(seed)
    bounds = _bounds(question, program)
    neighbours = []
    for bound in bounds:
        neighbours += [bound - 1, bound + 1]
    spread = [rng.choice(bounds) + rng.randint(-9, 9) for _ in range(_OTHERS)]
    known = [*bounds, *dict.fromkeys(neighbours), *spread]
    values: list[Value] = [*known]
    if " in v " in question:  # the argument is a list
        mixed = [rng.sample(known, len(known)) for _ in range(_OTHERS)]
        bounds_alone = [[x] for x in bounds]
        known_alone = [[x] for x in known]
        values = [[], *bounds_alone, *mixed, *known_alone]
    reads_input = question.endswith((READS.format("x"), READS.format("v")))
    kind = Kind.STDIN if reads_input else Kind.FUNCTIONS
    calls = list(dict.fromkeys(assert_text(value, 0, kind) for value in values))
    suites: list[list[str]] = [[] for _ in range(num_suites)]
    for i in range(num_suites * num_cases):
        suites[i % num_suites].append(calls[i % len(calls)])
    return ["\n".join(suite) for suite in suites]


def _bounds(question: str, program: str) -> list[int]:
    """List the integers that the question or the program compares values with; only 0 if they have no comparison."""
    numbers = re.findall(r"(?:less than|at most|more than|at least|equal to) (\d+)", question)
    found = [int(number) for number in numbers]
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError):
        nodes = []
    for node in nodes:
        if not isinstance(node, ast.Compare):
            continue
        for compared in node.comparators:
            if isinstance(compared, ast.Constant) and type(compared.value) is int:
                found.append(compared.value)
    return list(dict.fromkeys(found)) or [0]
