import itertools

import pytest
from transformers import AutoTokenizer

from code_a1_recipe.micro_world.demonstrations import draw_code_demonstrations, draw_test_demonstrations
from code_a1_recipe.micro_world.settings import ModelSettings, NoiseSettings
from code_a1_recipe.micro_world.sft import build_model, corpus_texts
from code_a1_recipe.micro_world.tokenizer import build_tokenizer
from code_a1_recipe.micro_world.world import draw_questions

LINE = "If x is at most 3, return x plus 1, otherwise -4."


@pytest.fixture(scope="module")
def demonstrations():
    questions = draw_questions(seed=0, num_questions=300)
    code = draw_code_demonstrations(questions, seed=0, noise=NoiseSettings())
    test = draw_test_demonstrations(questions, seed=0, noise=NoiseSettings(), suite_sizes=(3, 4))
    return {"code": list(itertools.islice(code, 1500)), "test": list(itertools.islice(test, 1500))}


@pytest.fixture(scope="module")
def tokenizers(demonstrations):
    return {role: build_tokenizer(role, corpus_texts(shown), max_length=256) for role, shown in demonstrations.items()}


def pieces(tokenizer, text):
    return [tokenizer.decode([token]) for token in tokenizer(text)["input_ids"]]


def test_the_two_tokenizers_cut_one_line_differently(tokenizers):
    found = {role: "|".join(pieces(tokenizer, LINE)) for role, tokenizer in tokenizers.items()}
    assert found == {
        "code": "If |x| is |at |most |3|, |return |x| plus |1|, |otherwise |-4|.",
        "test": "If x is at most |3|, |return x plus |1|, |otherwise |-4|.",
    }


def test_the_two_vocabularies_differ_in_size(tokenizers):
    assert len(tokenizers["code"]) != len(tokenizers["test"])
    for tokenizer in tokenizers.values():
        assert tokenizer.vocab_size == len(tokenizer)
        assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))
        assert (tokenizer.pad_token, tokenizer.eos_token) == ("<|pad|>", "<|end|>")
        assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 1)


def test_a_signed_integer_is_one_token(tokenizers):
    for tokenizer in tokenizers.values():
        for number in range(-12, 20):
            assert len(tokenizer(f"f({number}) == {number}", add_special_tokens=False)["input_ids"]) <= 6
            assert str(number) in pieces(tokenizer, f"f({number})")


@pytest.mark.parametrize("role", ["code", "test"])
def test_auto_tokenizer_gives_the_same_tokens_beside_a_model(role, tokenizers, demonstrations, tmp_path):
    tokenizer = tokenizers[role]
    shape = ModelSettings(hidden_size=32, num_layers=1, intermediate_size=32, num_steps=1)
    build_model(shape, tokenizer, seed=0).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert len(loaded) == loaded.vocab_size == len(tokenizer)
    for shown in demonstrations[role][:100]:
        expected = tokenizer.apply_chat_template(shown.messages, add_generation_prompt=True)["input_ids"]
        assert loaded.apply_chat_template(shown.messages, add_generation_prompt=True)["input_ids"] == expected
        response = loaded(shown.response)["input_ids"]
        assert response == tokenizer(shown.response)["input_ids"]
        assert loaded.decode(response) == shown.response


def test_the_chat_template_adds_two_tokens_and_ends_answers(tokenizers):
    messages = [{"role": "user", "content": "f"}, {"role": "assistant", "content": "x"}]
    for tokenizer in tokenizers.values():
        asked = tokenizer.apply_chat_template(messages[:1], add_generation_prompt=True, tokenize=False)
        assert asked == "<|user|>f<|model|>"
        assert tokenizer.apply_chat_template(messages, tokenize=False) == "<|user|>f<|model|>x<|end|>"


@pytest.mark.parametrize(("role", "longest_prompt", "longest_response"), [("code", 40, 40), ("test", 96, 48)])
def test_sequences_stay_short(tokenizers, demonstrations, role, longest_prompt, longest_response):
    tokenizer = tokenizers[role]
    for shown in demonstrations[role]:
        prompt = tokenizer.apply_chat_template(shown.messages, add_generation_prompt=True)["input_ids"]
        assert len(prompt) <= longest_prompt
        assert len(tokenizer(shown.response)["input_ids"]) + 1 <= longest_response


def test_building_twice_gives_the_same_tokenizer(tokenizers, demonstrations):
    for role, tokenizer in tokenizers.items():
        again = build_tokenizer(role, corpus_texts(demonstrations[role]), max_length=256)
        assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
