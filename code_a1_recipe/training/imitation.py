"""Suites that the Test LLM imitates, as responses that it might have written."""

from collections.abc import Sequence
from typing import Any

from ..algorithm.episode_types import Message, Response
from ..algorithm.hooks import Imitated
from ..algorithm.prompts import render
from ..algorithm.sampling import SamplingParameters, beginning_of_answer, prompt_token_ids
from ..algorithm.settings import RecipeSettings

_FENCE = "```"


def imitated_response(
    imitated: Imitated, *, settings: RecipeSettings, tokenizer: Any, room: SamplingParameters, step: int
) -> Response | None:
    """The suite as if the Test LLM had written it at ``step``; None where ``room`` has none for prompt or response."""
    messages = render(
        settings.prompts.test_template,
        **imitated.fields,
        num_cases=settings.episode.cases_per_suite,
    )
    prompt_ids = prompt_token_ids(tokenizer, messages)
    text = answer_to(messages, imitated.asserts)
    token_ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
    if not text or len(prompt_ids) > room.max_prompt_tokens or len(token_ids) > room.max_response_tokens:
        return None
    return Response(
        prompt_ids=tuple(prompt_ids),
        token_ids=tuple(token_ids),
        log_probs=(0.0,) * len(token_ids),
        text=text,
        policy_version=step,
    )


def answer_to(messages: Sequence[Message], asserts: Sequence[str]) -> str:
    """What the Test LLM should have said to its prompt, from where the prompt ends.

    In a block of code where the prompt shows one; empty where the prompt begins an answer in another way.
    """
    text = "\n".join(asserts)
    if any(_FENCE in message["content"] for message in messages):
        text = f"{_FENCE}python\n{text}\n{_FENCE}"
    # The prompt's own tokens are not trained, so the suite must go on exactly where they end.
    beginning = beginning_of_answer(messages)
    return text.removeprefix(beginning) if text.startswith(beginning) else ""
