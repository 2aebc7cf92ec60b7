"""Sampling parameters of training and validation, and where a prompt's tokens end."""

from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.prompts import PROMPT_PAIRS, render
from code_a1_recipe.algorithm.sampling import (
    SamplingParameters,
    beginning_of_answer,
    prompt_token_ids,
    prompts_token_ids,
    sampling_seed,
)

ROLLOUT = SimpleNamespace(
    temperature=1.0,
    top_p=0.95,
    top_k=-1,
    prompt_length=1024,
    response_length=512,
    do_sample=True,
    val_kwargs=SimpleNamespace(temperature=0.2, top_p=0.9, top_k=20, do_sample=True),
)


def test_training_samples_by_the_rollout_block():
    assert SamplingParameters.of_rollout(ROLLOUT) == SamplingParameters(
        temperature=1.0, top_p=0.95, top_k=-1, max_prompt_tokens=1024, max_response_tokens=512
    )


def test_validation_samples_by_its_own_values_within_the_same_lengths():
    assert SamplingParameters.of_rollout(ROLLOUT, validation=True) == SamplingParameters(
        temperature=0.2, top_p=0.9, top_k=20, max_prompt_tokens=1024, max_response_tokens=512
    )


def test_greedy_takes_the_likeliest_token_and_keeps_a_generator():
    assert SamplingParameters.of_rollout(ROLLOUT, validation=True).greedy() == SamplingParameters(
        temperature=1.0, top_p=1.0, top_k=1, max_prompt_tokens=1024, max_response_tokens=512
    )


def test_a_validation_that_does_not_sample_is_greedy():
    val_kwargs = SimpleNamespace(**{**vars(ROLLOUT.val_kwargs), "do_sample": False})
    greedy = SamplingParameters.of_rollout(
        SimpleNamespace(**{**vars(ROLLOUT), "val_kwargs": val_kwargs}), validation=True
    )
    assert greedy == SamplingParameters.of_rollout(ROLLOUT, validation=True).greedy()


class ChatTokenizer:
    """Renders a chat as words, as a Hugging Face tokenizer would, and numbers them by their length."""

    def apply_chat_template(
        self, chats, *, add_generation_prompt, continue_final_message, tokenize=False, return_dict=False
    ):
        rows = []
        for messages in chats:
            words = [word for message in messages for word in (f"<{message['role']}>", message["content"], "</>")]
            words += ["<assistant>"] if add_generation_prompt else []
            rows.append(words[:-1] if continue_final_message else words)
        if not tokenize:
            return [" ".join(words) for words in rows]
        numbers = [[float(len(word)) for word in words] for words in rows]
        return {"input_ids": numbers} if return_dict else numbers


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "user", "content": "Add."}], ["<user>", "Add.", "</>", "<assistant>"]),
        (
            [{"role": "user", "content": "Add."}, {"role": "".join(["assist", "ant"]), "content": "def"}],
            ["<user>", "Add.", "</>", "<assistant>", "def"],
        ),
    ],
)
def test_a_prompt_ends_where_the_response_begins(messages, words):
    tokens = prompt_token_ids(ChatTokenizer(), tuple(messages))
    assert tokens == [len(word) for word in words]
    assert {type(token) for token in tokens} == {int}
    assert prompts_token_ids(ChatTokenizer(), [messages, messages]) == [tokens, tokens]


@pytest.mark.parametrize("pair", PROMPT_PAIRS)
def test_prompts_of_a_pair_begin_the_answer_alike_so_that_they_can_be_counted_together(pair):
    fields = {"prompt": "p", "entry_points": "`f`"}
    begun = {bool(beginning_of_answer(render(f"{pair}_code", reads_input=one, **fields))) for one in (False, True)}
    assert len(begun) == 1


def test_the_beginning_is_of_the_last_message():
    user, begun = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
    example = {"role": "assistant", "content": "example"}
    assert [beginning_of_answer(chat) for chat in ([user], [user, example, user, begun], [user, example, user])] == [
        "", "a", "",
    ]  # fmt: skip


def test_seeds_are_these_numbers_in_every_process():
    seeds = [sampling_seed(0), sampling_seed(7, "code", 1, "q", 0), sampling_seed(7, "code", 1, "q", "0")]
    assert seeds == [1223360973, 284958305, 917603311]
