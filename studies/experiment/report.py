"""The report of an experiment: one self-contained page with tables and curves of its arms, also while it goes on."""

import os
from functools import partial
from pathlib import Path

from code_a1_recipe.files import write_whole
from code_a1_recipe.stats.tables import counted
from code_a1_recipe.tools.report.report import PROVENANCE, REPORT_FOLDER, Section, draw_picture, write_page

from .figures import arm_curves
from .results import RESULTS_FILE, load_results, measure_experiment, save_results
from .summary import ExperimentSummary, tables_of

TABLES = "tables.md"
CURVES = {"curves_by_step": "step", "curves_by_seconds": "wall-clock"}


def write_report(source: Path) -> tuple[Path, str]:
    """Write the report of an experiment, from its folder or its ``results.json``; returns the page, and the tables.

    It goes into a folder ``report`` of the experiment, with ``results.json``, or beside that file; with it the curves
    and the tables as Markdown.

    Raises:
        InputError: there is nothing to report on.
        OSError: it cannot be written.
    """
    source = Path(os.path.abspath(source))  # not resolved: a link keeps its name
    if source.is_file():
        name, target, results = source.parent.name, source.parent, load_results(source)
    else:
        name, target, results = source.name, source / REPORT_FOLDER, measure_experiment(source)
        save_results(results, target / RESULTS_FILE)
    summary = ExperimentSummary(results.runs)
    tables = tables_of(summary)
    text = "\n".join(table.markdown() for table in tables)
    write_whole(target / TABLES, text)
    sections = [Section(title=table.title, text=table.note, table=table) for table in tables]
    curves = Section(title="On the way")
    for file, axis in CURVES.items():
        caption = f"Held-out pass@1 with 95 % intervals over seeds, by {axis}"
        draw = partial(arm_curves, summary, by_seconds=axis == "wall-clock")
        curves.pictures += draw_picture(target, file, caption, draw)
    commands = "\n\n".join(results.commands)
    sections += [curves, Section(title=PROVENANCE, preformatted=commands)]
    num_runs = sum(len(runs) for runs in summary.runs.values())
    lead = f"{counted(len(summary.runs), 'arm')}, {counted(num_runs, 'finished run')}"
    page = write_page(target, f"Experiment {name}", lead, sections)
    return page, text
