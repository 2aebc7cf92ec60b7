"""The recipe's errors. A message has the rule, the value, the place and a hint, because users read it unchanged.

``exit_status`` is the exit status of a command. Status 2 means that the user's input was refused before any work.
Status 1 means that work had started and broke off. Only ``cli.status`` reads it.
"""

PARSE_ERRORS = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
"""Errors that Python may raise when it parses an untrusted text, for example if the text is nested too deeply."""


class CodeA1Error(Exception):
    """Base class of this package's errors. This class itself is raised if no subclass describes the failure."""

    exit_status = 1


class InputError(CodeA1Error, ValueError):
    """A file, option or row from the user cannot be used. It is raised before any work starts."""

    exit_status = 2


class SettingsError(InputError):
    """A configuration cannot work. ``args`` lists all problems of the configuration. It is raised before Ray starts."""

    def __str__(self) -> str:
        problems = [str(problem) for problem in self.args]
        if len(problems) == 1:
            return problems[0]
        return "\n  - ".join([f"{len(problems)} problems:", *problems])


class OutputError(InputError):
    """An output would destroy a file, or has rows of other settings, or another process is writing it."""


class CheckpointError(InputError):
    """A checkpoint is missing or damaged, or was made with other settings or files than the run's."""


class RowError(InputError):
    """A row of a question file breaks a rule. The reader of the file adds the file's name and the row's number."""

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
