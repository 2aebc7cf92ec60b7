"""Writes the report of an experiment: one self-contained page with tables and curves of its finished runs."""

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
    """Write the page, its figures and its tables.

    Args:
        source: the folder of an experiment, or a ``results.json``. For a folder, the report goes into its folder
            ``report``, together with a new ``results.json``. For a file, the report goes beside the file.

    Returns:
        The path of the page, and the tables as Markdown.

    Raises:
        InputError: the source has no finished run.
        OSError: the report cannot be written.
    """
    source = Path(os.path.abspath(source))  # `resolve` would replace a link, but the page shows the link's own name
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
    curves = Section(title="Progress in training")
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
