"""Draws the questions of the micro world from a seed, with their hidden tests, and splits them."""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import Kind
from sandbox.text import INPUT_ENTRY

from ..files import json_lines
from .difficulty import WORLDS, World
from .mistakes import Mistake, draw_mistake, mistakes_of
from .operations import ORDERS, Action, Condition, Decision, Operation, Selection, Value, answer_or_none, conditions_of

ENTRY_POINT = "f"
READS = "Read {} and print the result."
"""Last sentence of a prompt if programs read standard input."""

_AMOUNTS = range(1, 4)
_CONSTANTS = range(10)

_HIDDEN_TESTS_PER_QUESTION = 14
_GOLDEN_TESTS_PER_QUESTION = 4


@dataclass(frozen=True, kw_only=True)
class MicroQuestion:
    """A question with its reference, its hidden tests and its typical mistakes."""

    world: World
    operation: Operation
    hidden_inputs: tuple[Value, ...]
    """Inputs of the hidden tests: every bound, the integers below and above it, and random inputs. Each of the
    ``mistakes`` gives a wrong answer for at least one of these inputs."""
    mistakes: tuple[Mistake, ...]
    """Typical mistakes. Each mistake gives a wrong answer for some input."""
    kind: str
    """"functions", or "stdin" if the programs read standard input and print the answer."""

    @property
    def id(self) -> str:
        """The same id in all settings and on all machines. It has no underscore, because verl's uids may have none."""
        digest = hashlib.sha256(self.prompt.encode()).hexdigest()
        return f"micro-{digest[:12]}"

    @property
    def prompt(self) -> str:
        if self.kind == Kind.FUNCTIONS:
            return self.operation.english
        name = "v" if self.operation.takes_list else "x"
        return f"{self.operation.english} {READS.format(name)}"

    @property
    def reference(self) -> str:
        return self.program(self.operation)

    def program(self, operation: Operation) -> str:
        """Return the function of ``operation``. A program that reads standard input also calls the function."""
        if self.kind == Kind.FUNCTIONS:
            return operation.python
        read = "[*map(int, input().split())]" if operation.takes_list else "int(input())"
        gives_list = isinstance(operation, Selection) and operation.kind in ORDERS
        shown = "*f" if gives_list else "f"
        return f"{operation.python}\nprint({shown}({read}))"

    @property
    def hidden_tests(self) -> tuple[str, ...]:
        return tuple(map(self.test_of, self.hidden_inputs))

    def test_of(self, x: Value) -> str:
        """Return a correct assertion for the input ``x``."""
        return assert_text(x, self.operation.answer(x), self.kind)

    @property
    def golden_tests(self) -> tuple[str, ...]:
        """A few tests, like those of a dataset. The inputs are drawn without regard to the boundaries."""
        rng = random.Random("golden tests of " + self.prompt)
        tests: dict[str, None] = {}
        while len(tests) < _GOLDEN_TESTS_PER_QUESTION:
            x = self.draw_input(rng)
            tests[self.test_of(x)] = None
        return tuple(tests)

    def draw_input(self, rng: random.Random) -> Value:
        """Draw a random input without regard to the boundaries."""
        first, last = self.world.inputs[0], self.world.inputs[-1]
        if not self.operation.takes_list:
            return rng.randint(first, last)
        (length,) = rng.choices((0, 1, 2), (2, 4, 4))
        return [rng.randint(first, last) for _ in range(length)]

    @property
    def mutant(self) -> str:
        """A program with a typical mistake. All machines draw the same mistake."""
        rng = random.Random("mutant of " + self.prompt)
        return self.program(draw_mistake(rng, self.mistakes))

    def row(self, *, buggy_programs: Sequence[str] = ()) -> dict[str, object]:
        """Return the question in the recipe's native columns."""
        is_function = self.kind == Kind.FUNCTIONS
        row: dict[str, object] = {
            "id": self.id,
            "prompt": self.prompt,
            "reference": self.reference,
            "entry_points": [ENTRY_POINT] if is_function else [],
            "tests": self.hidden_tests,
            "golden_tests": self.golden_tests,
            "buggy_programs": buggy_programs,
            "data_source": "micro",
        }
        if not is_function:
            row["kind"] = self.kind
        return row


