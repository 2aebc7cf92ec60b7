"""Errors of the sandbox itself. A program that goes wrong gets a verdict, not an error."""


class SandboxError(RuntimeError):
    """Base of every error this package raises on purpose."""


class SandboxUnavailableError(SandboxError):
    """The sandbox could not run the program; nothing is known about the program.

    Raised by runners and by ``Judge.judge``. Code that catches it may ask again, or leave the row out and count it. It
    never becomes a verdict or a reward, a zero included.
    """


class ProcessLostError(SandboxError):
    """A fork server or a judge process is gone; start another one. Never leaves the package."""


class SandboxConfigError(SandboxError, ValueError):
    """A setting is wrong, or this machine lacks a protection that nobody agreed to do without.

    Raised while settings are read and while a runner starts. The message is for the
    user, who changes a setting.
    """


class ValueFormatError(SandboxError, ValueError):
    """Bytes that are not an encoded value, or source text that is no literal. Both were written by programs or by the
    authors of tests; callers treat them as wrong."""


class UnencodableError(SandboxError, TypeError):
    """A value outside the builtin types that canonical bytes cover."""
