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
        """Read a policy's block ``rollout``; in validation, its ``val_kwargs`` say how tokens are drawn."""
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
        """The same lengths, but always the likeliest token, as at temperature 0."""
        # vLLM gives a request at temperature 0 no random generator. On a CPU, one such request in a batch makes vLLM
        # sample the whole batch from an unseeded generator; top_k = 1 has the same effect without that.
        return replace(self, temperature=1.0, top_p=1.0, top_k=1)


def beginning_of_answer(messages: Sequence[Message]) -> str:
    """The beginning of the answer that a prompt gives as its last message, or ``""``; the response goes on from it."""
    return messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""


def prompt_token_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Token ids of a chat prompt, up to the place where the model goes on."""
    return prompts_token_ids(tokenizer, [messages])[0]


def prompts_token_ids(tokenizer: Any, prompts: Sequence[Sequence[Message]]) -> list[list[int]]:
    """Token ids of several prompts of one template; a fast tokenizer uses all cores for them."""
    # With a given beginning, an end of message behind it would tell the model that the answer is complete.
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

    It is the same in every process, so a run can be repeated sample by sample.
    """
    # Python's own hash differs by process. `repr` keeps ("1", 23) and ("12", 3) apart; joined texts would be equal.
    digest = hashlib.sha256(repr((seed, *parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
