"""``python -m sandbox conformance``: every check against the local runner, or against a service."""

from __future__ import annotations

import argparse
import contextlib
import sys

from ..runners.base import Runner
from ..runners.fusion.runner import SandboxFusionRunner
from ..runners.local.runner import LocalRunner
from . import LIMITS, CheckResult, run_checks


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own options, beside those of every command that starts a local runner."""
    parser.add_argument("--url", help="check the SandboxFusion service at this address instead of the local runner")


def run(options: argparse.Namespace) -> int:
    """Run the command; 0 when no check failed, 1 otherwise.

    Raises:
        SandboxConfigError, SandboxUnavailableError: the runner could not be made.
    """
    runner: Runner
    if options.url:
        runner = SandboxFusionRunner(options.url, num_workers=max(2, options.workers), limits=LIMITS)
    else:
        runner = LocalRunner(
            num_workers=max(2, options.workers), limits=LIMITS, tier=options.tier, allow_missing=options.allow_missing
        )
    with contextlib.closing(runner):
        results = run_checks(runner, may_close=True, report=_show)
    num_failed = sum(result.failed for result in results)
    num_left_out = sum(bool(result.not_applicable) for result in results)
    passed = len(results) - num_failed - num_left_out
    sys.stdout.write(f"{passed} of {len(results)} checks passed, {num_failed} failed, {num_left_out} do not apply\n")
    return 1 if num_failed else 0


def _show(result: CheckResult) -> None:
    mark = "FAIL" if result.failed else "n/a " if result.not_applicable else "ok  "
    remark = result.failure or result.not_applicable
    sys.stdout.write(f"{mark} {result.name}{': ' + remark if remark else ''}\n")
    sys.stdout.flush()
