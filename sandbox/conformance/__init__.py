"""What every runner must do, as checks that its author runs: no test framework, one call.

>>> from sandbox import LocalRunner
>>> from sandbox.conformance import LIMITS, run_checks
>>> with LocalRunner(num_workers=2, limits=LIMITS) as runner:
...     results = run_checks(runner)
>>> [result for result in results if result.failed]
[]

``python -m sandbox conformance`` does that for the local runner. A test suite parametrises over
``CHECKS``. A runner that leaves confinement to somebody else says so with an attribute
``confines = False``, one whose programs have no private folder with ``tier = 0``; the checks of these are
then reported as not applicable.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..runners.base import Runner
from . import early_exits, roles, values  # noqa: F401 - they register their checks
from .harness import CHECKS, LIMITS, Check

__all__ = ["CHECKS", "LIMITS", "SELF_TEST", "Check", "CheckResult", "not_applicable", "run_check", "run_checks"]

SELF_TEST = tuple(check.name for check in CHECKS.values() if check.is_quick)
"""What ``python -m sandbox check`` runs: the checks that depend on the machine, in a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found."""

    name: str
    failure: str = ""
    """What came back instead; empty when the check passed or does not apply."""
    not_applicable: str = ""
    """What the runner declares that it cannot do."""
    seconds: float = 0.0
    """Wall time."""

    @property
    def failed(self) -> bool:
        return bool(self.failure)


def not_applicable(check: Check, runner: Runner) -> str:
    """What the runner declares that it cannot do and this check needs; empty when the check applies."""
    lacks = (name for name in check.needs if not getattr(runner, name, True))
    return next((f"{type(runner).__name__} declares {name} = {getattr(runner, name)}" for name in lacks), "")


def run_check(check: Check, runner: Runner) -> CheckResult:
    """Run one check; an exception of any kind is a failure of the runner, not of the caller."""
    if reason := not_applicable(check, runner):
        return CheckResult(name=check.name, not_applicable=reason)
    started = time.monotonic()
    failure = ""
    try:
        check.function(runner)
    except AssertionError as error:
        failure = str(error) or "AssertionError"
    except Exception as error:  # noqa: BLE001 - a runner under test may raise anything
        failure = f"{type(error).__name__}: {error}"
    return CheckResult(name=check.name, failure=failure, seconds=time.monotonic() - started)


def run_checks(
    runner: Runner,
    *,
    names: Iterable[str] | None = None,
    may_close: bool = False,
    report: Callable[[CheckResult], None] | None = None,
) -> list[CheckResult]:
    """Run the checks against a runner, one after another.

    Args:
        runner: should run at least two programs at once, or the threads of some checks wait for one another.
        names: the checks to run; all of them if None.
        may_close: also run the checks that close the runner, at the end.
        report: called with each result as soon as it is there.

    Raises:
        KeyError: a name that is no check.
    """
    chosen = [CHECKS[name] for name in (CHECKS if names is None else names)]
    ordered = [check for check in chosen if not check.closes]
    if may_close:
        ordered += [check for check in chosen if check.closes]
    results = []
    for check in ordered:
        results.append(run_check(check, runner))
        if report is not None:
            report(results[-1])
    return results
