"""Seeded questions of the micro world, their hidden tests, and the split into train and held-out questions."""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import Kind
from sandbox.text import INPUT_ENTRY

from ..files import json_lines
from .mistakes import Mistake, draw_mistake, mistakes_of
from .operations import ORDERS, Action, Condition, Decision, Operation, Selection, Value, answer_or_none, conditions_of

ENTRY_POINT = "f"
READS = "Read {} and print the result."
"""Words after the task if programs read standard input."""

_AMOUNTS = range(1, 4)
_CONSTANTS = range(10)

_HIDDEN_TESTS_PER_QUESTION = 14
_GOLDEN_TESTS_PER_QUESTION = 4


@dataclass(frozen=True, kw_only=True)
class World:
    """Ranges of integers in questions and tests, and frequencies that make the questions easy or hard."""

    inputs: range
    bounds: range
    nested_chance: float = 0.0
    """Share of questions with a second condition inside the first one."""
    boundary_chance: float
    """Chance that a demonstrated test has a boundary input, where branches change."""
    num_boundary_lessons: int = 0
    """Number of the first demonstrations to a Test LLM in which all inputs are boundary inputs. From them it learns to
    copy a number out of a program; the later ones teach that testers seldom do so. A model that never copies a number
    earns no reward for it, so RL training alone would not teach it."""


WORLDS = {
    "narrow": World(
        inputs=range(-2, 10),
        bounds=range(8),
        boundary_chance=0.2,
    ),
    "wide": World(
        inputs=range(-5, 45),
        bounds=range(40),
        nested_chance=0.25,
        boundary_chance=0.1,
        num_boundary_lessons=12_600,
    ),
}
"""Worlds by ``MicroSettings.world``. In the narrow world a few random asserts detect nearly every mistake. In the wide
world most mistakes show on one input of fifty, so a suite must choose its inputs. Arithmetic is as easy in both."""


@dataclass(frozen=True, kw_only=True)
class MicroQuestion:
    """A question with its reference, its hidden tests and its typical mistakes."""

    world: World
    operation: Operation
    hidden_inputs: tuple[Value, ...]
    """Inputs of the hidden tests: every bound, the integers below and above it, and a random choice of others.
    Together they tell the reference from each of ``mistakes``."""
    mistakes: tuple[Mistake, ...]
    """Typical mistakes. Each of them gives a wrong answer for some input."""
    data_source: str
    kind: str
    """"functions", or "stdin" for the same task with programs that read standard input and print."""

    @property
    def id(self) -> str:
        """The id. It is stable across settings and machines, and has no underscore, since verl's uids must not."""
        return "micro-" + hashlib.sha256(self.prompt.encode()).hexdigest()[:12]

    @property
    def prompt(self) -> str:
        if self.kind == Kind.FUNCTIONS:
            return self.operation.english
        return f"{self.operation.english} {READS.format('v' if self.operation.takes_list else 'x')}"

    @property
    def reference(self) -> str:
        return self.program(self.operation)

    def program(self, operation: Operation) -> str:
        """The program of ``operation``: a function, with a call of it if programs read standard input."""
        if self.kind == Kind.FUNCTIONS:
            return operation.python
        read = "[*map(int, input().split())]" if operation.takes_list else "int(input())"
        shown = "*f" if isinstance(operation, Selection) and operation.kind in ORDERS else "f"
        return f"{operation.python}\nprint({shown}({read}))"

    @property
    def hidden_tests(self) -> tuple[str, ...]:
        return tuple(map(self.test_of, self.hidden_inputs))

    def test_of(self, x: Value) -> str:
        """A correct assertion for the input ``x``."""
        return assert_text(x, self.operation.answer(x), self.kind)

    @property
    def golden_tests(self) -> tuple[str, ...]:
        """A few tests like a dataset's. Their inputs are drawn without regard to the boundaries."""
        rng = random.Random("golden tests of " + self.prompt)
        tests: dict[str, None] = {}
        while len(tests) < _GOLDEN_TESTS_PER_QUESTION:
            tests[self.test_of(self.draw_input(rng))] = None
        return tuple(tests)

    def draw_input(self, rng: random.Random) -> Value:
        """A random input, drawn without regard to the boundaries."""
        ends = self.world.inputs.start, self.world.inputs.stop - 1
        if not self.operation.takes_list:
            return rng.randint(*ends)
        (length,) = rng.choices((0, 1, 2), (2, 4, 4))
        return [rng.randint(*ends) for _ in range(length)]

    @property
    def mutant(self) -> str:
        """A typical buggy program, the same on every machine."""
        return self.program(draw_mistake(random.Random("mutant of " + self.prompt), self.mistakes))

    def row(self, *, buggy_programs: Sequence[str] = ()) -> dict[str, object]:
        """The question in the recipe's native columns."""
        is_function = self.kind == Kind.FUNCTIONS
        row: dict[str, object] = {
            "id": self.id,
            "prompt": self.prompt,
            "reference": self.reference,
            "entry_points": [ENTRY_POINT] if is_function else [],
            "tests": self.hidden_tests,
            "golden_tests": self.golden_tests,
            "buggy_programs": buggy_programs,
            "data_source": self.data_source,
        }
        return row if is_function else row | {"kind": self.kind}


