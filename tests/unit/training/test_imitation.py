"""What the Test LLM should have said to imitate a suite, as the tokens of a response."""

from code_a1_recipe.algorithm.hooks import Imitated
from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.imitation import answer_to, imitated_response

ASSERTS = ("assert f(1) == 2",)
FIELDS = {"prompt": "Add one.", "entry_points": "`f(x)`", "reads_input": False, "candidate": "def f(x): return 1"}


def test_the_answer_is_bare_where_the_prompt_shows_no_block():
    messages = render("micro_test", **FIELDS, num_cases=2)
    assert answer_to(messages, ASSERTS) == "assert f(1) == 2"


def test_the_answer_goes_on_from_the_beginning_that_the_prompt_gives():
    messages = render("chat_v2_test", **FIELDS, num_cases=2)
    assert messages[-1] == {"role": "assistant", "content": "```python\nassert"}
    assert answer_to(messages, ASSERTS) == " f(1) == 2\n```"


def test_there_is_no_answer_to_a_beginning_of_another_kind():
    messages = [{"role": "user", "content": "Test it."}, {"role": "assistant", "content": "1. "}]
    assert answer_to(messages, ASSERTS) == ""


class Tokenizer:
    """One token a character."""

    eos_token_id = 0

    def apply_chat_template(self, prompts, **_):
        return {"input_ids": [[ord(letter) for letter in messages[-1]["content"]] for messages in prompts]}

    def encode(self, text, *, add_special_tokens):
        assert not add_special_tokens
        return [ord(letter) for letter in text]


def respond(*, prompt=10_000, response=100, asserts=ASSERTS):
    room = SamplingParameters(
        temperature=1.0, top_p=1.0, top_k=-1, max_prompt_tokens=prompt, max_response_tokens=response
    )
    imitated = Imitated(fields=FIELDS, asserts=asserts, weight=1.0)
    settings = read_config("cpu")  # whose prompts are those of the micro world
    return imitated_response(imitated, settings=settings, tokenizer=Tokenizer(), room=room, step=3)


def test_the_response_is_the_suite_and_the_end_token_of_the_step():
    made = respond()
    assert (made.text, made.policy_version) == (ASSERTS[0], 3)
    assert list(made.token_ids) == [*map(ord, ASSERTS[0]), 0]
    assert made.log_probs == (0.0,) * len(made.token_ids)
    assert "def f(x): return 1" in "".join(map(chr, made.prompt_ids))


def test_a_suite_that_does_not_fit_is_none():
    length = len(ASSERTS[0]) + 1
    assert respond(response=length) is not None
    assert respond(response=length - 1) is None
    assert respond(prompt=5) is None
    assert respond(asserts=()) is None
