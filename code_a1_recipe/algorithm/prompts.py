"""White-box prompt and Code LLM's prompt: text files with ``{{name}}`` placeholders, rendered to chat messages.

A template without sections is one user message. A line ``[system]``, ``[user]`` or ``[assistant]`` begins a section,
and each section is one message. Pairs of ``[user]`` and ``[assistant]`` before the question are examples. A final
``[assistant]`` section is the beginning of the answer, which the model continues.

``PROMPT_PAIRS`` has the names of the shipped pairs of templates. A pair has one template for each policy.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from ..errors import InputError
from .settings_block import Block, one_of

TEMPLATE_FOLDER = Path(__file__).parent / "prompt_templates"

FIELDS = ("prompt", "entry_points", "candidate", "num_cases")
"""Fields that a template may ask for. ``prompt`` is the problem statement, ``entry_points`` shows how the program's
functions are called, ``candidate`` is the program under test, and ``num_cases`` is K."""

_OPTIONAL = "entry_points"
_STDIN = "_stdin"
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z_0-9]*)\}\}")
_SECTION = re.compile(r"^\[(system|user|assistant)\]\n", re.MULTILINE)


PROMPT_PAIRS = ("chat_v2", "micro")
"""Values of ``prompts.name``: "chat_v2" is for instruction-tuned models and shows one example of a suite; "micro" is
for the tiny models of ``code_a1_recipe.micro_world``."""


def template_for(kind: str, prompt: str) -> str:
    """Return the name of a template for :func:`render`.

    Args:
        kind: "code", "test", or "black_box_test" for a Test LLM that does not see the program.
        prompt: a name in ``PROMPT_PAIRS``, or the path of a user's template, which is returned unchanged.
    """
    return f"{prompt}_{kind}" if prompt in PROMPT_PAIRS else prompt


class PromptSettings(Block):
    """The two templates of a run."""

    name: Annotated[str, one_of(PROMPT_PAIRS)]
    """Prompt templates of both LLMs."""
    black_box: bool = False
    """The Test LLM does not see the program."""
    code: str | None = None
    """A user's own template file (.txt) for the Code LLM; null: the template of the pair."""
    test: str | None = None
    """A user's own template file (.txt) for the Test LLM; null: the template of the pair."""

    def problems(self) -> Iterator[str]:
        """One message for each unusable template of the user's."""
        yield from _template_problems(self.code, "prompts.code", {"prompt"}, "the Code LLM")
        test_fields = {"prompt", "num_cases"}
        if not self.black_box:
            test_fields.add("candidate")
        tester = f"with prompts.black_box={str(self.black_box).lower()} the Test LLM"
        yield from _template_problems(self.test, "prompts.test", test_fields, tester)

    @property
    def user_files(self) -> dict[str, Path]:
        """The user's own template files, by key."""
        paths = {"prompts.code": self.code, "prompts.test": self.test}
        return {key: Path(path) for key, path in paths.items() if path is not None}

    @property
    def code_template(self) -> str:
        """Name or path of the Code LLM's template, for :func:`render`."""
        return self.code or template_for("code", self.name)

    @property
    def test_template(self) -> str:
        """Name or path of the Test LLM's template, for :func:`render`."""
        return self.test or template_for("black_box_test" if self.black_box else "test", self.name)


def _template_problems(path: str | None, key: str, fields: set[str], who: str) -> Iterator[str]:
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
    # If a prompt lacked the program or the number of cases, the run would train for hours on useless responses.
    wrong = [f"lacks {_braced(name)}" for name in sorted(fields - used)]
    wrong += [f"asks for {_braced(name)}" for name in sorted(used - fields - {_OPTIONAL})]
    if wrong:
        required = ", ".join(map(_braced, sorted(fields)))
        yield f"{key}={path!r} {' and '.join(wrong)}; {who} needs {required}, and may use {_braced(_OPTIONAL)}"


def _braced(name: str) -> str:
    return "{{" + name + "}}"


