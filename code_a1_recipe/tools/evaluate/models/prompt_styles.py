"""Prompts for a Code LLM: this recipe's templates, or EvalPlus's official prompt."""

import ast
import contextlib
import functools
from dataclasses import dataclass
from typing import Any

from ....algorithm.episode_types import Message
from ....algorithm.prompts import PROMPT_PAIRS, placeholders, render, template_for
from ....errors import InputError
from ..benchmarks.tasks import CodeTask
from ..scoring.evalplus_sanitizer import INSTALL, package_text

EVALPLUS = "evalplus"
_FENCE = "```"
_END_OF_BLOCK = f"\n{_FENCE}\n"
"""A text that ends an answer in EvalPlus. ``evalplus_phrases`` reads the other end texts."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A prompt that is ready for the model."""

    messages: tuple[Message, ...]
    """The chat. If the last message is the assistant's, the answer begins with this message."""
    prefix: str = ""
    """The beginning of the answer. Every response repeats it."""
    ends: tuple[str, ...] = ()
    """Texts that end the answer. The text after such an end is ignored."""

    def answer(self, response: str) -> str:
        """Return the model's own text, up to the first end of the answer."""
        answer = response.removeprefix(self.prefix)
        places = [place for end in self.ends if (place := answer.find(end)) >= 0]
        return answer[: min(places, default=None)]

    def program_text(self, response: str) -> str:
        """Return the text for ``extract_candidate``. If the prompt has opened a code block, return that block alone."""
        if not self.prefix:
            return response
        code, _, _ = response.removeprefix(self.prefix).partition(f"\n{_FENCE}")
        return f"{_FENCE}python\n{code}\n{_FENCE}\n"


def check_style(style: str) -> None:
    """Raises InputError if ``style`` is neither a known name nor a usable template, or needs a missing package."""
    if style == EVALPLUS:
        evalplus_phrases()
    elif style not in PROMPT_PAIRS:
        if not style.endswith(".txt"):
            known = ", ".join([*PROMPT_PAIRS, EVALPLUS])
            raise InputError(f"--prompt must be one of {known} or a .txt template, got {style!r}")
        if "prompt" not in placeholders(style):
            raise InputError(
                f"--prompt={style} lacks {{{{prompt}}}}, so that the model would not see the problem; add it"
            )
        render(style, prompt="", entry_points="")


def ask_code(style: str, task: CodeTask, *, can_prefill: bool) -> Asked:
    """Make the Code LLM's prompt for a problem.

    Args:
        style: name of a pair of templates, ``EVALPLUS``, or the path of a template with ``{{prompt}}``.
        task: the problem.
        can_prefill: True if the prompt may contain the beginning of the answer, which most endpoints do not allow.

    Raises:
        InputError: the template or EvalPlus's package is missing.
    """
    if style != EVALPLUS:
        messages = render(
            template_for("code", style),
            prompt=task.prompt,
            entry_points=task.entry_points,
            reads_input=task.reads_input,
        )
        return Asked(messages=tuple(messages))
    instruction, beginning, ends = evalplus_phrases()
    if not can_prefill:
        text = f"{instruction}\n{_FENCE}python\n{task.prompt.strip()}\n{_FENCE}"
        return Asked(messages=({"role": "user", "content": text},))
    prefix = f"{beginning}\n{_FENCE}python\n"
    question = f"{instruction}\n{_FENCE}\n{task.prompt.strip()}\n{_FENCE}\n"
    chat = ({"role": "user", "content": question}, {"role": "assistant", "content": prefix})
    return Asked(messages=chat, prefix=prefix, ends=(*ends, _END_OF_BLOCK))


@functools.cache
def evalplus_phrases() -> tuple[str, str, tuple[str, ...]]:
    """Read three phrases from EvalPlus's source: the instruction, the beginning of an answer, the ends of an answer.

    Raises:
        InputError: the package is not installed, or the installed version keeps the phrases in other places.
    """
    phrases: dict[str, Any] = {}
    for name in ("codegen.py", "provider/utility.py"):
        for node in ast.walk(ast.parse(package_text(name, wanted_by="--prompt=evalplus"))):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                with contextlib.suppress(ValueError):  # the value is no literal
                    phrases.setdefault(node.targets[0].id, ast.literal_eval(node.value))
    try:
        return phrases["instruction_prefix"], phrases["response_prefix"], tuple(phrases["EOS"])
    except KeyError as error:
        raise InputError(f"the installed version of evalplus has no {error}; install 0.3.1: {INSTALL}") from error
