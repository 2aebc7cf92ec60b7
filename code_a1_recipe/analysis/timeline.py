"""``code-a1 timeline RUN``: where one training step's time went, as a picture and a table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from .figures import STYLE
from .records import RecordsError, RunRecords
from .report import REPORT_FOLDER
from .step_times import StepTimes, median_step_seconds, read_step, steps_with_times
from .summary import counted, text_table
from .timeline_figure import draw_timelines

DONE, REFUSED = 0, 2
_DESCRIPTION = """\
Shows where the time of one training step went: how many requests each policy had under way, what each question
waited for, and how long the updates, the checkpoint and the new weights took. Writes a picture (PNG) and prints a
table of seconds and shares. It reads rollouts/ and metrics.jsonl of the run, also while the run is going on."""
_EPILOG = """\
the table:
  only the Code LLM   seconds of the episodes in which it wrote programs and the Test LLM wrote nothing;
                      likewise "only the Test LLM". The judge may work beside either
  both LLMs           both wrote at the same time: what streaming wins
  only the judge      programs were judged, or waited for a judge, and no LLM wrote
  nothing             none of them: dispatch, prompts, the end of the last question
  update code, test   with layout=separate both at once, and drawn one above the other
  sync, save          new weights to the servers; checkpoint
  other               of the step, outside the episodes and all timers below them
  running at once     mean number of requests (programs) under way during the episodes

the picture: above, what runs at once; below, a row for each question; at the right the updates, the checkpoint and the
new weights. A row is divided among what goes on at the same time; with more than 64 questions it shows the mixture of
their colours instead. Two runs are drawn on the same scales.

examples:
  code-a1 timeline outputs/my-run
  code-a1 timeline outputs/my-run --step 12 --output step12.png
  code-a1 timeline outputs/two-phases --compare outputs/streaming     below 1.0: streaming takes less time"""


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 written, 2 refused."""
    parsed = _parse(arguments)
    try:
        if parsed.output is not None and parsed.output.suffix.lower() != ".png":
            raise RecordsError(f"--output must name a PNG file (.png), got {parsed.output}")
        folders = [parsed.run] if parsed.compare is None else [parsed.run, parsed.compare]
        runs = [RunRecords.open(folder) for folder in folders]
        step = _step(runs, parsed.step)
        times = [read_step(run, step) for run in runs]
        named = dict(zip(_names(runs), times, strict=True))
        output = parsed.output or runs[0].folder / REPORT_FOLDER / f"timeline_step{step}.png"
        _write(named, output)
        ratio = _ratio(runs, list(named)) if len(runs) == 2 else ""
    except RecordsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    sys.stdout.write(f"step {step} of {' and '.join(named)}\n\n{_seconds_table(named)}\n\n{_running_table(named)}\n\n")
    sys.stdout.write(f"{ratio}picture: {output}\n")
    return DONE


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="code-a1 timeline",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="run folder: what was given as run_dir, or outputs/<preset>-<time>")
    parser.add_argument(
        "--step",
        type=int,
        help="training step to show, from 1 (default: the last finished one; with --compare, that both runs have). "
        "Step 1 also loads caches and is slower than the rest",
    )
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="OTHER_RUN",
        help="show the same step of another run below, and the ratio of their steps' seconds, OTHER_RUN to RUN",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE.png", help="the picture (default: RUN/report/timeline_step<N>.png)"
    )
    return parser.parse_args(arguments)


def _step(runs: Sequence[RunRecords], asked: int | None) -> int:
    """The step asked for, or the last one that every run has.

    Raises:
        RecordsError: a run has not finished that step, or no step at all.
    """
    found = [steps_with_times(run) for run in runs]
    for run, steps in zip(runs, found, strict=True):
        if not steps:
            raise RecordsError(
                f"{run.folder} has no step with both rollouts and timing_s/step in {run.paths.metrics.name}; "
                "let the run finish a step, then try again"
            )
        if asked is not None and asked not in steps:
            raise RecordsError(
                f"--step must be a step with rollouts and metrics, got {asked}; {run.folder} has {_ranges(steps)}"
            )
    if asked is not None:
        return asked
    common = set.intersection(*map(set, found))
    if not common:
        those = "; ".join(f"{run.folder} has {_ranges(steps)}" for run, steps in zip(runs, found, strict=True))
        raise RecordsError(f"--compare needs a step that both runs have, and there is none: {those}; train one further")
    return max(common)


def _ranges(steps: Sequence[int]) -> str:
    """``1 to 3, 7``: ascending integers in few words."""
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _names(runs: Sequence[RunRecords]) -> list[str]:
    """The folders' names; with as many parents as it takes to tell two runs apart."""
    folders = [Path(os.path.abspath(run.folder)) for run in runs]  # not resolved: a link keeps its name
    if len(set(folders)) < len(folders):
        raise RecordsError(f"--compare must name another run than RUN, got {runs[0].folder} twice")
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
        raise RecordsError(
            f"the picture {output} cannot be written: {error}; name a place for it with --output"
        ) from error


def _seconds_table(steps: Mapping[str, StepTimes]) -> str:
    """Seconds and share of the step by part, two columns a run."""
    columns = [["", "step", *(name for name, _ in _parts(next(iter(steps.values()))))]]
    for name, times in steps.items():
        seconds = [times.seconds, *(value for _, value in _parts(times))]
        columns.append([f"{name}, seconds", *("-" if value is None else f"{value:.2f}" for value in seconds)])
        columns.append(["share", *("" if value is None else f"{value / times.seconds:.1%}" for value in seconds)])
    return _aligned(columns)


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
        columns.append([name, *(f"{times.mean_running(spans):.1f}" for spans in (times.code, times.test, times.judge))])
    return _aligned(columns)


def _aligned(columns: Sequence[Sequence[str]]) -> str:
    """A table of the first column as it is and of numbers flush right."""
    first, *numbers = columns
    right = [[cell.rjust(max(map(len, column))) for cell in column] for column in numbers]
    return text_table([list(row) for row in zip(first, *right, strict=True)])


def _ratio(runs: Sequence[RunRecords], names: Sequence[str]) -> str:
    """The line with both medians of a step's seconds and how many times the first run's the second one's is."""
    (own, num_own), (other, num_other) = (median_step_seconds(run) for run in runs)
    return (
        f"median seconds a step, the first one left out: {names[0]} {own:.2f} ({counted(num_own, 'step')}), "
        f"{names[1]} {other:.2f} ({counted(num_other, 'step')}); {names[1]} / {names[0]} = {other / own:.2f}\n"
    )