def placeholders(template_name: str) -> set[str]:
    """Return the names of the fields that a template asks for.

    Raises:
        InputError: the template is unknown or malformed.
    """
    return {name for _, text in _load(template_name) for name in _PLACEHOLDER.findall(text)}


@functools.cache
def template_names() -> tuple[str, ...]:
    """Names of the shipped templates, sorted."""
    return tuple(sorted(path.stem for path in TEMPLATE_FOLDER.glob("*.txt")))


def render(template_name: str, *, reads_input: bool = False, **fields: object) -> list[dict[str, str]]:
    """Fill a template.

    Braces, placeholders and section lines inside an inserted problem or program stay unchanged. A final newline of the
    template file is not part of the prompt. An example's suite is cut to K + 1 asserts.

    Args:
        template_name: a name of :func:`template_names`, or the path of a file that ends in ``.txt``.
        reads_input: the program reads standard input. A shipped template ``NAME`` is then replaced by the template
            ``NAME_stdin``, if it exists.
        fields: values for ``FIELDS``; a template need not use all of them. Numbers are converted by ``str``.

    Returns:
        Chat messages, such as ``[{"role": "user", "content": ...}]``. If the last message has the role "assistant", the
        model continues it.

    Raises:
        InputError: the template is unknown, a field that it needs is missing, or a field is not in ``FIELDS``.
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
        if role == "assistant" and "num_cases" in fields:
            # Small models write as many asserts as the example has, or one fewer. So the example has K + 1 asserts.
            text = _with_fewer_asserts(text, int(str(fields["num_cases"])) + 1)
        # All fields are inserted in one pass, so a placeholder inside an inserted program is not replaced.
        content = _PLACEHOLDER.sub(lambda match: str(fields[match[1]]), text)
        messages.append({"role": role, "content": content})
    return messages


def _with_fewer_asserts(text: str, number: int) -> str:
    """Return an example's answer with only its first ``number`` asserts."""
    lines = text.split("\n")
    asserts = [line for line in lines if line.startswith("assert ")]
    surplus = asserts[number:]
    return "\n".join(line for line in lines if line not in surplus)


# The result is cached, because a step renders thousands of prompts from a few templates.
@functools.cache
def _load(template_name: str) -> tuple[tuple[str, str], ...]:
    """Read and check a template; returns its sections as pairs of role and text."""
    if template_name.endswith(".txt"):
        path = Path(template_name)
    else:
        path = TEMPLATE_FOLDER / f"{template_name}.txt"
        if template_name not in template_names():
            raise InputError(
                f"unknown prompt template {template_name!r}; known: {', '.join(template_names())}, "
                "or the path of a .txt file"
            )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt template {template_name!r} cannot be read: {error}") from error
    sections = _split_sections(text.removesuffix("\n"), template_name)
    # Without this check, a misspelled placeholder would stay in the prompt.
    if unknown := sorted(set(_PLACEHOLDER.findall(text)) - set(FIELDS)):
        known = ", ".join(FIELDS)
        raise InputError(f"prompt template {template_name!r} asks for unknown fields {unknown}; known: {known}")
    return sections


def _split_sections(text: str, template_name: str) -> tuple[tuple[str, str], ...]:
    before, *rest = _SECTION.split(text)
    if not rest:
        return (("user", text),)
    roles, bodies = rest[0::2], rest[1::2]  # re.split returns roles and texts alternately
    # Most models' chat templates refuse two messages of one role in a row, and a system message that is not the first
    # message.
    turns = roles[1:] if roles[0] == "system" else roles
    alternate = set(turns[0::2]) == {"user"} and set(turns[1::2]) <= {"assistant"}
    if before.strip() or not alternate:
        raise InputError(
            f"prompt template {template_name!r} must be plain text or sections. The first section may be [system]. "
            "Then [user] and [assistant] must alternate, beginning with [user]. No text may come before the first "
            f"section; got sections {roles}"
        )
    return tuple((role, body.removesuffix("\n")) for role, body in zip(roles, bodies, strict=True))
