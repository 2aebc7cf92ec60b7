"""Two policies on random weights, in the real shape, and their questions: nothing is fetched.

A random model draws tokens without sense, so the tokens are what has sense: the vocabulary is filled up with whole
programs (Code LLM) and whole asserts (Test LLM) of the micro world. Every response then has code in it, rewards differ
within a group, and both policies have something to learn.
"""

import json
import math
from pathlib import Path

import torch
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen2Config

from code_a1_recipe.micro_world.settings import MicroSettings
from code_a1_recipe.micro_world.tokenizer import build_tokenizer
from code_a1_recipe.micro_world.world import write_rows

from .runs import QUESTIONS, World

_KEYS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
)
SHAPES = {
    "Qwen2.5-Coder-1.5B": dict(zip(_KEYS, (1536, 28, 12, 2, 8960, 151_936), strict=True)),
    "Qwen2.5-Coder-0.5B": dict(zip(_KEYS, (896, 24, 14, 2, 4864, 151_936), strict=True)),
    "small": dict(zip(_KEYS, (128, 4, 4, 2, 256, 4096), strict=True)),
}
"""The first two as published; the third is for the rehearsal."""
POSITIONS = 2048

# Standard deviation of the logits, as a part of sqrt(2 ln V), at which a few tokens take all probability. Other weights
# must be seen and bfloat16 must not: computed on a CPU for the shape of 1.5B, a sampled token has a probability of 0.03
# on average at 0.72, and bfloat16 changes it by 0.0018 (at most 0.033); at 1.0 these are 0.166, 0.013 and 0.085.
SPREAD_OF_LOGITS = 0.72


def make_world(
    folder: Path,
    shape: dict[str, int],
    *,
    device: str,
    num_questions: int = 3 * QUESTIONS,
    num_positions: int = POSITIONS,
    num_comments: int = 0,
) -> World:
    """Write both models, with weights and tokenizers of their own, and the questions.

    Args:
        folder: folder for models and questions.
        shape: sizes of the models.
        device: "cuda" or "cpu", where the weights are drawn.
        num_questions: number of questions, at most 1,000.
        num_positions: longest sequence of the models in tokens.
        num_comments: tokens that write only a comment, for each token that writes code. With them, long responses hold
            few programs.
    """
    split = MicroSettings(num_train=1000, num_heldout=1).split()
    rows = [question.row() for question in split.train]
    programs = [f"\n```python\n{row['reference']}\n```" for row in rows]
    asserts = [f"\n{text}" for row in rows for text in row["tests"]]
    comments = [""] * num_comments
    for seed, (name, pieces) in enumerate({"code": programs, "test": asserts}.items()):
        written = [text for piece in pieces for text in (piece, *comments)]
        corpus = [str(row["prompt"]) for row in rows] + programs
        tokenizer = _tokenizer(corpus, written, shape["vocab_size"], num_positions)
        _save_model(folder / name, tokenizer, shape, seed=seed, device=device, num_positions=num_positions)
    write_rows(split.train[:num_questions], folder / "questions.jsonl")
    return World(code_model=folder / "code", test_model=folder / "test", questions=folder / "questions.jsonl")


def _tokenizer(corpus: list[str], pieces: list[str], size: int, num_positions: int) -> PreTrainedTokenizerFast:
    """The micro world's tokenizer with entries up to ``size`` that no merge leads to: they are written, never read."""
    tokenizer = build_tokenizer("code", corpus, max_length=num_positions)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    to_alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    vocabulary = content["model"]["vocab"]
    for number in range(len(vocabulary), size - 1):
        text = f"# {number}{pieces[number % len(pieces)]}\n"  # the number makes it the only one
        vocabulary["".join(piece for piece, _ in to_alphabet.pre_tokenize_str(text))] = number
    filled = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(content)),
        pad_token=tokenizer.pad_token,
        eos_token=tokenizer.eos_token,
        unk_token="<|endoftext|>",  # transformers' class for Qwen2 adds it, where it is missing
        clean_up_tokenization_spaces=False,
        model_max_length=num_positions,
        padding_side="left",
    )
    filled.chat_template = tokenizer.chat_template
    assert len(filled) == size
    return filled


def _save_model(
    folder: Path,
    tokenizer: PreTrainedTokenizerFast,
    shape: dict[str, int],
    *,
    seed: int,
    device: str,
    num_positions: int,
) -> None:
    config = Qwen2Config(
        **shape,
        tie_word_embeddings=True,
        rope_theta=1_000_000.0,
        rms_norm_eps=1e-6,
        max_position_embeddings=num_positions,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        initializer_range=0.02 * math.sqrt(1536 / shape["hidden_size"]),
    )
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    wanted = SPREAD_OF_LOGITS * math.sqrt(2 * math.log(config.vocab_size))
    with torch.no_grad():
        model.model.norm.weight.fill_(wanted / (config.initializer_range * math.sqrt(config.hidden_size)))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if device == "cuda":
        del model
        torch.cuda.empty_cache()
