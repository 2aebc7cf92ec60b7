import functools
import itertools
import random

from hypothesis import given, strategies as st

from code_a1_recipe.micro_world.demonstrations import draw_code_demonstrations, draw_test_demonstrations
from code_a1_recipe.micro_world.difficulty import WORLDS
from code_a1_recipe.micro_world.mistakes import misread, mistakes_of
from code_a1_recipe.micro_world.operations import answer_or_none
from code_a1_recipe.micro_world.settings import NoiseSettings
from code_a1_recipe.micro_world.sft import corpus_texts
from code_a1_recipe.micro_world.tokenizer import build_tokenizer
from code_a1_recipe.micro_world.world import draw_questions

any_text = st.text(max_size=80)
code_like = st.lists(
    st.sampled_from(
        ["def f(", "x", "v", "):", "\n    ", "return ", " - ", "-3", "12", "\nassert f(", "[1, -2]", "é", " == "]
    ),
    max_size=30,
).map("".join)


@functools.cache
def tokenizer_of(role):
    questions = draw_questions(seed=0, num_questions=100)
    if role == "code":
        shown = draw_code_demonstrations(questions, seed=0, noise=NoiseSettings())
    else:
        shown = draw_test_demonstrations(questions, seed=0, noise=NoiseSettings(), suite_sizes=(3, 4))
    return build_tokenizer(role, corpus_texts(itertools.islice(shown, 500)), max_length=256)


@given(text=any_text | code_like, role=st.sampled_from(["code", "test"]))
def test_any_text_survives_both_tokenizers(text, role):
    tokenizer = tokenizer_of(role)
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@given(seed=st.integers(0, 2**32), xs=st.lists(st.integers(-20, 20), max_size=5))
def test_every_program_agrees_with_its_operation(seed, xs):
    for world in WORLDS:
        _check_programs(seed, xs, world=world)


def _check_programs(seed, xs, *, world):
    (question,) = draw_questions(seed=seed, num_questions=1, world=world)
    rng = random.Random(seed)
    operations = [question.operation, *(mistake.operation for mistake in mistakes_of(question.operation))]
    operations += [misread(rng, operation, chance=0.5) for operation in operations]
    for operation in operations:
        scope = {}
        exec(compile(operation.python, "own", "exec"), scope)  # a program of the generator, not of a model
        for x in [list(xs)] if operation.takes_list else xs:
            try:
                value = scope["f"](x)
            except ValueError:
                value = None
            assert value == answer_or_none(operation, x)
