"""The chat messages of the two policies: the warm start sees exactly what training will render."""

from __future__ import annotations

from ..prompts import find_prompt_pair, render

Messages = list[dict[str, str]]

PROMPT_PAIR_NAME = "micro"
_PAIR = find_prompt_pair(PROMPT_PAIR_NAME)


def code_messages(prompt: str) -> Messages:
    """What the Code LLM is asked for one question."""
    return render(_PAIR.code, prompt=prompt)


def test_messages(prompt: str, *, candidate: str, num_cases: int) -> Messages:
    """What the Test LLM is asked for one question and one program."""
    return render(_PAIR.test, prompt=prompt, candidate=candidate, num_cases=num_cases)


def template_texts() -> tuple[str, ...]:
    """Both templates with their placeholders left in; part of the identity of the assets."""
    code = render(_PAIR.code, prompt="{{prompt}}")
    test = render(_PAIR.test, prompt="{{prompt}}", candidate="{{candidate}}", num_cases="{{num_cases}}")
    return tuple(f"[{message['role']}]{message['content']}" for message in (*code, *test))
