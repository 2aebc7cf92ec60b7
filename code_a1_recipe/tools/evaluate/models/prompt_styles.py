"""Prompts of benchmarks for a Code LLM: this recipe's templates, or EvalPlus's official prompt."""

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
STYLES = (*PROMPT_PAIRS, EVALPLUS)
_FENCE = "```"
_END_OF_BLOCK = f"\n{_FENCE}\n"
"""Beside the ends that ``evalplus_phrases`` reads, where EvalPlus lets an answer begun for the model end."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One prompt, ready to be sent."""

    messages: tuple[Message, ...]
    """A last message of the assistant's is the beginning of the answer."""
    prefix: str = ""
    """The text of that beginning; responses come with it."""
    ends: tuple[str, ...] = ()
    """Texts at which the answer is over, whatever follows."""

    def answer(self, response: str) -> str:
        """The model's own text, up to its end."""
        response = response.removeprefix(self.prefix)
        places = [at for end in self.ends if (at := response.find(end)) >= 0]
        return response[: min(places, default=len(response))]

    def program_text(self, response: str) -> str:
        """The response as ``extract_candidate`` reads it: of an answer begun inside a code block, that block."""
        if not self.prefix:
            return response
        return f"{_FENCE}python\n{response.removeprefix(self.prefix).partition(f'{chr(10)}{_FENCE}')[0]}\n{_FENCE}\n"


def check_style(style: str) -> None:
    """Raises InputError where ``style`` is no name, no template that can be used, or its package is missing."""
    if style == EVALPLUS:
        evalplus_phrases()
    elif style not in PROMPT_PAIRS:
        if not style.endswith(".txt"):
            raise InputError(f"--prompt must be one of {', '.join(STYLES)} or a .txt template, got {style!r}")
        if "prompt" not in placeholders(style):
            raise InputError(f"--prompt={style} lacks {{{{prompt}}}}, so all problems would be asked alike")
        render(style, prompt="", entry_points="")


def ask_code(style: str, task: CodeTask, *, can_prefill: bool) -> Asked:
    """The Code LLM's prompt for one problem.

    Args:
        style: a name of ``STYLES``, or the path of a template with ``{{prompt}}``.
        task: the problem, its statement in EvalPlus's form for that style.
        can_prefill: the answer may be begun for the model; endpoints do not allow it in general.

    Raises:
        InputError: ``style`` needs something that is missing.
    """
    if style != EVALPLUS:
        template = template_for("code", style)
        fields = {"prompt": task.prompt, "entry_points": task.entry_points}
        return Asked(messages=tuple(render(template, reads_input=task.reads_input, **fields)))
    instruction, beginning, ends = evalplus_phrases()
    if not can_prefill:
        text = f"{instruction}\n{_FENCE}python\n{task.prompt.strip()}\n{_FENCE}"
        return Asked(messages=({"role": "user", "content": text},))
    prefix = f"{beginning}\n{_FENCE}python\n"
    question = f"{instruction}\n{_FENCE}\n{task.prompt.strip()}\n{_FENCE}\n"
    messages = ({"role": "user", "content": question}, {"role": "assistant", "content": prefix})
    return Asked(messages=messages, prefix=prefix, ends=(*ends, _END_OF_BLOCK))


@functools.cache
def evalplus_phrases() -> tuple[str, str, tuple[str, ...]]:
    """EvalPlus's instruction, the beginning of the answer, and its ends, read from the installed package's text.

    Raises:
        InputError: it is not installed, or keeps them elsewhere in this version.
    """
    phrases: dict[str, Any] = {}
    for name in ("codegen.py", "provider/utility.py"):
        for node in ast.walk(ast.parse(package_text(name, wanted_by="--prompt=evalplus"))):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                with contextlib.suppress(ValueError):  # no literal
                    phrases.setdefault(node.targets[0].id, ast.literal_eval(node.value))
    try:
        return phrases["instruction_prefix"], phrases["response_prefix"], tuple(phrases["EOS"])
    except KeyError as error:
        raise InputError(f"this version of evalplus keeps no {error} where 0.3.1 has it: {INSTALL}") from error