Questions = tuple[MicroQuestion, ...]


@dataclass(frozen=True)
class Split:
    """Questions for training and for validation. No prompt is in both."""

    train: Questions
    heldout: Questions
    hard: Questions
    """Held-out questions of deeper composition than all others."""


def assert_text(x: Value, expected: Value, kind: str) -> str:
    if kind == Kind.FUNCTIONS:
        return f"assert {ENTRY_POINT}({x}) == {expected}"
    given, printed = (str(value).strip("[]").replace(",", "") for value in (x, expected))
    return f'assert {INPUT_ENTRY}("{given}") == "{printed}"'


def draw_questions(
    *,
    seed: int,
    num_questions: int,
    hard: bool = False,
    world: str = "narrow",
    kind: str = Kind.FUNCTIONS,
) -> Questions:
    """Draw ``num_questions`` questions of a world of ``WORLDS``, with distinct prompts.

    Raises:
        ValueError: there are not as many distinct prompts.
    """
    rng, drawn_world = random.Random(seed), WORLDS[world]
    draw = _draw_hard_operation if hard else _draw_operation
    source = "micro-hard" if hard else "micro"
    operations: dict[str, Operation] = {}
    # Tens of thousands of prompts exist. With this limit, an impossible setting is an error and no endless loop.
    for _ in range(200 * num_questions + 1000):
        if len(operations) == num_questions:
            return tuple(_complete(operation, drawn_world, source, kind) for operation in operations.values())
        operation = draw(rng, drawn_world)
        operations.setdefault(operation.english, operation)
    raise ValueError(f"only {len(operations)} distinct micro questions found, {num_questions} asked for; ask for fewer")


def boundary_inputs(operation: Operation) -> list[Value]:
    """Inputs for which typical mistakes show: every bound with its neighbours, and the empty list."""
    near = _boundaries(operation)
    if operation.takes_list:
        return [[], *([x] for x in near)]
    return [*near]


