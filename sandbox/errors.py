"""What can go wrong with the sandbox itself. What goes wrong with a program is a verdict, not an error."""


class SandboxError(RuntimeError):
    """Base of every error this package raises on purpose."""


class SandboxUnavailableError(SandboxError):
    """The sandbox could not run the program; nothing is known about the program.

    Raised by runners and by ``Judge.judge``. Only the trainer may catch it: it masks the row out of
    the step and counts it. It must never be turned into a reward.
    """


class ProcessLostError(SandboxError):
    """A fork server or a judge process is gone; start another one. Never leaves the package."""


class SandboxConfigError(SandboxError, ValueError):
    """A setting is wrong, or this machine lacks a protection that nobody agreed to do without.

    Raised while settings are read and while a runner starts. Meant for the user, who reads the
    message and changes a setting; no code should catch it.
    """


class ValueFormatError(SandboxError, ValueError):
    """Bytes that are not an encoded value, or source text that is no literal. Both were written by programs or by the
    authors of tests; callers treat them as wrong."""


class UnencodableError(SandboxError, TypeError):
    """A value outside the builtin types that canonical bytes cover."""
