"""Errors of the sandbox itself. A program that fails gets a verdict, not an error."""


class SandboxError(RuntimeError):
    """Base class of every error that this package raises on purpose."""


class SandboxUnavailableError(SandboxError):
    """The sandbox could not run the program, so nothing is known about the program.

    Runners and ``Judge.judge`` raise this error. Code that catches this error may try again, or may leave out the row
    and count the outage. The error must never become a verdict or a reward, not even a reward of zero.
    """


class ProcessLostError(SandboxError):
    """A fork server or a judge process has ended and must be replaced. The package always catches this error."""


class SandboxConfigError(SandboxError, ValueError):
    """A setting is wrong, or this machine lacks a protection that ``allow_missing`` does not name.

    Code that reads settings or starts a runner raises this error. The message tells the user which setting to change.
    """


class ValueFormatError(SandboxError, ValueError):
    """Bytes that are not an encoded value, or source text that is not a literal.

    A program or the author of a test wrote these bytes or this text. So callers treat them as a wrong answer or a wrong
    test.
    """


class UnencodableError(SandboxError, TypeError):
    """A value that has no canonical bytes, because of its type or its depth."""
