"""White-box prompt and the Code LLM's: text files with ``{{name}}`` placeholders, rendered to chat messages.

A template is one user message, or, where it holds lines that read ``[system]``, ``[user]`` and ``[assistant]``, one
message for each; examples are pairs of the last two before the question, whose suite is cut to K + 1 asserts. A last
``[assistant]`` begins the answer, which the model goes on with. A pair of templates, one for each policy, has a name in
``PROMPT_PAIRS``.
"""

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from ..errors import InputError
from .settings_block import Block, one_of

TEMPLATE_FOLDER = Path(__file__).parent / "prompt_templates"

FIELDS = ("prompt", "entry_points", "candidate", "num_cases", "call", "result", "expected")
"""What a template may ask for: problem statement, how a program's functions are called, program under test, K; and of a
case that the program failed its call, what the program did ("returns 3"), and the expected output."""

_OPTIONAL = {"entry_points"}
_STDIN = "_stdin"
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z_0-9]*)\}\}")
_SECTION = re.compile(r"^\[(system|user|assistant)\]\n", re.MULTILINE)


PROMPT_PAIRS = ("chat_v2", "micro")
"""Names of pairs, the values of ``prompts.name``: "chat_v2" for instruction-tuned models, with one example of a suite;
"micro" for the tiny models of ``code_a1_recipe.micro_world``."""


def template_for(kind: str, prompt: str) -> str:
    """The template for :func:`render`; ``prompt`` names a pair, or is a user file, which is its own.

    Args:
        kind: "code"; "test", or "black_box_test" for a Test LLM that is not shown the program; "repair" for the Code
            LLM's repair turns.
    """
    return f"{prompt}_{kind}" if prompt in PROMPT_PAIRS else prompt


class PromptSettings(Block):
    """The two templates of a run."""

    name: Annotated[str, one_of(PROMPT_PAIRS)]
    """Prompt templates of both LLMs."""
    black_box: bool = False
    """The Test LLM is not shown the program."""
    code: str | None = None
    """A user's own template file (.txt) for the Code LLM; null: that of the pair."""
    test: str | None = None
    """A user's own template file (.txt) for the Test LLM; null: that of the pair."""

    def problems(self) -> Iterator[str]:
        """Why a template of the user's own cannot be used, one message for each."""
        shown = {"prompt", "num_cases"} | (set() if self.black_box else {"candidate"})
        tester = f"with prompts.black_box={str(self.black_box).lower()} the Test LLM"
        yield from _template_problems(self.code, "prompts.code", {"prompt"}, "the Code LLM")
        yield from _template_problems(self.test, "prompts.test", shown, tester)

    @property
    def user_files(self) -> dict[str, Path]:
        """Template files of the user's own, by key."""
        paths = {"prompts.code": self.code, "prompts.test": self.test}
        return {key: Path(path) for key, path in paths.items() if path is not None}

    @property
    def code_template(self) -> str:
        """Name or path of the Code LLM's template, for :func:`render`."""
        return self.code or template_for("code", self.name)

    @property
    def test_template(self) -> str:
        """Name or path of the Test LLM's template: the white-box prompt, unless ``black_box``."""
        return self.test or template_for("black_box_test" if self.black_box else "test", self.name)


def _template_problems(path: str | None, key: str, fields: Collection[str], who: str) -> Iterator[str]:
    if path is None:
        return
    if not path.endswith(".txt"):
        yield f"{key} must be the path of a .txt template, or null, got {path!r}"
        return
    try:
        used = placeholders(path)
    except InputError as error:
        yield f"{key}: {error}"
        return
    # A prompt without the program or the number would run, and train on nonsense for hours.
    missing, odd = set(fields) - used, used - set(fields) - _OPTIONAL
    if missing or odd:
        wrong = [f"lacks {{{{{name}}}}}" for name in sorted(missing)]
        wrong += [f"asks for {{{{{name}}}}}" for name in sorted(odd)]
        shown = ", ".join(f"{{{{{name}}}}}" for name in sorted(fields))
        yield f"{key}={path!r} {' and '.join(wrong)}; {who} gets {shown}, each at least once, and {{{{entry_points}}}}"


