"""``code-a1 report RUN_OR_EXPERIMENT``: one self-contained page and its pictures, also while a run is going on."""

import base64
import html
import io
import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure

from ..algorithm.question import Question
from ..errors import InputError
from ..files import portable, write_whole
from ..jobs.terminal import Paint
from ..runs.folder import RunFolder
from ..runs.reader import RunRecords
from ..runs.rollout_record import RolloutRecord
from ..stats.tables import Table, counted, table_with_head
from . import figures
from .experiment import EXPERIMENT_FILE, FINISHED, Experiment
from .measures import changes_of, validations
from .question_view import pick_episodes, program_lines, questions_by_id
from .run_results import RESULTS_FILE, Results, RunResult, load_results, result_of, save_results
from .summary import HEADLINE_MEASURES, ExperimentSummary, tables_of, tables_text

REPORT_FOLDER, PAGE, TABLES = "report", "index.html", "tables.md"
_SHOWN_EPISODES = 6
_EPISODE_STEPS = 12
"""Training steps, from the last one back, that sample episodes are picked from."""
_TESTER_MEASURES = (
    "valid",
    "kill_per_case",
    "detection_rate",
    "distinct_call_rate",
    "false_negative_rate",
    "false_negative_rate_without_replay",
)
_UNLEARNED = ("forgotten", "fails_next_visit", "fails_same_visit")


@dataclass(slots=True, kw_only=True)
class Section:
    """One heading of the page with what stands under it."""

    title: str
    text: str = ""
    table: Table | None = None
    pictures: list[tuple[str, str, str]] = field(default_factory=list)
    """File, caption, and the content as base64."""
    episodes: list[tuple[RolloutRecord, Question | None, str]] = field(default_factory=list)
    """A program with its suites, its question, and as HTML what ``code-a1 data inspect`` shows of it."""
    preformatted: str = ""


def write_report(source: Path) -> tuple[Path, str]:
    """Write the report of a run, an experiment or its ``results.json``; returns the page, and the tables as text.

    It goes into a folder ``report`` of the run or experiment, or beside the file, with the pictures and, of an
    experiment, ``results.json`` and the tables as Markdown; of a run there are no tables.

    Raises:
        InputError: there is nothing to report on.
        OSError: it cannot be written.
    """
    source = Path(os.path.abspath(source))  # not resolved: a link keeps its name
    target = source.parent if source.is_file() else source / REPORT_FOLDER
    is_experiment = not RunFolder(source).resolved_config.is_file()
    if source.is_file():
        title, lead, sections = _experiment_report(source.parent.name, load_results(source), target)
    elif not is_experiment:
        title, lead, sections = _run_report(RunRecords.open(source), target)
    else:
        results = open_experiment(source)
        num_runs = len(_listed(source) or ())
        title, lead, sections = _experiment_report(source.name, results, target, num_runs)
        save_results(results, target / RESULTS_FILE)
    write_whole(target / PAGE, _page(title, lead, sections))
    return target / PAGE, (target / TABLES).read_text(encoding="utf-8") if is_experiment else ""


def run_page(run: RunRecords) -> bytes:
    """The page of a run as UTF-8, with its pictures in it; nothing is written."""
    return _page(*_run_report(run, None))


def _page(title: str, lead: str, sections: Sequence[Section]) -> bytes:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=False
    )
    page = environment.get_template("page.html.jinja").render(title=title, lead=lead, sections=sections)
    return page.encode("utf-8", "replace")  # models write half characters


def open_experiment(folder: Path) -> Results:
    """The finished runs below an experiment's folder.

    Raises:
        InputError: there is none.
    """
    listed = _listed(folder)
    runs: dict[str, dict[int, RunResult]] = {}
    commands: dict[str, str] = {}
    for path in sorted(folder.glob(f"*/seed*/{FINISHED}"), key=lambda path: path.stat().st_mtime):
        arm, seed = path.parent.parent.name, path.parent.name.removeprefix("seed")
        if not seed.isdigit() or (listed is not None and (arm, int(seed)) not in listed):
            continue
        run = RunRecords.open(path.parent)
        runs.setdefault(arm, {})[int(seed)] = result_of(run, wall_seconds=_wall_seconds(path))
        commands.setdefault(arm, _command_of(run))
    if not runs:
        raise InputError(
            f"{folder} holds neither a run (resolved_config.yaml) nor finished runs of an experiment "
            f"(<arm>/seed<n>/{FINISHED})"
        )
    arms = list(runs) if listed is None else [arm for arm in dict.fromkeys(arm for arm, _ in listed) if arm in runs]
    return Results(
        runs={arm: dict(sorted(runs[arm].items())) for arm in arms}, commands=tuple(commands[arm] for arm in arms)
    )


def _wall_seconds(finished: Path) -> float | None:
    try:
        found = json.loads(finished.read_text(encoding="utf-8"))["wall_seconds"]
        if found is None or (isinstance(found, int | float) and math.isfinite(found)):
            return found
        raise ValueError(f"wall_seconds is {found!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{finished} cannot be read: {error!r}; remove it, and `code-a1 experiment` makes the run again"
        ) from error


def _listed(folder: Path) -> list[tuple[str, int]] | None:
    """Arms and seeds of the experiment's file, in its order; None where it is not there."""
    try:
        experiment = Experiment.load(folder / EXPERIMENT_FILE)
    except InputError:
        return None
    return [(arm.name, seed) for arm in experiment.arms for seed in experiment.seeds]


