"""Measures how long a step of a recorded run waits for the judge after its last suite was written.

    python -m studies.judging_waits RUN/rollouts/train_*.jsonl --questions FILE --limit reference_cpu_seconds_per_case=1

The study sends each program to the judge at the time at which its last suite was written in the run. `--limit` sets
values of `sandbox.limits`. The study prints a line for each file, and the slowest programs of the file.

With `--hidden`, the greedy programs of a validation are judged on the tests of their questions instead, one after the
other. The reference's answers are computed before the measurement. The study measures twice: once it runs all tests,
and once it runs tests only until the first time-out (`validation.until_timeout`).
"""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from omegaconf import OmegaConf

from code_a1_recipe.algorithm.episode import suite_result
from code_a1_recipe.algorithm.episode_types import Response
from code_a1_recipe.algorithm.question import request_for
from code_a1_recipe.data.reader import QuestionTable, iter_rows, question_table
from code_a1_recipe.errors import InputError
from sandbox import Judge, JudgeRequest, Limits, LocalRunner
from studies.command_line import run_study, study_app

_SLOWEST = 3
app = study_app()


@dataclass(frozen=True, kw_only=True)
class _Program:
    request: JudgeRequest
    arrival: float
    """Seconds from the start of the step to the program's last suite."""


@app.command()
def judging_waits(
    files: list[Path],
    questions: Annotated[Path, typer.Option()],
    places: Annotated[int, typer.Option(min=1)] = 2,
    limit: Annotated[list[str] | None, typer.Option(help="a value of sandbox.limits, as NAME=NUMBER")] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="judge greedy programs on the tests of their questions")
    ] = False,
) -> None:
    """Judge the programs of a run again, each at the time of its last suite in the run."""
    limits = Limits.from_mapping(OmegaConf.from_dotlist(limit or []), where="--limit")
    table = question_table([questions])
    for file in files:
        if hidden:
            typer.echo(f"{file.name}: {_on_hidden_tests(file, table, limits)}")
            continue
        programs = sorted(_programs(file, table), key=lambda program: program.arrival)
        with LocalRunner(num_workers=places, limits=limits) as runner:
            ends, seconds = _replay(programs, Judge(runner, limits=limits, reuse_results=True), places)
        behind = max(ends) - programs[-1].arrival
        typer.echo(
            f"{file.name}: {len(programs)} programs; last suite after {programs[-1].arrival:.1f} s, last verdict "
            f"{behind:.1f} s later; {sum(seconds):.1f} s in the judge"
        )
        slowest = sorted(range(len(programs)), key=lambda place: -seconds[place])
        for place in slowest[:_SLOWEST]:
            typer.echo(f"  {programs[place].request.question_id}: {seconds[place]:.1f} s")


def _programs(file: Path, questions: QuestionTable) -> list[_Program]:
    """Read the programs of a file. The file may have any format version whose suites have spans."""
    programs = []
    for row in iter_rows(file):
        if row["source"] is None or not row["suites"]:
            continue
        if row["question"] not in questions:
            raise InputError(f"{file}: question {row['question']!r} is not in --questions; name the run's own file")
        suites = []
        for suite in row["suites"]:
            response = Response.scripted(suite["response"])
            suites.append(suite_result(response).asserts)
        verdict = row["verdict"] or {}
        history = tuple(case["call"] for case in verdict.get("history", ()))
        request = request_for(questions[row["question"]], row["source"], *suites, history=history)
        arrival = max(suite["span"][1] for suite in row["suites"])
        programs.append(_Program(request=request, arrival=arrival))
    if not programs:
        raise InputError(f"{file}: no program with suites; name a file rollouts/train_*.jsonl of a run")
    return programs


def _on_hidden_tests(file: Path, questions: QuestionTable, limits: Limits) -> str:
    requests = []
    for row in iter_rows(file):
        question = questions.get(row["question"])
        if question and row["kind"] == "greedy" and row["source"]:
            requests.append(request_for(question, row["source"], question.tests, given=True))
    if not requests:
        raise InputError(f"{file}: no greedy program for --questions; name a file rollouts/val_*.jsonl of a run")
    lines = []
    with LocalRunner(num_workers=1, limits=limits) as runner:
        judge = Judge(runner, limits=limits)
        for request in requests:
            judge.prepare([request])
        for until_timeout in (False, True):
            started = time.monotonic()
            verdicts = [judge.judge(replace(request, until_timeout=until_timeout)) for request in requests]
            num_failing = sum(verdict.suites[0].num_failed > 0 for verdict in verdicts)
            asked = "to the first time-out" if until_timeout else "all tests"
            lines.append(f"{asked} {time.monotonic() - started:.1f} s, {num_failing} programs fail")
    return f"{len(requests)} programs; {'; '.join(lines)}"


def _replay(programs: Sequence[_Program], judge: Judge, places: int) -> tuple[list[float], list[float]]:
    """Judge programs at their times of arrival.

    Returns:
        For each program, the seconds from the start of the step to its verdict, and the seconds in the judge.
    """
    started = time.monotonic()

    def run(program: _Program) -> tuple[float, float]:
        began = time.monotonic()
        judge.judge(program.request)
        return time.monotonic() - started, time.monotonic() - began

    # In a run, the judge has the same number of threads. The runner limits how many programs run at once.
    with ThreadPoolExecutor(8 * places) as pool:
        futures = []
        for program in programs:
            time.sleep(max(0.0, started + program.arrival - time.monotonic()))
            futures.append(pool.submit(run, program))
        ends, seconds = zip(*(future.result() for future in futures), strict=True)
    return list(ends), list(seconds)


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="judging_waits"))
