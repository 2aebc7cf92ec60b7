import itertools
import random

import pytest

from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.micro_world.demonstrations import draw_code_demonstrations, draw_test_demonstrations
from code_a1_recipe.micro_world.settings import MicroSettings, NoiseSettings
from code_a1_recipe.micro_world.world import boundary_inputs, draw_questions

TINY = {"num_layers": 1, "intermediate_size": 8, "num_steps": 1}
NO_NOISE = NoiseSettings(
    misread_chance=0, mistake_chance=0, shown_mistake_chance=0, trust_chance=0, slip_chance=0, boundary_chance=0
)


@pytest.fixture(scope="module")
def questions():
    return draw_questions(seed=0, num_questions=100)


def test_the_templates_are_plain_and_short():
    assert render("micro_code", prompt="Return x.") == [{"role": "user", "content": "Task: Return x."}]
    shown = {"prompt": "Return x.", "candidate": "def f(x):\n    return x", "num_cases": 4}
    texts = [render(template, **shown)[0]["content"] for template in ("micro_test", "micro_black_box_test")]
    assert texts == [
        "Task: Return x.\nCandidate:\ndef f(x):\n    return x\nWrite 4 asserts.",
        "Task: Return x.\nWrite 4 asserts.",
    ]


@pytest.mark.parametrize(("noise", "least", "most"), [(NO_NOISE, 1, 1), (NoiseSettings(), 0.3, 0.6)])
def test_noise_makes_many_programs_wrong_and_without_it_they_are_the_references(questions, noise, least, most):
    programs = {render("micro_code", prompt=one.prompt)[0]["content"]: one.reference for one in questions}
    shown = draw_code_demonstrations(questions, seed=0, noise=noise)
    right = [programs[one.messages[0]["content"]] == one.response for one in itertools.islice(shown, 2000)]
    assert least <= sum(right) / len(right) <= most


def test_without_noise_claims_are_right_and_as_many_as_asked(questions):
    references = {one.prompt: one.reference for one in questions}
    shown = draw_test_demonstrations(questions, seed=0, noise=NO_NOISE, suite_sizes=(4,))
    for one in itertools.islice(shown, 200):
        prompt = one.messages[0]["content"].splitlines()[0].removeprefix("Task: ")
        asserts = one.response.splitlines()
        assert len(set(asserts)) == 4
        # Both texts come from the generator, so executing them here is safe.
        exec(compile("\n".join([references[prompt], *asserts]), "own", "exec"), {})


def test_without_noise_questions_with_two_boundary_inputs_get_whole_suites():
    wide = draw_questions(seed=0, num_questions=200, world="wide")
    parities = [one for one in wide if len(boundary_inputs(one.operation)) == 2]
    assert parities
    quiet = MicroSettings(variant="sft", world="wide").test_noise
    for one in itertools.islice(draw_test_demonstrations(parities, seed=0, noise=quiet, suite_sizes=(4,)), 20):
        assert len(set(one.response.splitlines())) == 4


def test_equal_seeds_give_equal_demonstrations(questions):
    def first(seed):
        noise = NoiseSettings()
        code = draw_code_demonstrations(questions, seed=seed, noise=noise)
        test = draw_test_demonstrations(questions, seed=seed, noise=noise, suite_sizes=(3, 4))
        return list(itertools.islice(code, 20)), list(itertools.islice(test, 20))

    assert first(3) == first(3)
    assert first(3) != first(4)


def test_inputs_fit_the_operation(questions):
    rng = random.Random(0)
    for question in questions * 20:
        x = question.draw_input(rng)
        numbers = x if question.operation.takes_list else [x]
        assert set(numbers) <= set(range(-2, 10))
        assert len(numbers) <= 2


def test_settings_survive_json_and_name_themselves_by_content():
    settings = MicroSettings(seed=5, noise=NO_NOISE)
    assert MicroSettings.model_validate_json(settings.model_dump_json()) == settings
    digests = [MicroSettings(seed=seed, noise=NO_NOISE).digest() for seed in (5, 6)]
    assert settings.digest() == digests[0] != digests[1]
    assert len(digests[0]) == 16


def test_the_two_models_differ_in_size():
    settings = MicroSettings()
    assert settings.code.num_layers < settings.test.num_layers


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_train": 0}, "micro.num_train must be at least 1, got 0"),
        ({"seed": "one"}, "micro.seed must be an integer, got 'one'"),
        ({"suite_sizes": []}, r"micro.suite_sizes must be .* at least 1 item.*, got \[\]"),
        ({"suite_sizes": [9]}, r"micro.suite_sizes must be at most 8, got 9"),
        ({"variant": "black-box"}, r"micro.variant must be one of .*did you mean black_box"),
        ({"sead": 1}, r"unknown key 'micro.sead'; did you mean micro.seed"),
        ({"code": {"num_layers": 1}}, "micro.code.hidden_size is missing"),
        (
            {"test": dict(TINY, hidden_size=48)},
            "micro.test.hidden_size must be a multiple of 32, got 48 .Width of the model: a multiple of the width",
        ),
        ({"noise": {"slip_chance": 1.5}}, "micro.noise.slip_chance must be at most 1, got 1.5"),
    ],
)
def test_bad_settings_are_refused(changes, words):
    with pytest.raises(SettingsError, match=words):
        MicroSettings.read(changes, where="micro")
