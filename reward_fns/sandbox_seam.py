"""The one place where this package meets ``sandbox``.

``sandbox`` is a generic name: the server package of SandboxFusion carries it too, and so may a file
in the current directory. A foreign package would fail later and elsewhere, so it is refused here.
Every other module of ``reward_fns`` imports the sandbox's names from this one.
"""

import sandbox

REQUIRED_NAMES = (
    "CandidateVerdict",
    "CaseOutcome",
    "CaseResult",
    "Judge",
    "JudgeRequest",
    "Limits",
    "LocalRunner",
    "SandboxError",
    "SandboxUnavailableError",
    "SuiteVerdict",
)
"""What ``sandbox`` must export to be ours."""


def check_is_ours(module: object) -> None:
    """Raise if ``module`` is another distribution that happens to be called ``sandbox``.

    Raises:
        ImportError: names are missing; the message says where the module came from and what to do.
    """
    missing = [name for name in REQUIRED_NAMES if not hasattr(module, name)]
    if missing:
        places = getattr(module, "__file__", None) or list(getattr(module, "__path__", ()))
        raise ImportError(
            f"reward_fns needs the 'sandbox' package of the code-a1-recipe distribution, but Python found "
            f"{places!r}, which lacks {', '.join(missing)}. Another distribution (SandboxFusion's server is "
            f"one) or a file called sandbox.py comes first on sys.path: put the code-a1-recipe checkout "
            f"before it on PYTHONPATH, or use an environment without it. If the place is the checkout itself, "
            f"install it again (pip install -e .)."
        )


check_is_ours(sandbox)

from sandbox import (  # noqa: E402  # after the check, so that a foreign package is named and not half used
    CandidateVerdict,
    CaseOutcome,
    CaseResult,
    Judge,
    JudgeRequest,
    Limits,
    LocalRunner,
    SandboxError,
    SandboxUnavailableError,
    SuiteVerdict,
)

__all__ = [
    "REQUIRED_NAMES",
    "CandidateVerdict",
    "CaseOutcome",
    "CaseResult",
    "Judge",
    "JudgeRequest",
    "Limits",
    "LocalRunner",
    "SandboxError",
    "SandboxUnavailableError",
    "SuiteVerdict",
    "check_is_ours",
]
