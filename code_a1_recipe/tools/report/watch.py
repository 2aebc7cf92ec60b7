"""``code-a1 watch``: shows a run in the terminal, drawn anew every second until the run ends. It only reads."""

import signal
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...errors import InputError
from ...jobs.terminal import printable
from ...runs.folder import RunFolder
from ...runs.reader import RunRecords
from ...runs.rollout_record import RolloutRecord
from ...stats.tables import counts_text
from .figures import RUN_FIGURES, Rows, points_of
from .question_view import outcome_of, pick_episodes, program_lines

_SECONDS_BETWEEN_READS = 1.0
_CURVE_COLUMNS = 40
_MARKS = "▁▂▃▄▅▆▇█"
_TREND_STEPS = 5
_PACE_STEPS = 10
"""Number of last steps over which the duration of a step is averaged."""


def watch(folder: Path, *, once: bool = False) -> None:
    """Show a run until it ends. It is shown only once if it has ended, with ``once``, or if the output is a pipe.

    Raises:
        InputError: the folder holds no run, or a run that ended before its first step.
        KeyboardInterrupt: the user pressed Ctrl-C, or SIGTERM arrived.
    """
    paths = RunFolder(folder)
    console = Console(highlight=False)
    if not paths.is_running():
        RunRecords.open(folder)  # raises InputError if the run ended before its first step
    total = RunRecords(paths.root).config["trainer"].get("total_training_steps")
    if paths.is_running() and console.is_interactive and not once:
        # SIGTERM becomes an exception, so that `Live` restores the terminal.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while paths.is_running():
                try:
                    shown = picture(paths.root, total)
                except (InputError, OSError) as error:
                    shown = Text(printable(str(error)), "red")
                live.update(shown, refresh=True)
                time.sleep(_SECONDS_BETWEEN_READS)
    console.print(picture(paths.root, total))


def picture(folder: Path, total: int | None) -> RenderableType:
    """Draw a run in its present state. ``total`` is the number of all its steps; None if it is unknown.

    Raises:
        InputError: a file cannot be read.
    """
    run = RunRecords(folder)
    rows = run.metrics if run.paths.metrics.is_file() else []
    head = header(run.paths, rows, total)
    if not rows:
        return Group(head, "waiting for the first step")
    parts: list[RenderableType] = [head, curves(rows)]
    if run.training_steps:
        parts.append(programs(run, run.training_steps[-1]))
    return Group(*parts)


def header(paths: RunFolder, rows: Rows, total: int | None) -> Text:
    """Write one line: the run's name, its step, its state, and the time until its end."""
    step = rows[-1]["step"] if rows else 0
    of_total = f" of {total}" if total else ""
    state = "stopped"
    if paths.is_running():
        state = "running"
        last_rows = rows[-_PACE_STEPS:]
        seconds = [value for _, value in points_of(last_rows, "timing_s/step")]
        if total and seconds:
            left = (total - step) * fmean(seconds)
            state += f", about {timedelta(seconds=round(left))} left"
    elif total and step >= total:
        state = "finished"
    return Text(f"{printable(paths.root.name)}  step {step}{of_total}  {state}")


def curves(rows: Rows) -> Table:
    """Tabulate the report's metrics. ``trend``: mean of the last 5 values minus mean of the 5 values before."""
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True, overflow="ellipsis")
    table.add_column("", no_wrap=True, overflow="crop")
    for head in ("last", "trend"):
        table.add_column(head, justify="right", no_wrap=True)
    for caption, panels in RUN_FIGURES.values():
        table.add_row(Text(caption, "bold"))
        for panel in panels:
            for name in panel.lines:
                values = [value for _, value in points_of(rows, name)]
                if values:
                    table.add_row(f" {name}", sparkline(values), f"{values[-1]:.4g}", _trend(values))
    return table


def sparkline(values: Sequence[float]) -> str:
    """Draw values as a line of blocks; the least value is the lowest block. A block may be a mean of several values."""
    num_columns = min(len(values), _CURVE_COLUMNS)
    borders = [column * len(values) // num_columns for column in range(num_columns + 1)]
    means = []
    for first, end in pairwise(borders):
        means.append(fmean(values[first:end]))
    low = min(means)
    scale = (len(_MARKS) - 1) / ((max(means) - low) or 1.0)
    heights = [round((mean - low) * scale) for mean in means]
    return "".join(_MARKS[height] for height in heights)


def programs(run: RunRecords, step: int) -> Text:
    """Count the newest step's programs by outcome, and show one that a test broke."""
    file = run.paths.rollout_file(step, validation=False)
    records = _records(run.folder, step, file.stat().st_mtime_ns)
    outcomes = Counter(map(outcome_of, records))
    lines = [f"\nStep {step}, {len(records)} programs: {counts_text(outcomes)}"]
    for record in pick_episodes(records, outcome="detected", limit=1):
        lines.append(f"question {printable(record.question)}")
        lines += program_lines(record)
    return Text.from_ansi("\n".join(lines), overflow="fold")


@lru_cache(maxsize=1)
def _records(folder: Path, step: int, changed: int) -> list[RolloutRecord]:
    """Read a step's programs. ``changed``, the time of the file's last change, is a part of the cache's key."""
    return RunRecords(folder).training(step)


def _trend(values: Sequence[float]) -> str:
    half = min(_TREND_STEPS, len(values) // 2)
    if not half:
        return ""
    last = fmean(values[-half:])
    before = fmean(values[-2 * half : -half])
    return f"{last - before:+.3f}"
