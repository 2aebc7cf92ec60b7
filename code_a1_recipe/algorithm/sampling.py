"""Sampling parameters of a policy, the seeds of its samples, and the token ids of its prompts."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .episode_types import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParameters:
    """How one policy samples; training and validation have one each."""

    temperature: float
    top_p: float
    top_k: int
    max_prompt_tokens: int
    max_response_tokens: int

    @classmethod
    def of_rollout(cls, rollout: Any, *, validation: bool = False) -> "SamplingParameters":
        """From a policy's block ``rollout``: as in training, or by its ``val_kwargs``."""
        source = rollout.val_kwargs if validation else rollout
        sampled = cls(
            temperature=source.temperature,
            top_p=source.top_p,
            top_k=source.top_k,
            max_prompt_tokens=rollout.prompt_length,
            max_response_tokens=rollout.response_length,
        )
        return sampled if source.do_sample else sampled.greedy()

    def greedy(self) -> "SamplingParameters":
        """The same lengths, always the likeliest token: what temperature 0 samples."""
        # Not by temperature 0: vLLM gives such a request no generator, and on a CPU a batch in which one request has
        # none samples all of them from an unseeded one.
        return replace(self, temperature=1.0, top_p=1.0, top_k=1)


def beginning_of_answer(messages: Sequence[Message]) -> str:
    """What a prompt whose last message is the assistant's gives of the answer; the response goes on from there."""
    return messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""


def prompt_token_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Token ids of a chat prompt that ends where the assistant's answer begins, or where its given beginning ends."""
    return prompts_token_ids(tokenizer, [messages])[0]


def prompts_token_ids(tokenizer: Any, prompts: Sequence[Sequence[Message]]) -> list[list[int]]:
    """Token ids of several prompts of one template, for which a fast tokenizer uses all cores."""
    # Where the answer has begun, an end of message after the beginning would tell the model that it is complete.
    is_begun = bool(beginning_of_answer(prompts[0]))
    encoded = tokenizer.apply_chat_template(
        prompts,
        add_generation_prompt=not is_begun,
        continue_final_message=is_begun,
        tokenize=True,
        return_dict=True,
    )
    return [[int(token) for token in row] for row in encoded["input_ids"]]


def sampling_seed(seed: int, *parts: object) -> int:
    """A seed in [0, 2**31) that depends on every part and on nothing else.

    Stable across processes and Python hash seeds, so a run can be repeated sample by sample.
    """
    # `repr` keeps apart what joined texts would not: ("1", 23) and ("12", 3). Python's own hash differs by process.
    digest = hashlib.sha256(repr((seed, *parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
