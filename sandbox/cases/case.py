"""Test cases as data: the call, the expected output, and the reason of a refusal."""

import ast
import enum
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """How the tests of a question use a program."""

    FUNCTIONS = "functions"
    """They call its functions and classes, and compare what these return."""
    STDIN = "stdin"
    """They give it a standard input, and compare what it prints: ``run("3\\n") == "6\\n"``."""
    IN_PLACE = "in_place"
    """They call its functions, and compare the first argument after the call."""


class RejectionReason(enum.StrEnum):
    """Reasons why an assert is no valid case. The first six need the text of the suite alone."""

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
    """The assert (or replayed call) as it was written."""
    reason: RejectionReason
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The left side of an assert, ready to be evaluated in a program's namespace."""

    expression: str
    """Canonical source, without ``await``: one text for all spellings of the same values."""
    awaited: bool = False
    """The expression yields an awaitable, whose result is the value."""
    uses_library: bool = False
    """The arguments name constructors of the standard library, which the program may not have imported."""
    callee_chars: int = 0
    """Length of the called function's text if tests compare the first argument after the call; else 0."""

    def __hash__(self) -> int:
        return hash(self.expression)  # a string remembers its hash, and each call is looked up a dozen times

    @property
    def input(self) -> str:
        """The text of ``run(text)``. Calls of a program that reads standard input have no other form."""
        return str(ast.literal_eval(self.expression[self.expression.index("(") :]))

    @property
    def evaluated(self) -> str:
        """The expression that a program's process evaluates."""
        if not self.callee_chars:
            return self.expression
        callee, arguments = self.expression[: self.callee_chars], self.expression[self.callee_chars + 1 :]
        # The function calls ``f`` and returns its first argument as the call left it.
        return f"(lambda f, a, *o, **k: (f(a, *o, **k), a)[1])({callee}, {arguments}"

    @property
    def text(self) -> str:
        """Canonical source; parsing it again gives the same call."""
        return f"await {self.expression}" if self.awaited else self.expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An assert that passed the static gate."""

    text: str
    call: Call
    key: bytes
    """16 bytes. Asserts that make the same call share them, whatever its spelling and the read of its result."""
    family: bytes
    """16 bytes. Calls with the same items in another container share them as well."""
    expected: str
    """The expected output as written; empty for a replayed call."""
    expected_value: bytes
    """The expected output, encoded; empty for a replayed call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The asserts of one suite after the static gate, each list in written order."""

    cases: tuple[Case, ...]
    rejections: tuple[Rejection, ...]
