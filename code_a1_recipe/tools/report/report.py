"""``code-a1 report RUN``: writes one self-contained page and its pictures, even before the run has ended."""

import base64
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure
from rich.text import Text

from ...algorithm.question import Question
from ...files import portable, write_whole
from ...runs.reader import RunRecords
from ...runs.rollout_record import RolloutRecord
from ...stats.tables import Table
from . import figures
from .measures import change_table
from .question_view import pick_episodes, program_lines, questions_by_id

REPORT_FOLDER, PAGE = "report", "index.html"
PROVENANCE = "Commands and versions"
"""Title of a page's last section."""
_SHOWN_EPISODES = 6
_EPISODE_STEPS = 12
"""Sample episodes are picked from at most this many of the last training steps."""


@dataclass(kw_only=True)
class Section:
    """One heading of the page with its content."""

    title: str
    text: str = ""
    table: Table | None = None
    pictures: list[tuple[str, str, str]] = field(default_factory=list)
    """File name, caption, and content of the file as base64."""
    episodes: list[tuple[RolloutRecord, Question | None, str]] = field(default_factory=list)
    """A program, its question, and the text that ``code-a1 data inspect`` shows for it."""
    preformatted: str = ""


def write_report(run: Path) -> Path:
    """Write the report of a run, with its pictures, into the folder ``report`` of the run. Returns the page's path.

    Raises:
        InputError: the folder holds no run, or a run without a finished step.
        OSError: the report cannot be written.
    """
    folder = Path(os.path.abspath(run))  # `resolve` would replace a link, but the page shows the link's own name
    target = folder / REPORT_FOLDER
    records = RunRecords.open(folder)
    num_done = max(records.steps, default=0)
    num_steps = records.config["trainer"].get("total_training_steps") or num_done
    sections = []
    if changes := change_table(records):
        sections.append(Section(title="Before and after, on held-out questions", preformatted=changes))
    for name, (caption, panels) in figures.RUN_FIGURES.items():
        pictures = draw_picture(target, name, caption, partial(figures.draw_panels, records, panels))
        if pictures:
            sections.append(Section(title=caption, pictures=pictures))
    sections += _episode_sections(records)
    sections.append(Section(title=PROVENANCE, preformatted=command_of(records)))
    return write_page(target, f"Run {folder.name}", f"step {num_done} of {num_steps}, {folder}", sections)


def write_page(target: Path, title: str, lead: str, sections: Sequence[Section]) -> Path:
    """Write ``index.html`` into a folder. Returns its path."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    template = jinja2.Environment(loader=loader, autoescape=True).get_template("page.html.jinja")
    page = template.render(title=title, lead=lead, sections=sections)
    write_whole(target / PAGE, page.encode("utf-8", "replace"))  # models write lone surrogates
    return target / PAGE


def draw_picture(
    folder: Path,
    name: str,
    caption: str,
    draw: Callable[[], Figure | None],
) -> list[tuple[str, str, str]]:
    """Draw ``<name>.png`` in the report's style, and save it in a folder. Returns a list for ``Section.pictures``.

    The list is empty if ``draw`` returns no figure.
    """
    with mpl.rc_context(figures.STYLE):
        figure = draw()
        if figure is None:
            return []
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    write_whole(folder / f"{name}.png", buffer.getvalue())
    return [(f"{name}.png", caption, base64.b64encode(buffer.getvalue()).decode())]


def _episode_sections(run: RunRecords) -> list[Section]:
    records = []
    for step in run.training_steps[-_EPISODE_STEPS:]:
        records += run.training(step)
    questions = questions_by_id(run)
    wanted = {
        "detected": (
            "Incorrect programs and the tests that detected them",
            "An x marks the asserts that broke the program; it passed all others. Each assert is shown as the Test LLM "
            "wrote it. If its expected output is incorrect, the remark gives the reference's return value.",
        ),
        "undetected": (
            "Incorrect programs that no test of their reward broke",
            "Only the hidden tests break these programs.",
        ),
    }
    sections = []
    for outcome, (title, text) in wanted.items():
        section = Section(title=title, text=text)
        for record in pick_episodes(records, outcome=outcome, limit=_SHOWN_EPISODES):
            view = Text.from_ansi("\n".join(program_lines(record))).plain
            section.episodes.append((record, questions.get(record.question), view))
        if section.episodes:
            sections.append(section)
    return sections


def command_of(run: RunRecords) -> str:
    """List the run's commands and versions. Paths below the working folder and the home folder are shortened."""
    return portable(run.paths.commands() or f"(not recorded: {run.folder})")
