"""Supervised warm start of a tiny model on noisy demonstrations.

``builder`` runs ``python -m code_a1_recipe.micro_world.sft`` in one process for each model, so that each process uses a
core. Every 20 steps a process prints the number 20 on standard output.
"""

import itertools
import json
import logging
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from .builder import RECORDED_FILE
from .demonstrations import Demonstration, draw_demonstrations
from .settings import HEAD_SIZE, MicroSettings, ModelSettings
from .tokenizer import Role, build_tokenizer

logger = logging.getLogger(__name__)

MAX_LENGTH = 1024
"""Largest number of tokens in a prompt and its response together. Demonstrations have less than 120 tokens."""

# Twice the usual value. With the usual value, the hidden states of such a small model would start too small.
_INITIALIZER_RANGE = 0.04

# Number of demonstrations from which a tokenizer learns its pieces.
_CORPUS_SIZE = 3000
# Number of batches whose demonstrations are sorted by length together. The rows of a batch then need little padding.
_BATCHES_SORTED_TOGETHER = 8
_WARM_UP_STEPS = 30
# The last step has this share of the peak learning rate.
_FINAL_LR_SHARE = 0.03
_MAX_GRADIENT_NORM = 1.0
_STEPS_BETWEEN_REPORTS = 20


@dataclass(frozen=True)
class Example:
    """A demonstration as token ids. Only the response counts in the loss."""

    prompt_ids: list[int]
    response_ids: list[int]

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)


def warm_start(
    role: Role, settings: MicroSettings, *, on_step: Callable[[int, float], object]
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Build a tokenizer and a model, and train the model.

    Equal settings give the same model on one kind of processor with one thread. Processors of other kinds round
    differently, so the models differ slightly and write slightly different texts.

    Args:
        role: "code", "test" or "both".
        settings: settings of all assets. The settings also determine the training questions.
        on_step: called after each step with the number of finished steps and the loss (nats per response token).
    """
    model_settings = settings.model_settings(role)
    demonstrations = draw_demonstrations(role, settings, settings.split().train)
    corpus = list(itertools.islice(demonstrations, _CORPUS_SIZE))
    tokenizer = build_tokenizer(role, corpus_texts(corpus), max_length=MAX_LENGTH)
    model = build_model(model_settings, tokenizer, seed=settings.seed)
    logger.info("policy=%s parameters=%d vocabulary=%d", role, model.num_parameters(), len(tokenizer))
    train(model, _batches(demonstrations, tokenizer, model_settings), model_settings, on_step=on_step)
    return model, tokenizer


def build_model(settings: ModelSettings, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> LlamaForCausalLM:
    """Make a randomly initialised float32 Llama, which vLLM and verl load unchanged.

    The model's vocabulary is as large as the tokenizer's. In a larger vocabulary, vLLM would mask the additional token
    ids, but the trainer would not. As a result, vLLM and the trainer would disagree on every probability. The model is
    a Llama, because for some other types (qwen2) AutoTokenizer replaces the pre-tokenizer.
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.num_layers,
        num_attention_heads=settings.hidden_size // HEAD_SIZE,
        num_key_value_heads=settings.hidden_size // HEAD_SIZE,
        head_dim=HEAD_SIZE,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        initializer_range=_INITIALIZER_RANGE,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).float()  # type: ignore[no-any-return,no-untyped-call]


def corpus_texts(demonstrations: Iterable[Demonstration]) -> Iterator[str]:
    """Yield prompts and responses without chat markup, from which a tokenizer learns its pieces."""
    for shown in demonstrations:
        for message in shown.messages:
            yield message["content"]
        yield shown.response


