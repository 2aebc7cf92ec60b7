"""Demonstrations for a cold start of the Test LLM: a prompt as training will show it, and a good suite."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...algorithm.prompts import render, template_for
from ...algorithm.question import entry_points_text
from ...algorithm.sampling import beginning_of_answer
from ...jobs.jsonl_store import Row

SHOWN = {
    "reference": "the question's reference: the suite can only be right",
    "buggy_program": "a program of the column buggy_programs",
    "mutant": "the reference with a small mistake that one of its tests notices",
    "rollout": "a program that a run's Code LLM wrote",
}
"""Where the program under test comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One suite for one program. Every assert is a valid case, and its expected output the reference's return value."""

    question_id: str
    statement: str
    """The problem, as the question's column ``prompt`` has it."""
    shown: str
    """A key of ``SHOWN``."""
    program: str
    """The program under test."""
    asserts: tuple[str, ...]
    num_breaking: int
    """How many of the asserts the program fails."""
    reads_input: bool = False
    """The program reads standard input and prints."""
    data_source: str = ""
    step: int = -1
    """Training step of the run that wrote the suite; -1 where none did."""


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """How demonstrations become messages."""

    pair: str
    """A name in ``prompts.PROMPT_PAIRS``, or the path of the Test LLM's own template."""
    black_box: bool = False
    """The Test LLM is not shown the program."""

    @property
    def template(self) -> str:
        """Name or path of the Test LLM's template."""
        return template_for("black_box_test" if self.black_box else "test", self.pair)

    @property
    def is_fenced(self) -> bool:
        """Whether the template asks for a ```python block; tiny models write bare asserts."""
        shown = render(self.template, prompt="", entry_points="", candidate="", num_cases=1)
        return any("Python code block" in message["content"] for message in shown)

    def prompt(self, shown: Demonstration) -> list[dict[str, str]]:
        """The messages before the answer, the same that an episode sends; a template's beginning of it is not there."""
        messages = render(
            self.template,
            prompt=shown.statement,
            entry_points=entry_points_text(shown.program, reads_input=shown.reads_input),
            reads_input=shown.reads_input,
            candidate=shown.program,
            num_cases=len(shown.asserts),
        )
        return messages[:-1] if beginning_of_answer(messages) else messages

    def row(self, shown: Demonstration) -> Row:
        """A row for verl's SFT trainer: ``messages``, and ``extra_info`` for whoever looks at the file."""
        suite = "\n".join(shown.asserts)
        answer = f"```python\n{suite}\n```" if self.is_fenced else suite
        return {
            "messages": [*self.prompt(shown), {"role": "assistant", "content": answer}],
            "extra_info": {
                "question": shown.question_id,
                "data_source": shown.data_source,
                "shown": shown.shown,
                "num_cases": len(shown.asserts),
                "num_breaking": shown.num_breaking,
                "step": shown.step,
            },
        }


@dataclass(slots=True, kw_only=True)
class Selection:
    """What is written, and what is not."""

    kept: list[Demonstration] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason -> demonstrations."""


def select(
    found: Iterable[Demonstration],
    *,
    style: PromptStyle,
    max_per_question: int,
    max_chars: int,
    only_breaking: bool = False,
) -> Selection:
    """Leave out what is too long, what was said before, and what is too much of one question.

    Suites with the same asserts, in whatever order, for the same prompt are one. Of a question's programs each gets
    its turn: first every program's best suite, then every one's second. The best break their program, and are late.

    Args:
        found: in any order; questions come out in the order in which they first appear.
        style: decides which prompts are the same.
        max_per_question: demonstrations of a question, at least 1.
        max_chars: of all messages of a demonstration together.
        only_breaking: leave out suites that do not break the program shown.
    """
    selection = Selection()
    by_question: dict[str, list[Demonstration]] = {}
    known: set[tuple[str, frozenset[str]]] = set()
    for shown in sorted(found, key=lambda one: (one.num_breaking == 0, -one.step)):
        if only_breaking and not shown.num_breaking:
            selection.dropped["does not break the program"] += 1
            continue
        if num_chars(style.row(shown)) > max_chars:
            selection.dropped[f"longer than {max_chars} characters"] += 1
            continue
        key = (str(style.prompt(shown)), frozenset(shown.asserts))
        if key in known:
            selection.dropped["repeats another"] += 1
            continue
        known.add(key)
        by_question.setdefault(shown.question_id, []).append(shown)
    for demonstrations in by_question.values():
        kept = _in_turns(demonstrations)[:max_per_question]
        selection.kept += kept
        selection.dropped["beyond the most of a question"] += len(demonstrations) - len(kept)
    selection.dropped = +selection.dropped
    return selection


def num_chars(row: Row) -> int:
    """Characters of all messages of a row."""
    return sum(len(message["content"]) for message in row["messages"])


def _in_turns(demonstrations: Sequence[Demonstration]) -> list[Demonstration]:
    """Each program's first one, in their order, then each one's second, and so on."""
    turn_of: Counter[str] = Counter()
    turns = []
    for shown in demonstrations:
        turns.append((turn_of[shown.program], shown))
        turn_of[shown.program] += 1
    return [shown for _, shown in sorted(turns, key=lambda pair: pair[0])]


def held_out(question_ids: Iterable[str], *, share: float, seed: int) -> frozenset[str]:
    """Ids of the questions whose demonstrations are for validation, the same ones for the same ids and seed.

    ``round(share * n)`` of n questions, with the share in [0, 1); where it is above 0 and there are two, at least 1,
    and never all.
    """
    ids = sorted(set(question_ids))
    number = max(1, min(round(share * len(ids)), len(ids) - 1)) if share and len(ids) > 1 else 0
    random.Random(f"held out {seed}").shuffle(ids)
    return frozenset(ids[:number])
