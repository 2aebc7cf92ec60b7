"""Supervised warm start of one tiny model on noisy demonstrations.

Run as ``python -m code_a1_recipe.micro_world.sft``, one process for each model, so that the two can use a
core each. Progress goes to standard output: every few steps their number.
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
from .demonstrations import (
    Demonstration,
    draw_code_demonstrations,
    draw_repair_demonstrations,
    draw_test_demonstrations,
)
from .settings import HEAD_SIZE, MicroSettings, ModelSettings
from .tokenizer import Role, build_tokenizer
from .world import MicroQuestion

logger = logging.getLogger(__name__)

MAX_LENGTH = 1024
"""Longest sequence, prompt and response together, in tokens. Demonstrations stay below 120."""

# Wide enough that the hidden states of so small a model start at a useful size.
_INITIALIZER_RANGE = 0.04

# Demonstrations from which a tokenizer's pieces are counted.
_CORPUS_SIZE = 3000
# Batches sorted by length together, so that little of a batch is padding.
_BATCHES_SORTED_TOGETHER = 8
_WARM_UP_STEPS = 30
# Share of the learning rate that is left at the last step.
_FINAL_LR_SHARE = 0.03
_MAX_GRADIENT_NORM = 1.0
_STEPS_BETWEEN_REPORTS = 20


@dataclass(frozen=True)
class Example:
    """A demonstration in tokens; the loss looks at the response only."""

    prompt_ids: list[int]
    response_ids: list[int]

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)


def warm_start(
    role: Role, settings: MicroSettings, *, on_step: Callable[[int, float], object]
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Build and train one model with its tokenizer.

    Deterministic for equal settings with one thread, on one kind of processor; other processors
    round differently, so their models differ slightly and write slightly different text.

    Args:
        role: "code", "test" or "both".
        settings: the whole of the assets' settings; the train questions are drawn again from them.
        on_step: called with the number of finished steps and the loss (nats per response token).
    """
    model_settings = settings.model_settings(role)
    demonstrations = _demonstrations(role, settings, settings.split().train)
    corpus = list(itertools.islice(demonstrations, _CORPUS_SIZE))
    tokenizer = build_tokenizer(role, corpus_texts(corpus), max_length=MAX_LENGTH)
    model = build_model(model_settings, tokenizer, seed=settings.seed)
    logger.info("policy=%s parameters=%d vocabulary=%d", role, model.num_parameters(), len(tokenizer))
    train(model, _batches(demonstrations, tokenizer, model_settings), model_settings, on_step=on_step)
    return model, tokenizer


def build_model(settings: ModelSettings, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> LlamaForCausalLM:
    """A randomly initialised float32 Llama, which vLLM and verl load as it is; its vocabulary is that of ``tokenizer``.

    Exactly that, because token ids beyond the tokenizer are masked by vLLM and not by the trainer: a
    padded vocabulary would make the two disagree on every probability. The model type must not
    be one for which AutoTokenizer brings its own pre-tokenizer (qwen2 does).
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
    """What a tokenizer learns its pieces from: prompts and responses, without chat markup."""
    for shown in demonstrations:
        yield from (message["content"] for message in shown.messages)
        yield shown.response


def train(
    model: LlamaForCausalLM,
    batches: Iterator[list[Example]],
    settings: ModelSettings,
    *,
    on_step: Callable[[int, float], object],
) -> None:
    """Minimise the mean negative log-likelihood of the response tokens, in place.

    Muon moves the matrices of the layers and AdamW the rest: AdamW alone learned the arithmetic
    of the world several times more slowly. The rate rises over a few steps, then falls linearly.
    """

    def rate(step: int) -> float:
        return min(1.0, (step + 1) / _WARM_UP_STEPS) * (1.0 - (1.0 - _FINAL_LR_SHARE) * step / settings.num_steps)

    matrices = [weight for weight in model.model.layers.parameters() if weight.ndim == 2]
    inside = {id(weight) for weight in matrices}
    rest = [weight for weight in model.parameters() if id(weight) not in inside]
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
    """Mean negative log-likelihood (nats) of all response tokens of a batch of N examples.

    Sequences are padded on the right, where a causal model needs no mask. The output matrix is
    applied to the positions that predict a response token only.
    """
    length = max(example.num_tokens for example in batch)
    ids_NL = torch.zeros(len(batch), length, dtype=torch.long)
    predicts_NL = torch.zeros(len(batch), length, dtype=torch.bool)
    for row, example in enumerate(batch):
        ids_NL[row, : example.num_tokens] = torch.tensor(example.prompt_ids + example.response_ids)
        predicts_NL[row, len(example.prompt_ids) - 1 : example.num_tokens - 1] = True
    hidden = model.model(input_ids=ids_NL, use_cache=False).last_hidden_state[predicts_NL]
    targets = ids_NL.roll(-1, dims=1)[predicts_NL]
    return torch.nn.functional.cross_entropy(model.lm_head(hidden), targets)


def _demonstrations(role: Role, settings: MicroSettings, questions: Sequence[MicroQuestion]) -> Iterator[Demonstration]:
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
    if settings.variant == "repair":
        sources.append(draw_repair_demonstrations(questions, seed=seed, noise=settings.noise))
    return map(next, itertools.cycle(sources))


def _batches(
    demonstrations: Iterator[Demonstration], tokenizer: PreTrainedTokenizerFast, settings: ModelSettings
) -> Iterator[list[Example]]:
    rng = random.Random("order of batches")
    size = settings.batch_size
    while True:
        shown = itertools.islice(demonstrations, size * _BATCHES_SORTED_TOGETHER)
        examples = sorted((_encode(one, tokenizer) for one in shown), key=lambda example: example.num_tokens)
        starts = list(range(0, len(examples), size))
        rng.shuffle(starts)
        for start in starts:
            yield examples[start : start + size]


def _encode(shown: Demonstration, tokenizer: PreTrainedTokenizerFast) -> Example:
    text = tokenizer.apply_chat_template(shown.messages, add_generation_prompt=True, tokenize=False)
    response_ids = [*tokenizer(shown.response)["input_ids"], tokenizer.eos_token_id]
    return Example(tokenizer(text, add_special_tokens=False)["input_ids"], response_ids)


def main(role: Role, settings_json: str, out: Path) -> None:
    """Train one model and save it, a Code LLM with its buggy programs; the entry of a subprocess of ``builder``.

    Args:
        role: "code", "test" or "both".
        settings_json: ``MicroSettings`` as JSON.
        out: folder to save model and tokenizer in.
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

        split = settings.split()
        recorded = record_buggy_programs(out, [*split.heldout, *split.hard])
        out.with_name(RECORDED_FILE).write_text(json.dumps(recorded), encoding="utf-8")


if __name__ == "__main__":
    main(cast("Role", sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
