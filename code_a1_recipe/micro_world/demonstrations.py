"""Noisy demonstrations for the warm start: what a mediocre programmer and a mediocre tester write."""

import contextlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..algorithm.prompts import render
from .mistakes import draw_mistake, misread
from .operations import Operation, Value, answer_or_none
from .settings import NoiseSettings
from .world import MicroQuestion, assert_text, boundary_inputs

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Demonstration:
    """One prompt with the response to imitate."""

    messages: Messages
    """Before the chat template."""
    response: str
    """Bare code or bare asserts, without fences and without the end token."""


def draw_code_demonstrations(
    questions: Sequence[MicroQuestion], *, seed: int, noise: NoiseSettings
) -> Iterator[Demonstration]:
    """Endless programs, often wrong in the same way and sometimes in another."""
    rng = random.Random(f"code demonstrations {seed}")
    while True:
        question = rng.choice(questions)
        operation = question.operation
        if rng.random() < noise.mistake_chance:
            operation = draw_mistake(rng, question.mistakes)
        operation = misread(rng, operation, chance=noise.misread_chance)
        yield Demonstration(render("micro_code", prompt=question.prompt), question.program(operation))


def draw_repair_demonstrations(
    questions: Sequence[MicroQuestion], *, seed: int, noise: NoiseSettings
) -> Iterator[Demonstration]:
    """Endless repairs of programs that failed a call, as often in vain as programs misread their question."""
    rng = random.Random(f"repair demonstrations {seed}")
    while True:
        question = rng.choice(questions)
        right = question.operation
        shown = misread(rng, right, chance=noise.misread_chance)
        if shown == right or rng.random() < noise.mistake_chance:
            shown = draw_mistake(rng, question.mistakes)
        failed = [x for x in question.hidden_inputs if answer_or_none(shown, x) != right.answer(x)]
        if not failed:
            continue
        x = rng.choice(failed)
        call, _, expected = question.test_of(x).removeprefix("assert ").partition(" == ")
        response = question.program(misread(rng, right, chance=noise.misread_chance))
        try:
            result = f"returns {assert_text(x, shown.answer(x), question.kind).partition(' == ')[2]}"
        except ValueError as error:
            result = f"raises ValueError: {error}"
        messages = render(
            "micro_repair",
            prompt=question.prompt,
            candidate=question.program(shown),
            call=call,
            result=result,
            expected=expected,
        )
        yield Demonstration(messages, response)


def draw_test_demonstrations(
    questions: Sequence[MicroQuestion],
    *,
    seed: int,
    noise: NoiseSettings,
    suite_sizes: Sequence[int],
    black_box: bool = False,
) -> Iterator[Demonstration]:
    """Endless suites of distinct asserts about a shown candidate, some of them false.

    Most inputs are drawn without a look at the boundaries; to prefer those is left to the training.
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
        while len(asserts) < num_cases:
            if rng.random() < boundary_chance:
                x = rng.choice(boundary_inputs(question.operation))
            else:
                x = question.draw_input(rng)
            expected = _expected_output(rng, right=question.operation, shown=shown, x=x, noise=noise)
            asserts[assert_text(x, expected, question.kind)] = None
        program = question.program(shown)
        messages = render(template, prompt=question.prompt, candidate=program, num_cases=num_cases)
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
