"""The chat messages of the two policies: the warm start sees exactly what training will render."""

from typing import Any

from ..algorithm.prompts import render

Messages = list[dict[str, str]]


def code_messages(prompt: str) -> Messages:
    """What the Code LLM is asked for one question."""
    return render("micro_code", prompt=prompt)


def test_messages(prompt: str, *, black_box: bool, **shown: Any) -> Messages:
    """What the Test LLM is asked for one question and one program, which black-box prompts leave out."""
    return render("micro_black_box_test" if black_box else "micro_test", prompt=prompt, **shown)


def template_texts(*, with_repair: bool = False) -> tuple[str, ...]:
    """The templates with their placeholders left in; part of the identity of the assets."""
    names = ("prompt", "candidate", "num_cases", "call", "result", "expected")
    fields: dict[str, Any] = {name: f"{{{{{name}}}}}" for name in names}
    templates = ["micro_code", "micro_test", "micro_black_box_test"]
    if with_repair:
        templates.append("micro_repair")
    texts = []
    for template in templates:
        texts += [f"[{message['role']}]{message['content']}" for message in render(template, **fields)]
    return tuple(texts)
