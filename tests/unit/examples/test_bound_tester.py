"""The perfect tester of the micro world: nearly every mistake is met by eight asserts."""

import ast

import pytest

from code_a1_recipe.micro_world.difficulty import WORLDS
from code_a1_recipe.micro_world.operations import answer_or_none
from code_a1_recipe.micro_world.world import draw_questions
from examples.bound_tester import write_suites


def asked(suites):
    return [ast.literal_eval(line.removeprefix("assert f(").rpartition(") ==")[0]) for line in suites]


@pytest.mark.parametrize("world", WORLDS)
def test_nearly_every_mistake_is_detected_in_eight_calls(world):
    weight = missed = 0
    for number, question in enumerate(draw_questions(seed=11, num_questions=150, world=world)):
        for mistake in question.mistakes:
            program = mistake.operation.python
            inputs = asked(write_suites(question.prompt, program, num_suites=8, num_cases=1, seed=number))
            is_met = any(answer_or_none(mistake.operation, x) != question.operation.answer(x) for x in inputs)
            weight, missed = weight + mistake.weight, missed + mistake.weight * (not is_met)
    assert missed / weight < 0.015


def test_suites_have_the_size_that_is_asked_for_and_what_is_no_program_is_no_error():
    suites = write_suites("If x is more than 30, return x.", "not python (", num_suites=3, num_cases=2, seed=0)
    assert suites[0].splitlines()[0] == "assert f(30) == 0"
    assert [len(suite.splitlines()) for suite in suites] == [2, 2, 2]
