"""A problem whose programs read standard input and print, beside programs whose verdicts are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent

KINDS = ("edge", "logic", "format", "crash", "slow")
"""Of wrong programs, one each.

- edge: right but for an edge case, in less than half of the inputs;
- logic: a plausible misunderstanding;
- format: the right values, printed in another way than asked for;
- crash: raises for at least one input;
- slow: never ends for at least one input.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Programs may be indented as the place where they stand."""

    id: str
    statement: str
    reference: str
    right: str
    """Written differently; where several outputs are accepted it prints one of them."""
    wrong: Mapping[str, str]
    """A program for each of ``KINDS``."""
    inputs: tuple[str, ...]
    checker: str = "tokens"

    def __post_init__(self) -> None:
        for name, value in {
            "reference": _flush_left(self.reference),
            "right": _flush_left(self.right),
            "wrong": {kind: _flush_left(program) for kind, program in self.wrong.items()},
        }.items():
            object.__setattr__(self, name, value)


def _flush_left(program: str) -> str:
    return dedent(program).strip("\n") + "\n"