def placeholders(template_name: str) -> set[str]:
    """Names of the fields that a template asks for.

    Raises:
        InputError: unknown template, or a malformed one.
    """
    return {name for _, text in _load(template_name) for name in _PLACEHOLDER.findall(text)}


@functools.cache
def template_names() -> tuple[str, ...]:
    """Names of the shipped templates, sorted."""
    return tuple(sorted(path.stem for path in TEMPLATE_FOLDER.glob("*.txt")))


def render(template_name: str, *, reads_input: bool = False, **fields: object) -> list[dict[str, str]]:
    """Fill a template.

    Braces, placeholders or section lines inside a problem or a program stay unchanged. A final newline of the
    template file is not part of the prompt.

    Args:
        template_name: a name of :func:`template_names`, or the path of a file that ends in ``.txt``.
        reads_input: of a program that reads standard input; of a shipped template ``NAME_stdin`` is taken, if any.
        fields: values for ``FIELDS``; a template need not use all of them. Numbers are written as by str.

    Returns:
        Chat messages, ``[{"role": "user", "content": ...}]``, after a system message if the template has one. Where the
        last is the assistant's, the model goes on from it.

    Raises:
        InputError: unknown template, a field that it needs is missing, or a field that no template knows.
    """
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise InputError(f"unknown prompt fields {unknown}; known: {', '.join(FIELDS)}")
    if reads_input and f"{template_name}{_STDIN}" in template_names():
        template_name += _STDIN
    sections = _load(template_name)
    needed = sorted(placeholders(template_name))
    if missing := [name for name in needed if name not in fields]:
        raise InputError(f"prompt template {template_name!r} needs the fields {needed}; missing: {missing}")
    messages = []
    for role, text in sections:
        # One pass over the template: a placeholder inside a program that was put in is text and no placeholder.
        content = _PLACEHOLDER.sub(lambda match: str(fields[match[1]]), _cut(role, text, fields))
        messages.append({"role": role, "content": content})
    return messages


def _cut(role: str, text: str, fields: Mapping[str, object]) -> str:
    """An example's answer, cut to K + 1 different asserts: small models write as many as they see, or one less."""
    if role != "assistant" or "num_cases" not in fields:
        return text
    lines = text.split("\n")
    asserts = [line for line in lines if line.startswith("assert ")]
    surplus = asserts[int(str(fields["num_cases"])) + 1 :]
    return "\n".join(line for line in lines if line not in surplus)


@functools.cache
def _load(template_name: str) -> tuple[tuple[str, str], ...]:
    """The template's (role, text) sections, checked."""
    if template_name.endswith(".txt"):
        path = Path(template_name)
    else:
        path = TEMPLATE_FOLDER / f"{template_name}.txt"
        if template_name not in template_names():
            raise InputError(
                f"unknown prompt template {template_name!r}; known: {', '.join(template_names())}, "
                f"or the path of a .txt file"
            )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt template {template_name!r} cannot be read: {error}") from error
    sections = _split_sections(text.removesuffix("\n"), template_name)
    # A misspelled placeholder would otherwise reach the model as it stands.
    used = {name for _, section in sections for name in _PLACEHOLDER.findall(section)}
    if odd := sorted(used - set(FIELDS)):
        raise InputError(f"prompt template {template_name!r} asks for unknown fields {odd}; known: {', '.join(FIELDS)}")
    return sections


def _split_sections(text: str, template_name: str) -> tuple[tuple[str, str], ...]:
    before, *rest = _SECTION.split(text)
    if not rest:
        return (("user", text),)
    roles = tuple(rest[0::2])
    # Chat templates of most models refuse two messages of one role in a row, and a system message after the first.
    turns = roles[1:] if roles[0] == "system" else roles
    if before.strip() or not turns or turns != (("user", "assistant") * len(turns))[: len(turns)]:
        raise InputError(
            f"prompt template {template_name!r} must be plain text, or sections: [system] or none, then [user], with "
            f"pairs of [user] and [assistant] before it as examples, and perhaps [assistant] after it as the beginning "
            f"of the answer, each on a line of its own and nothing before; got sections {list(roles)}"
        )
    return tuple((role, body.removesuffix("\n")) for role, body in zip(roles, rest[1::2], strict=True))
