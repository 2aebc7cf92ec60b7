"""Test cases as data, and the reasons why asserts are refused."""

import ast
import enum
from dataclasses import dataclass, field


class Kind(enum.StrEnum):
    """How the tests of a question use a program."""

    FUNCTIONS = "functions"
    """Tests call the program's functions and classes, and compare the return values."""
    STDIN = "stdin"
    """Tests give the program a standard input, and compare the printed output: ``run("3\\n") == "6\\n"``."""
    IN_PLACE = "in_place"
    """Tests call the program's functions, and compare the first argument after the call."""


class RejectionReason(enum.StrEnum):
    """Reasons why an assert is not a valid case. The first six follow from the text of the suite alone."""

    UNPARSABLE = "unparsable"
    NOT_AN_EQUALITY = "not_an_equality"
    NO_CALL = "no_call"
    ARGUMENT_NOT_LITERAL = "argument_not_literal"
    EXPECTED_NOT_LITERAL = "expected_not_literal"
    DUPLICATE = "duplicate"
    REFERENCE_RAISED = "reference_raised"
    REFERENCE_TIMED_OUT = "reference_timed_out"
    REFERENCE_NONDETERMINISTIC = "reference_nondeterministic"
    UNENCODABLE = "unencodable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One refused assert."""

    text: str
    """The assert or replayed call, as the author wrote it."""
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The left side of an assert, ready to be evaluated in a program's namespace."""

    expression: str
    """Canonical source without ``await``. All spellings of the same values share one text."""
    awaited: bool = False
    """The expression's value is an awaitable, and the awaited result is the return value."""
    uses_library: bool = False
    """The arguments use classes of the standard library that the program may not have imported."""
    callee_chars: int = 0
    """If tests compare the first argument after the call: length of the expression before the call's arguments.
    Otherwise 0."""
    alike: bytes = field(default=b"", compare=False)
    """16 bytes. Two calls have the same bytes if their arguments differ only in spelling, in the types of equal numbers
    and in the kinds of containers, see ``values.alike``."""
    bag: bytes = field(default=b"", compare=False)
    """Like ``alike``, but the order of items does not count, and a dict is equal to the list of its keys."""
    reads: bool = field(default=False, compare=False)
    """The test compares what an expression around the call reads from its result, as in ``len(f(1))``."""

    def __hash__(self) -> int:
        # Each call is looked up a dozen times, and a string caches its hash.
        return hash(self.expression)

    @property
    def input(self) -> str:
        """The input text of a call of kind ``STDIN``. Such a call always has the form ``run(text)``."""
        return str(ast.literal_eval(self.expression[self.expression.index("(") :]))

    @property
    def evaluated(self) -> str:
        """The expression that a program's process evaluates."""
        if not self.callee_chars:
            return self.expression
        callee = self.expression[: self.callee_chars]
        arguments = self.expression[self.callee_chars + 1 :]
        # The lambda calls ``f``, and returns the first argument after the call.
        return f"(lambda f, a, *o, **k: (f(a, *o, **k), a)[1])({callee}, {arguments}"

    @property
    def text(self) -> str:
        """Canonical source with ``await`` where needed. Parsing this text gives the same call again."""
        return f"await {self.expression}" if self.awaited else self.expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An assert that passed the static gate."""

    text: str
    call: Call
    key: bytes
    """16 bytes. All asserts that make the same call have the same key. The key depends neither on the spelling of the
    call nor on the expressions that read the call's result."""
    expected: str
    """Source of the expected output; empty for a replayed call."""
    expected_value: bytes
    """Encoded expected output; empty for a replayed call."""


Gated = Case | Rejection
"""Result of the static gate for one text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The asserts of one suite after the static gate. Cases and rejections keep the order of the suite."""

    cases: tuple[Case, ...]
    rejections: tuple[Rejection, ...]
