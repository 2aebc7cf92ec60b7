"""Errors of the sandbox itself. A program that fails gets a verdict, not an error."""


class SandboxError(RuntimeError):
    """Base class of every error that this package raises on purpose."""


class SandboxUnavailableError(SandboxError):
    """The sandbox could not run the program, so nothing is known about the program.

    Runners and ``Judge.judge`` raise it. Code that catches it may ask again, or may leave the row out and count it.
    It must never become a verdict or a reward, not even a reward of zero.
    """


class ProcessLostError(SandboxError):
    """A fork server or a judge process is gone, and another one must be started. Never leaves the package."""


class SandboxConfigError(SandboxError, ValueError):
    """A setting is wrong, or this machine lacks a protection and ``allow_missing`` does not accept the loss.

    It is raised while settings are read and while a runner starts. Its message tells the user which setting to change.
    """


class ValueFormatError(SandboxError, ValueError):
    """Bytes that are no encoded value, or source text that is no literal.

    Programs or authors of tests wrote them, so callers treat them as a wrong answer or a wrong test.
    """


class UnencodableError(SandboxError, TypeError):
    """A value whose type has no canonical bytes."""
