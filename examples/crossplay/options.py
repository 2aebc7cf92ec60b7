"""The options of a cross-play."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from code_a1_recipe.jobs import options as shared
from code_a1_recipe.jobs.outputs import check_folder

from .matches import WINS


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossPlayOptions:
    """Whose checkpoints meet, on what, and who wins."""

    run: Annotated[Path, typer.Argument(help="run folder; a run with one model (self-play) meets itself")]
    output: shared.ResumedFolder
    steps: Annotated[
        tuple[str, ...],
        typer.Option(metavar="STEP", help="0 (the base models) or a saved step; repeatable; default: all"),
    ] = ()
    questions: Annotated[int | None, typer.Option(min=1, help="only the first so many held-out questions")] = None
    candidates: Annotated[int, typer.Option(min=1, help="programs a question and step")] = 4
    suites: Annotated[int, typer.Option(min=1, help="suites a program and Test LLM step")] = 1
    win: Annotated[
        str,
        typer.Option(
            callback=shared.one_of(tuple(WINS)),
            help="the Test LLM wins by any valid case that breaks the program (broke), or only by one whose expected "
            "output is right as written (detected); matches are not judged anew",
        ),
    ] = "broke"
    judge_only: shared.JudgeOnly = False

    def __post_init__(self) -> None:
        check_folder(self.output, own=("responses.jsonl", "matches.jsonl", "models"))
