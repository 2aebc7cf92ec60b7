"""The report of an experiment: one self-contained page with tables and pictures of its arms, also while it goes on."""

import json
import math
import os
from functools import partial
from pathlib import Path

from code_a1_recipe.analysis.report import REPORT_FOLDER, Section, command_of, draw_picture, provenance, write_page
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import write_whole
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.stats.tables import counted

from . import figures
from .grid import EXPERIMENT_FILE, FINISHED, Experiment
from .results import RESULTS_FILE, Results, RunResult, load_results, result_of, save_results
from .summary import HEADLINE_MEASURES, ExperimentSummary, tables_of, tables_text

TABLES = "tables.md"
_TESTER_MEASURES = (
    "valid",
    "kill_per_case",
    "detection_rate",
    "distinct_call_rate",
    "false_negative_rate",
    "false_negative_rate_without_replay",
)
_UNLEARNED = ("forgotten", "fails_next_visit", "fails_same_visit")


def write_report(source: Path) -> tuple[Path, str]:
    """Write the report of an experiment, from its folder or its ``results.json``; returns the page, and the tables.

    It goes into a folder ``report`` of the experiment, with ``results.json``, or beside that file; with it the pictures
    and the tables as Markdown.

    Raises:
        InputError: there is nothing to report on.
        OSError: it cannot be written.
    """
    source = Path(os.path.abspath(source))  # not resolved: a link keeps its name
    if source.is_file():
        target = source.parent
        title, lead, sections = _experiment_report(target.name, load_results(source), target)
    else:
        target, results = source / REPORT_FOLDER, open_experiment(source)
        num_runs = len(_listed(source) or ())
        title, lead, sections = _experiment_report(source.name, results, target, num_runs)
        save_results(results, target / RESULTS_FILE)
    page = write_page(target, title, lead, sections)
    return page, (target / TABLES).read_text(encoding="utf-8")


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
        commands.setdefault(arm, command_of(run))
    if not runs:
        raise InputError(
            f"{folder} holds no finished run of an experiment (<arm>/seed<n>/{FINISHED}); "
            "for the report of a single run try `code-a1 report`"
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
            f"{finished} cannot be read: {error!r}; remove it, and `python -m examples.experiment run` makes the run "
            "again"
        ) from error


def _listed(folder: Path) -> list[tuple[str, int]] | None:
    """Arms and seeds of the experiment's file, in its order; None where it is not there."""
    try:
        experiment = Experiment.load(folder / EXPERIMENT_FILE)
    except InputError:
        return None
    return [(arm.name, seed) for arm in experiment.arms for seed in experiment.seeds]


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
            pictures = draw_picture(target, file, f"{caption}; {seeds}", draw)
            sections.append(Section(title=caption, pictures=pictures))
    curves = Section(title="On the way")
    for file, by_seconds in (("curves_by_step", False), ("curves_by_seconds", True)):
        caption = f"Held-out pass@1 with 95 % intervals over {seeds}, by {'wall-clock' if by_seconds else 'step'}"
        curves.pictures += draw_picture(
            target, file, caption, partial(figures.arm_curves, summary, by_seconds=by_seconds)
        )
    sections.append(curves)
    sections.append(provenance(results.commands))
    total = sum(len(runs) for runs in summary.runs.values())
    lead = f"{counted(len(summary.runs), 'arm')}, {counted(total, 'finished run')}"
    return f"Experiment {name}", lead + (f" of {num_runs}" if num_runs else ""), sections


def _seeds_text(summary: ExperimentSummary) -> str:
    numbers = sorted({len(runs) for runs in summary.runs.values()})
    return counted(numbers[0], "seed") if len(numbers) == 1 else f"{numbers[0]} to {counted(numbers[-1], 'seed')}"
