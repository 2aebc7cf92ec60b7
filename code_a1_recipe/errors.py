"""The recipe's errors. A message has the rule, the value, the place and a hint, since users read it unchanged.

``exit_status`` is the exit status of a command: 2 if the user's input cannot be used and nothing was started, 1 if work
that had started broke off. Only ``cli.status`` reads it.
"""

PARSE_ERRORS = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
"""Errors that Python may raise for an untrusted text that is parsed or read as a literal, e.g. if it nests too deep."""


class CodeA1Error(Exception):
    """Base of all errors of this package. It is raised itself if no other class describes the failure."""

    exit_status = 1


class InputError(CodeA1Error, ValueError):
    """A file, option or row from the user cannot be used. Raised before any work starts."""

    exit_status = 2


class SettingsError(InputError):
    """A configuration cannot work. ``args`` are all problems with it. Raised before Ray starts."""

    def __str__(self) -> str:
        problems = [str(problem) for problem in self.args]
        return problems[0] if len(problems) == 1 else "\n  - ".join([f"{len(problems)} problems:", *problems])


class OutputError(InputError):
    """An output would destroy a file, holds rows of other settings, or is being written by another process."""


class CheckpointError(InputError):
    """A checkpoint is missing or damaged, or does not fit the run: it was made with other settings or files."""


class RowError(InputError):
    """A row of a question file breaks a rule. The reader of the file adds its name and the row's number."""

    def __init__(self, column: str, rule: str) -> None:
        super().__init__(column, rule)
        self.column = column
        self.rule = rule

    def __str__(self) -> str:
        return f"column {self.column!r}: {self.rule}"


class OutageError(CodeA1Error, RuntimeError):
    """A sandbox, server or model did not answer. The missing result is not replaced by a default."""


class DiskFullError(CodeA1Error, RuntimeError):
    """The disk is full."""
