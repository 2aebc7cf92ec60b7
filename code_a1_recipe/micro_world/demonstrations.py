"""Noisy demonstrations for the warm start, as a mediocre programmer and a mediocre tester would write them."""

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..algorithm.prompts import render
from .mistakes import draw_mistake, misread
from .operations import Operation, Value
from .settings import MicroSettings, NoiseSettings
from .world import MicroQuestion, assert_text, boundary_inputs

Messages = list[dict[str, str]]

_MAX_BOUNDARY_DRAWS = 1000
"""Number of draws for one suite that may give boundary inputs. A question about a parity has only two boundary inputs,
so without this limit a suite of three distinct asserts might never be complete."""


@dataclass(frozen=True)
class Demonstration:
    """A prompt, and the response that the model imitates."""

    messages: Messages
    """The prompt, without the chat template."""
    response: str
    """Code or asserts, without code fences and without an end token."""


def draw_demonstrations(
    role: str, settings: MicroSettings, questions: Sequence[MicroQuestion]
) -> Iterator[Demonstration]:
    """Yield endlessly what the model for ``role`` ("code", "test" or "both") learns from."""
    seed = settings.seed
    code = draw_code_demonstrations(questions, seed=seed, noise=settings.noise)
    test = draw_test_demonstrations(
        questions,
        seed=seed,
        noise=settings.test_noise,
        suite_sizes=settings.suite_sizes,
        black_box=settings.black_box,
    )
    sources = {"code": [code], "test": [test], "both": [code, test]}[role]
    return map(next, itertools.cycle(sources))


def draw_code_demonstrations(
    questions: Sequence[MicroQuestion], *, seed: int, noise: NoiseSettings
) -> Iterator[Demonstration]:
    """Yield programs endlessly. Misreadings are frequent and always of the same kinds. Other mistakes are rarer."""
    rng = random.Random(f"code demonstrations {seed}")
    while True:
        question = rng.choice(questions)
        operation = question.operation
        if rng.random() < noise.mistake_chance:
            operation = draw_mistake(rng, question.mistakes)
        operation = misread(rng, operation, chance=noise.misread_chance)
        yield Demonstration(render("micro_code", prompt=question.prompt), question.program(operation))


def draw_test_demonstrations(
    questions: Sequence[MicroQuestion],
    *,
    seed: int,
    noise: NoiseSettings,
    suite_sizes: Sequence[int],
    black_box: bool = False,
) -> Iterator[Demonstration]:
    """Endlessly yield suites of distinct asserts about a shown candidate. Some asserts are incorrect.

    Most inputs are drawn without regard to the boundaries. So RL training can still teach the model to prefer boundary
    inputs.

    Args:
        questions: questions to draw from.
        seed: seed of all draws.
        noise: rates of mistakes.
        suite_sizes: the size of each suite is drawn from these numbers.
        black_box: True leaves the candidate out of the prompts.
    """
    rng = random.Random(f"test demonstrations {seed}")
    template = "micro_black_box_test" if black_box else "micro_test"
    for number in itertools.count():
        question = rng.choice(questions)
        boundary_chance = question.world.boundary_chance if noise.boundary_chance is None else noise.boundary_chance
        if number < question.world.num_boundary_lessons:
            boundary_chance = 1.0
        shown = question.operation
        if rng.random() < noise.shown_mistake_chance:
            shown = draw_mistake(rng, question.mistakes)
        num_cases = rng.choice(suite_sizes)
        asserts: dict[str, None] = {}
        num_draws = 0
        while len(asserts) < num_cases:
            num_draws += 1
            if num_draws <= _MAX_BOUNDARY_DRAWS and rng.random() < boundary_chance:
                x = rng.choice(boundary_inputs(question.operation))
            else:
                x = question.draw_input(rng)
            expected = _expected_output(rng, right=question.operation, shown=shown, x=x, noise=noise)
            asserts[assert_text(x, expected, question.kind)] = None
        messages = render(
            template,
            prompt=question.prompt,
            candidate=question.program(shown),
            num_cases=num_cases,
        )
        yield Demonstration(messages, "\n".join(asserts))


def _expected_output(
    rng: random.Random, *, right: Operation, shown: Operation, x: Value, noise: NoiseSettings
) -> Value:
    expected = right.answer(x)
    if rng.random() < noise.trust_chance:
        with contextlib.suppress(ValueError):
            expected = shown.answer(x)
    if rng.random() < noise.slip_chance:
        if isinstance(expected, int):
            return expected + rng.choice((-1, 1))
        return expected[:-1] if rng.random() < 0.5 else expected[::-1]
    return expected
