"""How long a step of a recorded run waits for the judge behind its last suite.

    python -m studies.judging_waits RUN/rollouts/train_*.jsonl --questions FILE --limit reference_cpu_seconds_per_case=1

Programs come to the judge when their last suite came in the run, on as many places as given; values are those of
`sandbox.limits`. Prints a row for each file, and its slowest programs.

With `--hidden` the greedy programs of a validation meet their questions' own tests instead, one after the other, with
the reference's answers known: all of the tests, and as far as the first time-out (`validation.until_timeout`).
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
    """Seconds from the start of the step to its last suite."""


@app.command()
def judging_waits(
    files: list[Path],
    questions: Annotated[Path, typer.Option()],
    places: Annotated[int, typer.Option(min=1)] = 2,
    limit: Annotated[list[str] | None, typer.Option(help="a value of sandbox.limits, as NAME=NUMBER")] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="greedy programs on their questions' own tests")] = False,
) -> None:
    """Replay a run's judging."""
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
        for place in sorted(range(len(programs)), key=lambda place: -seconds[place])[:_SLOWEST]:
            typer.echo(f"  {programs[place].request.question_id}: {seconds[place]:.1f} s")


def _programs(file: Path, questions: QuestionTable) -> list[_Program]:
    """Programs of a file of any format version that has suites with spans."""
    programs = []
    for row in iter_rows(file):
        if row["source"] is None or not row["suites"]:
            continue
        if row["question"] not in questions:
            raise InputError(f"{file}: question {row['question']!r} is not in --questions")
        suites = [suite_result(Response.scripted(suite["response"])).asserts for suite in row["suites"]]
        history = tuple(case["call"] for case in (row["verdict"] or {}).get("history", ()))
        request = request_for(questions[row["question"]], row["source"], *suites, history=history)
        programs.append(_Program(request=request, arrival=max(suite["span"][1] for suite in row["suites"])))
    if not programs:
        raise InputError(f"{file}: no program with suites; give a run's rollouts/train_*.jsonl")
    return programs


def _on_hidden_tests(file: Path, questions: QuestionTable, limits: Limits) -> str:
    rows = [
        row for row in iter_rows(file) if row["kind"] == "greedy" and row["source"] and row["question"] in questions
    ]
    if not rows:
        raise InputError(f"{file}: no greedy program of --questions; give a run's rollouts/val_*.jsonl")
    requests = [
        request_for(questions[row["question"]], row["source"], questions[row["question"]].tests) for row in rows
    ]
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
    """For each program the seconds from the start of the step to its verdict, and those in the judge."""
    started = time.monotonic()

    def run(program: _Program) -> tuple[float, float]:
        began = time.monotonic()
        judge.judge(program.request)
        return time.monotonic() - started, time.monotonic() - began

    with ThreadPoolExecutor(8 * places) as pool:  # as a judge of a run takes them; its runner bounds what runs
        futures = []
        for program in programs:
            time.sleep(max(0.0, started + program.arrival - time.monotonic()))
            futures.append(pool.submit(run, program))
        ends, seconds = zip(*(future.result() for future in futures), strict=True)
    return list(ends), list(seconds)


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="judging_waits"))
