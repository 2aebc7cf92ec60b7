"""The recipe's errors. Each says the rule, the value, the place and a hint; a user reads the message as it is.

``exit_status`` is what a command ends with: 2 where the user's input cannot be used and nothing was started, 1 where
something that had started broke off. ``cli.status`` is the one place that reads it.
"""

PARSE_ERRORS = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
"""Errors that parsing a stranger's text as Python may raise, or taking it for a literal; nesting too deep is one."""


class CodeA1Error(Exception):
    """Base of all errors of this package; raised itself where a part broke that no other class describes."""

    exit_status = 1


class InputError(CodeA1Error, ValueError):
    """A file, option or row of the user's cannot be used. Raised before any work starts."""

    exit_status = 2


class SettingsError(InputError):
    """A configuration cannot work; holds everything that is wrong with it. Raised before Ray starts."""

    def __str__(self) -> str:
        problems = [str(problem) for problem in self.args]
        return problems[0] if len(problems) == 1 else "\n  - ".join([f"{len(problems)} problems:", *problems])


class OutputError(InputError):
    """An output would destroy a file, holds rows of other settings, or is being written by another process."""


class CheckpointError(InputError):
    """A checkpoint is missing, damaged, or was made with something else than the run has now."""


class RowError(InputError):
    """A row of a question file breaks a rule; whoever reads the file adds its name and the row's number."""

    def __init__(self, column: str, rule: str) -> None:
        super().__init__(column, rule)
        self.column = column
        self.rule = rule

    def __str__(self) -> str:
        return f"column {self.column!r}: {self.rule}"


class OutageError(CodeA1Error, RuntimeError):
    """A sandbox, server or model did not answer; nothing is made up for the result that is missing."""


class DiskFullError(CodeA1Error, RuntimeError):
    """The disk has no room for what has to be written."""
