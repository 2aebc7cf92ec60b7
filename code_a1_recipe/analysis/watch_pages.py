"""The pages of ``code-a1 watch``; what models and data sets wrote is escaped before rich sees it."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from statistics import fmean

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..jobs.terminal import Paint, printable
from ..runs.console import PHASES
from ..runs.live_run import LiveRun
from ..runs.rollout_record import RolloutRecord
from .question_view import OUTCOMES, pick_episodes, program_lines, question_lines

_CURVES = {
    "Code LLM": ("code/reward", "code/pass@1", "code/case_pass_rate", "code/repair_reward", "code/pass@1_after_repair"),
    "Test LLM": ("test/reward", "test/valid", "test/adv", "test/broke_candidate_rate", "test/distinct_call_rate"),
    "Mistake Book": ("book/cases", "book/replay_pass_rate"),
    "Held-out questions": (
        "val/code/pass@1",
        "val/code/greedy_pass@1",
        *(f"val/test/buggy_programs_{name}" for name in ("valid", "kill", "detection_rate")),
    ),
}
_RATES = {
    "Lost": ("judge/outages", "judge/timeout_rate", "code/too_long_to_test_rate"),
    "Not extracted, rejected": ("code/extraction_failure_rate", "test/extraction_failure_rate", "test/rejected_cases"),
    "Seconds": tuple(f"timing_s/{name}" for name in ("step", "episodes", *PHASES, "testing")),
}
_TREND_STEPS = 5
_NAME_COLUMNS, _WIDTH_FOR_SCALES = 34, 70
_WIDEST_VALUE = 3
"""Columns of one step in a curve."""
_TESTS_SHOWN, _CASES_SHOWN = 3, 30
_FATES = ("programs", "suites", "replays", "passed", "unjudged")
HELP = """\
1 2 3 4, left, right   pages
up, down, PgUp, PgDn   scroll
n, p                   next, previous episode
q                      quit

Names are those of metrics.jsonl. trend: mean of the last 5 values minus that of the 5 before; of fewer by halves.
Episodes are the newest step's; they stay at a step once you have moved in them, until the page is opened again."""


@dataclass(slots=True)
class View:
    """What is looked at: the first line that is shown, and of the episodes which, and of which step."""

    width: int = 80
    page: int = 0
    scroll: int = 0
    episode: int = 0
    step: int | None = None