def train(
    model: LlamaForCausalLM,
    batches: Iterator[list[Example]],
    settings: ModelSettings,
    *,
    on_step: Callable[[int, float], object],
) -> None:
    """Train ``model`` in place: minimise the mean negative log-likelihood of the response tokens.

    Muon trains the matrices of the layers and AdamW the other weights. AdamW alone took several times as many steps to
    learn the arithmetic. The learning rate rises over the first steps, then falls linearly.
    """

    def rate(step: int) -> float:
        rise = min(1.0, (step + 1) / _WARM_UP_STEPS)
        fall = 1.0 - (1.0 - _FINAL_LR_SHARE) * step / settings.num_steps
        return rise * fall

    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    ids_of_matrices = set(map(id, matrices))
    rest = [weight for weight in model.parameters() if id(weight) not in ids_of_matrices]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(matrices, lr=settings.muon_lr, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(rest, lr=settings.adamw_lr, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    schedulers = [LambdaLR(optimizer, rate) for optimizer in optimizers]
    model.train()
    for step, batch in enumerate(itertools.islice(batches, settings.num_steps)):
        loss = response_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), _MAX_GRADIENT_NORM)
        for optimizer, scheduler in zip(optimizers, schedulers, strict=True):
            optimizer.step()
            scheduler.step()
        model.zero_grad()
        on_step(step + 1, loss.item())
    model.eval()  # type: ignore[no-untyped-call]


def response_loss(model: LlamaForCausalLM, batch: Sequence[Example]) -> torch.Tensor:
    """Return the mean negative log-likelihood (nats) of all response tokens in a batch of N examples.

    Sequences are padded on the right to length L. A causal model needs no mask for the padding. The output matrix is
    applied only to the positions that predict a response token.
    """
    length = max(example.num_tokens for example in batch)
    ids_NL = torch.zeros(len(batch), length, dtype=torch.long)
    predicts_NL = torch.zeros(len(batch), length, dtype=torch.bool)
    for row, example in enumerate(batch):
        end = example.num_tokens
        ids_NL[row, :end] = torch.tensor(example.prompt_ids + example.response_ids)
        predicts_NL[row, len(example.prompt_ids) - 1 : end - 1] = True
    hidden = model.model(input_ids=ids_NL, use_cache=False).last_hidden_state[predicts_NL]
    targets = ids_NL.roll(-1, dims=1)[predicts_NL]
    return torch.nn.functional.cross_entropy(model.lm_head(hidden), targets)


def _batches(
    demonstrations: Iterator[Demonstration], tokenizer: PreTrainedTokenizerFast, settings: ModelSettings
) -> Iterator[list[Example]]:
    rng = random.Random("order of batches")
    size = settings.batch_size
    while True:
        drawn = itertools.islice(demonstrations, size * _BATCHES_SORTED_TOGETHER)
        examples = [_encode(demonstration, tokenizer) for demonstration in drawn]
        examples.sort(key=lambda example: example.num_tokens)
        starts = list(range(0, len(examples), size))
        rng.shuffle(starts)
        for start in starts:
            yield examples[start : start + size]


def _encode(shown: Demonstration, tokenizer: PreTrainedTokenizerFast) -> Example:
    text = tokenizer.apply_chat_template(shown.messages, add_generation_prompt=True, tokenize=False)
    response_ids = [*tokenizer(shown.response)["input_ids"], tokenizer.eos_token_id]
    return Example(tokenizer(text, add_special_tokens=False)["input_ids"], response_ids)


def main(role: Role, settings_json: str, out: Path) -> None:
    """Train a model and save it. The process of the Code LLM also records the buggy programs.

    Args:
        role: "code", "test" or "both".
        settings_json: ``MicroSettings`` as JSON.
        out: folder for the model and its tokenizer.
    """
    settings = MicroSettings.model_validate_json(settings_json)
    torch.set_num_threads(1)

    def report(step: int, loss: float) -> None:
        if step % _STEPS_BETWEEN_REPORTS == 0:
            sys.stdout.write(f"{_STEPS_BETWEEN_REPORTS}\n")
            sys.stdout.flush()

    model, tokenizer = warm_start(role, settings, on_step=report)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    if role == "code":
        from .recorded_programs import record_buggy_programs

        recorded = record_buggy_programs(out, settings.split().heldout)
        out.with_name(RECORDED_FILE).write_text(json.dumps(recorded), encoding="utf-8")


if __name__ == "__main__":
    main(cast("Role", sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