Questions = tuple[MicroQuestion, ...]


@dataclass(frozen=True)
class Split:
    """Questions for training and for validation. No prompt is in more than one part."""

    train: Questions
    heldout: Questions


def assert_text(x: Value, expected: Value, kind: str) -> str:
    """Return an assert by which the input ``x`` must give the answer ``expected``."""
    if kind == Kind.FUNCTIONS:
        return f"assert {ENTRY_POINT}({x}) == {expected}"
    return f'assert {INPUT_ENTRY}("{_line(x)}") == "{_line(expected)}"'


def _line(value: Value) -> str:
    """Return a value as programs read and print it: the numbers of a list are separated by spaces."""
    return str(value).strip("[]").replace(",", "")


def draw_questions(
    *,
    seed: int,
    num_questions: int,
    world: str = "narrow",
    kind: str = Kind.FUNCTIONS,
) -> Questions:
    """Draw questions with distinct prompts.

    Args:
        seed: seed of all draws.
        num_questions: number of questions.
        world: a name of ``WORLDS``.
        kind: "functions" or "stdin".

    Raises:
        ValueError: there are too few distinct prompts.
    """
    rng = random.Random(seed)
    drawn_world = WORLDS[world]
    operations: dict[str, Operation] = {}
    # Tens of thousands of prompts exist. If a setting asks for more prompts, this limit ends the loop.
    for _ in range(200 * num_questions + 1000):
        if len(operations) == num_questions:
            return tuple(_complete(operation, drawn_world, kind) for operation in operations.values())
        operation = _draw_operation(rng, drawn_world)
        operations.setdefault(operation.english, operation)
    raise ValueError(f"only {len(operations)} distinct micro questions found, {num_questions} asked for; ask for fewer")


def boundary_inputs(operation: Operation) -> list[Value]:
    """Return the inputs that show typical mistakes: every bound with its neighbours, and the empty list."""
    near = _boundaries(operation)
    if operation.takes_list:
        return [[], *([x] for x in near)]
    return [*near]


