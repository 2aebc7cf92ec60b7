"""``python -m studies.judge_benchmark``: measures the speed of the judge, and its stability in long runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from code_a1_recipe.errors import CodeA1Error
from studies.command_line import run_study, study_app

from .bench import FULL, QUICK, run_bench
from .corpora import run_corpora
from .kills import run_kills
from .linear import run_linear
from .soak import run_programs
from .stdin_tasks import run_stdin_benchmark

app = study_app()


@app.command()
def bench(
    quick: Annotated[bool, typer.Option(help="measure for only a minute; the figures are rough")] = False,
) -> None:
    """Measure the speed of the judge and of two other ways to run programs."""
    _finish(run_bench(QUICK if quick else FULL))


@app.command()
def stdin(
    problems: Annotated[int, typer.Option(min=1, help="number of problems, with eight programs each")] = 32,
) -> None:
    """Measure tasks per second on standard-input problems, for the judge and for two other ways."""
    _finish(run_stdin_benchmark(num_problems=problems, report=typer.echo))


@app.command()
def soak(
    programs: Annotated[int, typer.Option(min=1)] = 100_000, workers: Annotated[int, typer.Option(min=1)] = 2
) -> None:
    """Run many programs in one pool, and compare its last measurements with its first."""
    _finish(run_programs(programs, num_workers=workers, report=typer.echo))


@app.command()
def kills(number: Annotated[int, typer.Option(min=1)] = 200, seed: Annotated[int, typer.Option()] = 0) -> None:
    """Kill processes of the judge at random moments, and compare every verdict."""
    _finish(run_kills(number, seed=seed, report=typer.echo))


@app.command()
def corpora(
    files: Annotated[list[Path], typer.Argument(help="JSON lists of entries")],
    tier: Annotated[int, typer.Option(min=0)] = 0,
    runs: Annotated[int, typer.Option(min=1)] = 1,
    busy: Annotated[int, typer.Option(min=0, help="number of processes that keep the processor busy")] = 0,
) -> None:
    """Run the judge several times on programs that cheat and on honest programs."""
    _finish(run_corpora(files, tier=tier, num_runs=runs, num_busy=busy, report=typer.echo))


@app.command()
def linear() -> None:
    """Measure how the judge's own time grows with the length of programs, responses and asserts."""
    _finish(run_linear(report=typer.echo))


def _finish(found: dict[str, Any]) -> None:
    for key, value in found.items():
        typer.echo(f"{key:<34} {f'{value:.4g}' if isinstance(value, float) else value}")
    if not found.get("ok", True):
        raise CodeA1Error("the judge failed a check; see the figures above")


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="judge_benchmark"))