def write_rows(
    questions: Iterable[MicroQuestion], path: Path, *, buggy_programs: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write questions as JSON lines in the recipe's native columns. ``buggy_programs`` are by question id."""
    programs = buggy_programs or {}
    rows = [question.row(buggy_programs=programs.get(question.id, ())) for question in questions]
    path.write_text(json_lines(rows), encoding="utf-8")


def _draw_operation(rng: random.Random, world: World) -> Operation:
    if world.nested_chance and rng.random() < world.nested_chance:
        return _draw_nested_decision(rng, world)
    family = rng.choices(("two-way", "three-way", "aggregate", "collect"), (50, 15, 25, 10))[0]
    if family == "two-way":
        then, otherwise = rng.sample(_ACTION_POOL, 2)
        return Decision(_draw_condition(rng, world), then, otherwise)
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
    changes = tuple(action for action in _ACTION_POOL if action.kind != "constant")
    order = rng.choice(("kept", *ORDERS))
    return Selection(kind=order, action=rng.choice(changes), condition=_draw_condition(rng, world))


def _draw_hard_operation(rng: random.Random, world: World) -> Operation:
    # In a world with nested decisions the other splits have them too, so they would not be harder.
    if rng.random() < 0.5 and not world.nested_chance:
        return _draw_nested_decision(rng, world)
    changes = tuple(action for action in _ACTION_POOL if action.kind not in ("constant", "keep"))
    return Selection(
        kind=rng.choice(("max", "min")),
        action=rng.choice(changes),
        condition=_draw_condition(rng, world),
        default=rng.choice(_CONSTANTS),
    )


def _draw_nested_decision(rng: random.Random, world: World) -> Decision:
    then, inner_otherwise, otherwise = rng.sample(_ACTION_POOL, 3)
    outer, inner = _draw_condition(rng, world), _draw_condition(rng, world)
    return Decision(outer, Decision(inner, then, inner_otherwise), otherwise)


def _draw_condition(rng: random.Random, world: World) -> Condition:
    kind = rng.choices(("bound", "equal", "parity"), (72, 10, 18))[0]
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


def _complete(operation: Operation, world: World, data_source: str, kind: str) -> MicroQuestion:
    """Choose the hidden inputs, and keep the mistakes that give a wrong answer."""
    pool: Sequence[Value] = range(world.inputs.start - 10, world.inputs.stop + 6)  # mistakes may show beyond the inputs
    if operation.takes_list:
        pool = _list_pool(operation, world)
    answers = [operation.answer(x) for x in pool]
    told_apart_by = {}
    for mistake in mistakes_of(operation):
        wrong_answers = [answer_or_none(mistake.operation, x) for x in pool]
        differs = [i for i, answer in enumerate(answers) if wrong_answers[i] != answer]
        if differs:
            told_apart_by[mistake] = differs
    return MicroQuestion(
        world=world,
        operation=operation,
        hidden_inputs=_choose_inputs(operation, pool, told_apart_by.values()),
        mistakes=tuple(told_apart_by),
        data_source=data_source,
        kind=kind,
    )


def _choose_inputs(
    operation: Operation, pool: Sequence[Value], told_apart_by: Iterable[Sequence[int]]
) -> tuple[Value, ...]:
    """Choose all boundaries, then an input for each mistake that they do not show, then random inputs."""
    chosen = [pool.index(x) for x in boundary_inputs(operation)]
    for differs in told_apart_by:
        if not set(differs) & set(chosen):
            chosen.append(differs[0])
    # Python hashes a string seed with SHA-512, so it does not depend on the hash seed of the process.
    rest = [i for i in range(len(pool)) if i not in chosen]
    random.Random(operation.english).shuffle(rest)
    chosen += rest[: max(0, _HIDDEN_TESTS_PER_QUESTION - len(chosen))]
    return tuple(pool[i] for i in chosen)


def _boundaries(operation: Operation) -> list[int]:
    """Each bound with both neighbours, without repetition, in the order of the question; 0 and 1 for a parity."""
    near: list[int] = []
    for condition in conditions_of(operation):
        near += (0, 1) if condition.bound is None else range(condition.bound - 1, condition.bound + 2)
    return list(dict.fromkeys(near))


def _list_pool(operation: Operation, world: World) -> tuple[list[int], ...]:
    """Candidate inputs for a list operation: the empty list, single elements, and lists that show an order."""
    rng = random.Random("lists of " + operation.english)
    known = [*_boundaries(operation), *range(world.inputs.start - 1, world.inputs.stop + 1)]
    singles = [[x] for x in known]
    drawn = [[rng.choice(known) for _ in range(length)] for length in (2, 3, 4) for _ in range(12)]
    unique = dict.fromkeys(map(tuple, [[], *singles, *drawn]))
    return tuple(map(list, unique))