@dataclass(frozen=True)
class Curve:
    """Values of successive steps as a line of blocks, scaled between the least and the greatest; blank without one."""

    values: Sequence[float | None]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        marks = "_.-=+*#" if options.ascii_only else "▁▂▃▄▅▆▇█"
        num_bins = min(len(self.values), options.max_width)
        borders = [place * len(self.values) // num_bins for place in range(num_bins + 1)]
        bins = [[one for one in self.values[first:end] if one is not None] for first, end in pairwise(borders)]
        means = [fmean(values) for values in bins if values]
        low, scale = min(means), (len(marks) - 1) / ((max(means) - min(means)) or 1.0)
        shown = (marks[round((fmean(values) - low) * scale)] if values else " " for values in bins)
        yield Text("".join(mark * min(_WIDEST_VALUE, options.max_width // num_bins) for mark in shown), no_wrap=True)


def header(live: LiveRun) -> Text:
    """Which run, how far, and how it goes."""
    total = "" if live.total_steps is None else f" of {live.total_steps}"
    end = time.time() if live.is_running else live.updated
    return Text.assemble(
        (_on_one_line(live.run.folder.name), "bold"),
        f"  step {live.last_step}{total}  ",
        (live.state, {"running": "green", "finished": "cyan"}.get(live.state, "red")),
        f"  {_clock(end - live.started)}  updated {_clock(time.time() - live.updated)} ago",
    )


def curves(live: LiveRun, view: View) -> RenderableType:
    """Both policies, the Mistake Book and held-out questions over the steps."""
    return _curves(live, _CURVES, view.width)


def episodes(live: LiveRun, view: View) -> RenderableType:
    """One program of a step with its suites, what broke it, and its question."""
    if view.step is None or view.scroll == view.episode == 0:
        view.step = live.newest_rollouts
    records = [] if view.step is None else live.records(view.step)
    chosen = [one for name in OUTCOMES for one in pick_episodes(records, outcome=name, limit=len(records))]
    if not chosen:
        return Text("waiting for the first episodes")
    view.episode = min(view.episode, len(chosen) - 1)
    record, paint = chosen[view.episode], Paint(is_on=True)
    lines = [f"episode {view.episode + 1} of {len(chosen)}, step {view.step}, question {printable(record.question)}"]
    lines += ["", *program_lines(record, paint), ""]
    if (question := live.questions.get(record.question)) is not None:
        lines += question_lines(replace(question, golden_tests=(), buggy_programs=()), paint, most=_TESTS_SHOWN)
    return Text.from_ansi("\n".join(lines), overflow="fold")


def questions(live: LiveRun, view: View) -> RenderableType:
    """The newest step's programs by what broke them, and the cases of the Mistake Book that broke most."""
    step, book = live.newest_rollouts, live.book()
    counts: dict[str, Counter[str]] = {}
    for record in [] if step is None else live.records(step):
        counts.setdefault(record.question, Counter()).update(["programs", _fate(record)])
    ranked = sorted(counts.items(), key=lambda item: [-item[1][fate] for fate in _FATES[1:3]])
    cases = [(entry, question_id) for question_id in book.question_ids() for entry in book.entries(question_id)]
    cases.sort(key=lambda pair: (-pair[0].num_failed, pair[0].num_met))
    shown = [
        (f"{entry.call} == {entry.answer}", question_id, f"{entry.num_failed} of {entry.num_met}", str(entry.frequency))
        for entry, question_id in cases[:_CASES_SHOWN]
    ]
    return Group(
        Text(f"Step {step}: programs that new suites broke, only replays broke, nothing broke", "bold"),
        _table(("question", *_FATES), [(name, *[str(of[fate] or "") for fate in _FATES]) for name, of in ranked]),
        Text(f"\nMistake Book of the newest save, {len(cases)} cases: those that broke most", "bold"),
        _table(("case", "question", "broke", "count"), shown),
    )


def rates(live: LiveRun, view: View) -> RenderableType:
    """What was lost on the way, where the seconds go, and when the run will end."""
    lost, end = sum(row.get("judge/outages") or 0 for row in live.metrics.rows), live.expected_end
    until = "" if end is None else f", expected end {time.strftime('%Y-%m-%d %H:%M', time.localtime(end))}"
    return Group(Text(f"{lost:.0f} programs lost to outages in all{until}"), _curves(live, _RATES, view.width))


Page = Callable[[LiveRun, View], RenderableType]
PAGES: dict[str, Page] = {"curves": curves, "episodes": episodes, "what broke what": questions, "rates, time": rates}


def _curves(live: LiveRun, groups: Mapping[str, Sequence[str]], width: int) -> RenderableType:
    if not live.metrics.rows:
        return Text("waiting for the first step")
    table = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=min(_NAME_COLUMNS, width // 3))
    table.add_column(ratio=1, no_wrap=True)
    heads = ("last", "trend", "low", "high") if width >= _WIDTH_FOR_SCALES else ("last", "trend")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for group, names in groups.items():
        table.add_row(Text(group, "bold"))
        for name in names:
            found = [row.get(name) for row in live.metrics.rows]
            found = [value if isinstance(value, int | float) else None for value in found]
            values = [value for value in found if value is not None]
            if values:
                cells = [_number(values[-1]), _trend(values), _number(min(values)), _number(max(values))]
                table.add_row(f" {name.removeprefix('val/')}", Curve(found), *cells[: len(heads)])
    return table


def _trend(values: Sequence[float]) -> str:
    half = min(_TREND_STEPS, len(values) // 2)
    if not half:
        return ""
    change = round(fmean(values[-half:]) - fmean(values[-2 * half : -half]), 3) + 0.0  # no -0
    return f"{'+' if change > 0 else ''}{_number(change)}"


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 and value != int(value) else f"{value:.0f}"


def _fate(record: RolloutRecord) -> str:
    if not record.is_loaded:
        return "unjudged"
    broken = "suites" if record.is_broken(by_replays=False) else "replays"
    return broken if record.is_broken() else "passed"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in head:
        is_text = name in ("question", "case")
        table.add_column(name, no_wrap=True, overflow="ellipsis", justify="left" if is_text else "right")
    for row in rows:
        table.add_row(*[Text(_on_one_line(cell)) for cell in row])
    return table


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=max(0, round(seconds))))
