"""Where one training step's time went, as a picture and a table."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

from code_a1_recipe.analysis.figures import STYLE
from code_a1_recipe.analysis.report import REPORT_FOLDER
from code_a1_recipe.errors import InputError
from code_a1_recipe.jobs.terminal import table
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.stats.tables import counted

from .figure import draw_timelines
from .step_times import StepTimes, median_step_seconds, ranges, read_step, steps_with_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One step of one run, or of two."""

    text: str
    """Tables of seconds and of what ran at once."""
    picture: Path


def write_timeline(
    run: Path, *, step: int | None = None, compare: Path | None = None, output: Path | None = None
) -> Timeline:
    """Draw a step and tabulate its seconds.

    Args:
        run: run folder, also of a run that is going on.
        step: from 1; None: the last finished one, with ``compare`` that both runs have.
        compare: another run, drawn below.
        output: the picture; None: ``RUN/report/timeline_step<N>.png``.

    Raises:
        InputError: no such run or step, or the picture cannot be written.
    """
    if output is not None and output.suffix.lower() != ".png":
        raise InputError(f"--output must name a PNG file (.png), got {output}")
    runs = [RunRecords.open(folder) for folder in ([run] if compare is None else [run, compare])]
    chosen = _step(runs, step)
    named = dict(zip(_names(runs), [read_step(one, chosen) for one in runs], strict=True))
    picture = output or runs[0].folder / REPORT_FOLDER / f"timeline_step{chosen}.png"
    _write(named, picture)
    ratio = _ratio(runs, list(named)) if len(runs) == 2 else ""
    head = f"step {chosen} of {' and '.join(named)}"
    return Timeline(text=f"{head}\n\n{_seconds_table(named)}\n\n{_running_table(named)}\n\n{ratio}", picture=picture)


def _step(runs: Sequence[RunRecords], asked: int | None) -> int:
    """The step asked for, or the last one that every run has.

    Raises:
        InputError: a run has not finished that step, or no step at all.
    """
    found = [steps_with_times(run) for run in runs]
    for run, steps in zip(runs, found, strict=True):
        if not steps:
            raise InputError(
                f"{run.folder} has no step with both rollouts and timing_s/step in {run.paths.metrics.name}; "
                "let the run finish a step, then try again"
            )
        if asked is not None and asked not in steps:
            raise InputError(
                f"--step must be a step with rollouts and metrics, got {asked}; {run.folder} has {ranges(steps)}"
            )
    if asked is not None:
        return asked
    common = set.intersection(*map(set, found))
    if not common:
        those = "; ".join(f"{run.folder} has {ranges(steps)}" for run, steps in zip(runs, found, strict=True))
        raise InputError(f"--compare needs a step that both runs have, and there is none: {those}; train one further")
    return max(common)


def _names(runs: Sequence[RunRecords]) -> list[str]:
    """The folders' names; with as many parents as it takes to tell two runs apart."""
    folders = [Path(os.path.abspath(run.folder)) for run in runs]  # not resolved: a link keeps its name
    if len(set(folders)) < len(folders):
        raise InputError(f"--compare must name another run than RUN, got {runs[0].folder} twice")
    for length in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["/".join(folder.parts[-length:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _write(steps: Mapping[str, StepTimes], output: Path) -> None:
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(STYLE):
            draw_timelines(steps).savefig(output, format="png", metadata={"Software": None})
    except OSError as error:
        raise InputError(
            f"the picture {output} cannot be written: {error}; name a place for it with --output"
        ) from error


def _seconds_table(steps: Mapping[str, StepTimes]) -> str:
    """Seconds and share of the step by part, two columns a run."""
    columns = [["", "step", *(name for name, _ in _parts(next(iter(steps.values()))))]]
    for name, times in steps.items():
        seconds = [times.seconds, *(value for _, value in _parts(times))]
        columns.append([f"{name}, seconds", *("-" if value is None else f"{value:.2f}" for value in seconds)])
        columns.append(["share", *("" if value is None else f"{value / times.seconds:.1%}" for value in seconds)])
    head, *rows = zip(*columns, strict=True)
    return "\n".join(table(head, rows))


def _parts(times: StepTimes) -> list[tuple[str, float | None]]:
    """Parts of a step and their seconds; None where a timer did not run. Indented: parts of the one above."""
    busy = times.busy
    return [
        ("episodes", times.episode_seconds),
        ("  only the Code LLM", busy.only_code),
        ("  only the Test LLM", busy.only_test),
        ("  both LLMs", busy.both),
        ("  only the judge", busy.only_judge),
        ("  nothing", busy.nothing),
        ("update code", times.phases.get("update_code")),
        ("update test", times.phases.get("update_test")),
        ("sync", times.phases.get("update_weights")),
        ("save", times.phases.get("save_checkpoint")),
        ("other", times.other_seconds),
    ]


def _running_table(steps: Mapping[str, StepTimes]) -> str:
    columns = [["running at once, mean", "Code LLM requests", "Test LLM requests", "programs at the judge"]]
    for name, times in steps.items():
        columns.append([name, *(f"{times.mean_running(spans):.1f}" for spans in times.spans.by_activity)])
    head, *rows = zip(*columns, strict=True)
    return "\n".join(table(head, rows))


def _ratio(runs: Sequence[RunRecords], names: Sequence[str]) -> str:
    """The line with both medians of a step's seconds and how many times the first run's the second one's is."""
    (own, num_own), (other, num_other) = (median_step_seconds(run) for run in runs)
    return (
        f"median seconds a step, the first one left out: {names[0]} {own:.2f} ({counted(num_own, 'step')}), "
        f"{names[1]} {other:.2f} ({counted(num_other, 'step')}); {names[1]} / {names[0]} = {other / own:.2f}\n"
    )
