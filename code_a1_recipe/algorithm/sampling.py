"""Sampling parameters of a policy, the seeds of its samples, and the token ids of its prompts."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .episode_types import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParameters:
    """Sampling parameters of one policy, in training or in validation."""

    temperature: float
    top_p: float
    top_k: int
    max_prompt_tokens: int
    max_response_tokens: int

    @classmethod
    def of_rollout(cls, rollout: Any, *, validation: bool = False) -> "SamplingParameters":
        """Read a policy's block ``rollout``. In validation, temperature, top_p and top_k come from ``val_kwargs``."""
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
        """A copy that always takes the likeliest token, as at temperature 0."""
        # vLLM creates no random generator for a request at temperature 0. On a CPU, one such request in a batch makes
        # vLLM sample the whole batch with an unseeded generator. With top_k = 1, vLLM chooses the same tokens, and
        # other requests are not affected.
        return replace(self, temperature=1.0, top_p=1.0, top_k=1)


def beginning_of_answer(messages: Sequence[Message]) -> str:
    """The beginning of the answer, if the prompt's last message gives one; otherwise ``""``."""
    return messages[-1]["content"] if messages[-1]["role"] == "assistant" else ""


def prompt_token_ids(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """Token ids of a chat prompt, up to the place where the model continues."""
    return prompts_token_ids(tokenizer, [messages])[0]


def prompts_token_ids(tokenizer: Any, prompts: Sequence[Sequence[Message]]) -> list[list[int]]:
    """Token ids of several prompts of one template. A fast tokenizer encodes the prompts on all cores."""
    # An end-of-message token behind the beginning of an answer would tell the model that the answer is complete.
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
    """Return a seed in [0, 2**31) that depends on each argument, and on nothing else.

    The same arguments give the same seed in every process, so a run can be repeated sample by sample.
    """
    # Python's `hash` differs between processes. `repr` distinguishes ("1", 23) from ("12", 3); their joined texts are
    # equal.
    digest = hashlib.sha256(repr((seed, *parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