def write_rows(
    questions: Iterable[MicroQuestion],
    path: Path,
    *,
    buggy_programs: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write questions as JSON lines in the recipe's native columns. ``buggy_programs`` maps question ids to sources."""
    programs = buggy_programs or {}
    rows = [question.row(buggy_programs=programs.get(question.id, ())) for question in questions]
    path.write_text(json_lines(rows), encoding="utf-8")


def _draw_operation(rng: random.Random, world: World) -> Operation:
    if world.nested_chance and rng.random() < world.nested_chance:
        return _draw_nested_decision(rng, world)
    (family,) = rng.choices(("two-way", "three-way", "aggregate", "collect"), (50, 15, 25, 10))
    if family == "two-way":
        then, otherwise = rng.sample(_ACTION_POOL, 2)
        condition = _draw_condition(rng, world)
        return Decision(condition, then, otherwise)
    if family == "three-way":
        low = rng.choice(range(world.bounds.start, world.bounds.stop - 2))
        high = rng.choice(range(low + 2, world.bounds.stop))
        then, second_then, otherwise = rng.sample(_ACTION_POOL, 3)
        first = Condition(rng.choice(("<", "<=")), low)
        second = Condition(rng.choice((">", ">=")), high)
        return Decision(first, then, Decision(second, second_then, otherwise))
    if family == "aggregate":
        kind = rng.choice(("len", "max", "max", "min", "min"))
        default = None if kind == "len" else rng.choice(_CONSTANTS)
        return Selection(kind=kind, condition=_draw_condition(rng, world), default=default)
    changes = [action for action in _ACTION_POOL if action.kind != "constant"]
    order = rng.choice(("kept", *ORDERS))
    return Selection(
        kind=order,
        action=rng.choice(changes),
        condition=_draw_condition(rng, world),
    )


def _draw_nested_decision(rng: random.Random, world: World) -> Decision:
    then, inner_otherwise, otherwise = rng.sample(_ACTION_POOL, 3)
    outer = _draw_condition(rng, world)
    inner = _draw_condition(rng, world)
    return Decision(outer, Decision(inner, then, inner_otherwise), otherwise)


def _draw_condition(rng: random.Random, world: World) -> Condition:
    (kind,) = rng.choices(("bound", "equal", "parity"), (72, 10, 18))
    if kind == "parity":
        return Condition(rng.choice(("even", "odd")))
    relation = "==" if kind == "equal" else rng.choice(("<", "<=", ">", ">="))
    return Condition(relation, rng.choice(world.bounds))


_ACTION_POOL = (
    *(Action(kind, amount) for kind in ("add", "subtract") for amount in _AMOUNTS),
    *(Action("constant", amount) for amount in _CONSTANTS),
    Action("negate"),
    Action("keep"),
)


def _complete(operation: Operation, world: World, kind: str) -> MicroQuestion:
    """Choose the hidden inputs, and keep the mistakes that give a wrong answer."""
    # The pool is wider than the world's inputs, because some mistakes show only on inputs outside of the world.
    pool: Sequence[Value] = range(world.inputs.start - 10, world.inputs.stop + 6)
    if operation.takes_list:
        pool = _list_pool(operation, world)
    answers = [operation.answer(x) for x in pool]
    shown_by: dict[Mistake, list[int]] = {}
    for mistake in mistakes_of(operation):
        mistaken = [answer_or_none(mistake.operation, x) for x in pool]
        places = [i for i, answer in enumerate(answers) if mistaken[i] != answer]
        if places:
            shown_by[mistake] = places
    return MicroQuestion(
        world=world,
        operation=operation,
        hidden_inputs=_choose_inputs(operation, pool, shown_by.values()),
        mistakes=tuple(shown_by),
        kind=kind,
    )


def _choose_inputs(operation: Operation, pool: Sequence[Value], shown_by: Iterable[list[int]]) -> tuple[Value, ...]:
    """Choose all boundary inputs, then an input for each mistake that no boundary input shows, then random inputs.

    Args:
        operation: operation of the question.
        pool: inputs to choose from.
        shown_by: for each mistake, the positions in ``pool`` of the inputs that show the mistake.
    """
    chosen = [pool.index(x) for x in boundary_inputs(operation)]
    for places in shown_by:
        if not set(places) & set(chosen):
            chosen.append(places[0])
    rest = [i for i in range(len(pool)) if i not in chosen]
    # The order does not depend on the process's hash seed, because Python hashes a string seed with SHA-512.
    random.Random(operation.english).shuffle(rest)
    num_missing = max(0, _HIDDEN_TESTS_PER_QUESTION - len(chosen))
    return tuple(pool[i] for i in (*chosen, *rest[:num_missing]))


def _boundaries(operation: Operation) -> list[int]:
    """List each bound with its two neighbours, and 0 and 1 for a parity, in the order of the conditions."""
    near: list[int] = []
    for condition in conditions_of(operation):
        if condition.bound is None:
            near += (0, 1)
        else:
            near += range(condition.bound - 1, condition.bound + 2)
    return list(dict.fromkeys(near))


def _list_pool(operation: Operation, world: World) -> tuple[list[int], ...]:
    """Return the pool for an operation on lists: the empty list, single elements, and lists that show an order."""
    rng = random.Random("lists of " + operation.english)
    known = [*_boundaries(operation), *range(world.inputs.start - 1, world.inputs.stop + 1)]
    lists = [[], *([x] for x in known)]
    for length in (2, 3, 4):
        for _ in range(12):
            lists.append([rng.choice(known) for _ in range(length)])
    unique = dict.fromkeys(map(tuple, lists))
    return tuple(map(list, unique))
