"""The chat messages of the two policies: the warm start sees exactly what training will render."""

from typing import Any

from ..algorithm.prompts import PROMPT_PAIRS, render

Messages = list[dict[str, str]]

_PAIR = PROMPT_PAIRS["micro"]


def code_messages(prompt: str) -> Messages:
    """What the Code LLM is asked for one question."""
    return render(_PAIR.code, prompt=prompt)


def test_messages(prompt: str, *, black_box: bool, **shown: Any) -> Messages:
    """What the Test LLM is asked for one question and one program, which black-box prompts leave out."""
    return render(_PAIR.black_box_test if black_box else _PAIR.test, prompt=prompt, **shown)


def repair_messages(prompt: str, **failed: Any) -> Messages:
    """What the Code LLM is asked in a repair turn; ``failed`` has the template's other fields."""
    return render(_PAIR.repair, prompt=prompt, **failed)


def template_texts(*, with_repair: bool = False) -> tuple[str, ...]:
    """The templates with their placeholders left in; part of the identity of the assets."""
    names = ("prompt", "candidate", "num_cases", "call", "result", "expected")
    fields: dict[str, Any] = {name: f"{{{{{name}}}}}" for name in names}
    templates = [_PAIR.code, _PAIR.test, _PAIR.black_box_test]
    if with_repair:
        templates.append(_PAIR.repair)
    texts = []
    for template in templates:
        texts += [f"[{message['role']}]{message['content']}" for message in render(template, **fields)]
    return tuple(texts)
