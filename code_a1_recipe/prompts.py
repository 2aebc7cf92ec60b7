"""Prompt templates: text files with ``{{name}}`` placeholders, rendered to chat messages.

A template is one user message, or, where it holds lines that read ``[system]`` and ``[user]``, one
message for each. A pair of templates, one for each policy, has a name in ``PROMPT_PAIRS``.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from reward_fns.lookup import lookup

TEMPLATE_FOLDER = Path(__file__).parent / "prompt_templates"

FIELDS = ("prompt", "candidate", "num_cases")
"""What a template may ask for: the problem statement, the program under test, K."""

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z_0-9]*)\}\}")
_SECTION = re.compile(r"^\[(system|user)\]\n", re.MULTILINE)


class PromptError(ValueError):
    """A template is unknown or malformed, or a field is missing. Shown to whoever wrote the config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """The templates of one style."""

    code: str
    """Template of the Code LLM; gets ``prompt``."""
    test: str
    """Template of the Test LLM; gets ``prompt``, ``candidate`` and ``num_cases``."""
    black_box_test: str
    """The same for a Test LLM that is not shown the program; gets ``prompt`` and ``num_cases``."""


PROMPT_PAIRS: dict[str, PromptPair] = {
    "chat_v1": PromptPair(code="chat_v1_code", test="chat_v1_test", black_box_test="chat_v1_black_box_test"),
    "micro": PromptPair(code="micro_code", test="micro_test", black_box_test="micro_black_box_test"),
}
"""By name: "chat_v1" for instruction-tuned models, "micro" for the tiny ones of ``code_a1_recipe.micro``."""


def find_prompt_pair(name: str) -> PromptPair:
    """The pair called ``name``; ValueError with the known names when there is none."""
    return lookup(name, PROMPT_PAIRS, what="prompt pair")


def template_names() -> tuple[str, ...]:
    """Names of the shipped templates, sorted."""
    return tuple(sorted(path.stem for path in TEMPLATE_FOLDER.glob("*.txt")))


def render(template_name: str, **fields: object) -> list[dict[str, str]]:
    """Fill a template.

    Values are put in once and never read again: braces, dollar signs, placeholders or section lines inside
    a problem or a program stay as they are. A final newline of the template file is not part of the prompt.

    Args:
        template_name: a name of :func:`template_names`, or the path of a file that ends in ``.txt``.
        fields: values for ``FIELDS``; a template need not use all of them. Numbers are written as by str.

    Returns:
        Chat messages, ``[{"role": "user", "content": ...}]``, after a system message
        if the template has one.

    Raises:
        PromptError: unknown template, a field that it needs is missing, or a field that no template knows.
    """
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise PromptError(f"unknown prompt fields {unknown}; known: {', '.join(FIELDS)}")
    sections = _load(template_name)
    needed = sorted({name for _, text in sections for name in _PLACEHOLDER.findall(text)})
    if missing := [name for name in needed if name not in fields]:
        raise PromptError(f"prompt template {template_name!r} needs the fields {needed}; missing: {missing}")
    return [
        {"role": role, "content": _PLACEHOLDER.sub(lambda match: str(fields[match[1]]), text)}
        for role, text in sections
    ]


@functools.cache
def _load(template_name: str) -> tuple[tuple[str, str], ...]:
    """The template's (role, text) sections, checked."""
    if template_name.endswith(".txt"):
        path = Path(template_name)
    else:
        path = TEMPLATE_FOLDER / f"{template_name}.txt"
        if template_name not in template_names():
            raise PromptError(
                f"unknown prompt template {template_name!r}; known: {', '.join(template_names())}, "
                f"or the path of a .txt file"
            )
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PromptError(f"prompt template {template_name!r} cannot be read: {error}") from error
    sections = _split_sections(text.removesuffix("\n"), template_name)
    used = {name for _, section in sections for name in _PLACEHOLDER.findall(section)}
    if odd := sorted(used - set(FIELDS)):
        raise PromptError(
            f"prompt template {template_name!r} asks for unknown fields {odd}; known: {', '.join(FIELDS)}"
        )
    return sections


def _split_sections(text: str, template_name: str) -> tuple[tuple[str, str], ...]:
    before, *rest = _SECTION.split(text)
    if not rest:
        return (("user", text),)
    roles = tuple(rest[0::2])
    if before.strip() or roles not in (("user",), ("system", "user")):
        raise PromptError(
            f"prompt template {template_name!r} must be plain text, or [system] and then [user], each on a "
            f"line of its own and nothing before; got sections {list(roles)}"
        )
    return tuple((role, body.removesuffix("\n")) for role, body in zip(roles, rest[1::2], strict=True))