def _draw(
    folder: Path | None, name: str, caption: str, draw: Callable[[], Figure | None]
) -> list[tuple[str, str, str]]:
    """A picture of ``Section.pictures``, none where there is nothing to draw; without a folder it is not written."""
    with mpl.rc_context(figures.STYLE):
        figure = draw()
        if figure is None:
            return []
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    if folder is not None:
        write_whole(folder / f"{name}.png", buffer.getvalue())
    return [(f"{name}.png", caption, base64.b64encode(buffer.getvalue()).decode())]


def _run_report(run: RunRecords, target: Path | None) -> tuple[str, str, list[Section]]:
    done, wanted = (run.steps or [0])[-1], run.config["trainer"].get("total_training_steps")
    state = f"{done} of {counted(wanted, 'step')}" if wanted and done < wanted else counted(done, "step")
    sections = [_changes_section(run)] if changes_of(run) else []
    for name, (caption, draw) in figures.RUN_FIGURES.items():
        pictures = _draw(target, name, caption, partial(draw, run))
        if pictures:
            sections.append(Section(title=caption, pictures=pictures))
    sections += _episode_sections(run)
    sections.append(_provenance([_command_of(run)]))
    return f"Run {run.folder.name}", f"{state}, {run.folder}", sections


def _changes_section(run: RunRecords) -> Section:
    head = ["measure", *(f"step {step}" for step in validations(run)), "difference"]
    table = table_with_head([head, *(one.cells for one in changes_of(run))])
    text = "± is half a 95 % interval, of the difference paired by question. * marks intervals that exclude zero."
    return Section(title="Before and after, on held-out questions", text=text, table=table)


def _episode_sections(run: RunRecords) -> list[Section]:
    records: list[RolloutRecord] = []
    for step in run.training_steps[-_EPISODE_STEPS:]:
        records += run.training(step)
    questions = questions_by_id(run)
    wanted = {
        "detected": (
            "Incorrect programs and the tests that detected them",
            "An x marks asserts that broke the program; the rest it passed. Asserts stand as the Test LLM wrote them; "
            "where the reference's answer is another one, the remark says which.",
        ),
        "undetected": ("Incorrect programs that no test they met broke", "The hidden tests break them."),
    }
    sections = []
    for outcome, (title, text) in wanted.items():
        chosen = pick_episodes(records, outcome=outcome, limit=_SHOWN_EPISODES)
        if chosen:
            views = [(record, questions.get(record.question), _sample_html(record)) for record in chosen]
            sections.append(Section(title=title, text=text, episodes=views))
    return sections


def _sample_html(record: RolloutRecord) -> str:
    text = html.escape("\n".join(program_lines(record, Paint(is_on=True))))
    # Each of the colours becomes a class named by its code; what a model wrote has no such codes, they are escaped.
    return re.sub(r"\x1b\[(\d+)m(.*?)\x1b\[0m", r'<span class="paint\1">\2</span>', text)


def _experiment_report(name: str, results: Results, target: Path, num_runs: int = 0) -> tuple[str, str, list[Section]]:
    summary = ExperimentSummary(results.runs)
    sections = [Section(title=table.title, text=table.note, table=table) for table in tables_of(summary)]
    write_whole(target / TABLES, tables_text(summary))
    taken = summary.measures()
    seeds = _seeds_text(summary)
    for file, caption, measures in (
        ("code_llm", "The Code LLM on held-out questions, and its reward in the last ten steps", HEADLINE_MEASURES),
        ("test_llm", "The Test LLM on recorded buggy programs, and in the last ten steps", _TESTER_MEASURES),
        ("forgetting", "Programs and questions solved once and failed later", _UNLEARNED),
    ):
        shown = [measure for measure in measures if measure in taken]
        if shown:
            draw = partial(figures.arm_bars, summary, shown, same_scale=measures == _UNLEARNED)
            pictures = _draw(target, file, f"{caption}; {seeds}", draw)
            sections.append(Section(title=caption, pictures=pictures))
    curves = Section(title="On the way")
    for file, by_seconds in (("curves_by_step", False), ("curves_by_seconds", True)):
        caption = f"Held-out pass@1 with 95 % intervals over {seeds}, by {'wall-clock' if by_seconds else 'step'}"
        curves.pictures += _draw(target, file, caption, partial(figures.arm_curves, summary, by_seconds=by_seconds))
    sections.append(curves)
    sections.append(_provenance(results.commands))
    total = sum(len(runs) for runs in summary.runs.values())
    lead = f"{counted(len(summary.runs), 'arm')}, {counted(total, 'finished run')}"
    return f"Experiment {name}", lead + (f" of {num_runs}" if num_runs else ""), sections


def _seeds_text(summary: ExperimentSummary) -> str:
    numbers = sorted({len(runs) for runs in summary.runs.values()})
    return counted(numbers[0], "seed") if len(numbers) == 1 else f"{numbers[0]} to {counted(numbers[-1], 'seed')}"


def _command_of(run: RunRecords) -> str:
    return portable(run.paths.commands() or f"(not recorded: {run.folder})")


def _provenance(commands: Sequence[str]) -> Section:
    return Section(title="Commands and versions", preformatted="\n\n".join(commands))
