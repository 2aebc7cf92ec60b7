"""Turns suites that the Test LLM shall imitate into responses of the Test LLM."""

from collections.abc import Sequence
from typing import Any

from ..algorithm.episode_types import Message, Response
from ..algorithm.hooks import Imitated
from ..algorithm.prompts import render
from ..algorithm.sampling import SamplingParameters, beginning_of_answer, prompt_token_ids
from ..algorithm.settings import RecipeSettings

_FENCE = "```"


def imitated_response(
    imitated: Imitated,
    *,
    settings: RecipeSettings,
    tokenizer: Any,
    room: SamplingParameters,
    step: int,
) -> Response | None:
    """Return the suite as a response of the Test LLM at ``step``, or None if it is longer than ``room`` allows."""
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
    """Write the response that the Test LLM should have given, beginning where the prompt ends.

    If the prompt shows a block of code, the response puts the asserts into such a block. If the prompt ends with the
    beginning of an answer, and the asserts do not continue that beginning, the result is "".
    """
    text = "\n".join(asserts)
    if any(_FENCE in message["content"] for message in messages):
        text = f"{_FENCE}python\n{text}\n{_FENCE}"
    # The tokens of the prompt are not trained, so the response must begin exactly where the prompt ends.
    beginning = beginning_of_answer(messages)
    return text.removeprefix(beginning) if text.startswith(beginning) else ""
