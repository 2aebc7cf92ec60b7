"""How fast the judge is, and whether it lasts: ``python -m examples.judge_benchmark bench`` and ``soak``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from sandbox import SandboxConfigError, SandboxError

from .bench import FULL, QUICK, run_bench
from .soak import Sample, run_programs
from .soak_kills import run_kills

_GOALS: tuple[tuple[str, str, float], ...] = (
    ("ratio_vs_one_script", ">=", 6.0),
    ("ratio_vs_python_c", ">=", 6.0),
    ("ratio_vs_service", ">=", 6.0),
    ("confinement_ms", "<=", 0.5),
    ("fork_limit_frac", ">=", 0.5),
    ("hangs_factor", "<=", 1.4),
)
"""What the judge is meant to reach on two cores of a quiet machine; never a test."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0 done, 1 a soak found something or the sandbox is unavailable."""
    parser = argparse.ArgumentParser(prog="python -m examples.judge_benchmark", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    bench = commands.add_parser("bench", help="speed, beside three other ways to run programs, in one run")
    bench.add_argument("--quick", action="store_true", help="a minute instead of many; the figures are rough")
    stdin = commands.add_parser("stdin", help="tasks a second on standard-input problems, beside two other ways")
    stdin.add_argument("--problems", type=_positive, default=32, help="eight programs each (default 32)")
    stdin.add_argument("--nodes", type=int, default=0, help="also through Ray, over so many nodes (default 0)")
    soak = commands.add_parser("soak", help="a long run of one pool, or a run under kills")
    kind = soak.add_mutually_exclusive_group(required=True)
    kind.add_argument("--programs", type=_positive, metavar="N", help="run N programs in one pool")
    kind.add_argument("--kills", type=_positive, metavar="N", help="kill N processes at random moments")
    soak.add_argument("--seed", type=int, default=0, help="of the kills (default 0)")
    soak.add_argument("--workers", type=_positive, help="programs run at once (default 2), with --programs only")
    for command in (bench, stdin, soak):
        command.add_argument("--json", action="store_true", help="one JSON object on standard output, no text")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except SandboxError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _run(options: argparse.Namespace) -> int:
    if options.command == "stdin":
        from .stdin_tasks import run_stdin_benchmark

        told = _progress(options.json)
        _print(
            run_stdin_benchmark(num_problems=options.problems, nodes=options.nodes, report=told), as_json=options.json
        )
        return 0
    if options.command == "bench":
        found = run_bench(QUICK if options.quick else FULL, report=_progress(options.json))
        _print(found, as_json=options.json)
        return 0
    if options.kills is not None:
        if options.workers is not None:
            raise SandboxConfigError("--workers goes with --programs; the judges that are killed have their own number")
        found = run_kills(options.kills, seed=options.seed, report=_progress(options.json))
    else:
        say = _progress(options.json)
        found = run_programs(
            options.programs, num_workers=options.workers or 2, report=lambda sample: say(_describe(sample))
        )
    _print(found, as_json=options.json)
    return 0 if found["ok"] else 1


def _progress(as_json: bool) -> Any:
    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    return (lambda line: None) if as_json else say


def _describe(sample: Sample) -> str:
    return (
        f"{sample.num_programs:>8} programs {sample.seconds:7.1f} s {sample.programs_per_second:7.1f}/s "
        f"descriptors {sample.descriptors} parent {sample.parent_kib} KiB fork servers {sample.fork_servers_kib} KiB"
    )


def _print(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    goals = {key: f"   (goal {sign} {bound:g})" for key, sign, bound in _GOALS}
    for key, value in found.items():
        if key != "samples":
            sys.stdout.write(f"{key:<34} {_short(value)}{goals.get(key, '')}\n")


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_short(item)}" for key, item in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
