"""Fifty problems whose programs read standard input, beside programs whose verdicts are known.

``stdin_problems.jsonl`` holds one problem a line. Tests of the judge and its benchmark read it through
``read_problems``. The programs are data: only the sandbox runs them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_suffix(".jsonl")
KINDS = ("edge", "logic", "format", "crash", "slow")
"""Kinds of wrong programs; each problem has one program of each.

- edge: right but for an edge case, in less than half of the inputs;
- logic: a plausible misunderstanding;
- format: the right values, printed in another way than asked for;
- crash: raises for at least one input;
- slow: never ends for at least one input.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem with its inputs and seven programs."""

    id: str
    statement: str
    checker: str
    """One of ``sandbox.CHECKERS``, with a tolerance where it takes one."""
    inputs: tuple[str, ...]
    reference: str
    right: str
    """A second right program; it prints one of the outputs where several are accepted."""
    wrong: Mapping[str, str]
    """One wrong program for each of ``KINDS``."""


def read_problems() -> list[Problem]:
    """All fifty problems, in the order of the file."""
    problems = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        inputs = tuple(fields.pop("inputs"))
        problems.append(Problem(inputs=inputs, **fields))
    return problems
