"""``python -m studies.card``: the experiment on a real model (``studies/card_results/README.md``)."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from code_a1_recipe.files import json_lines, write_whole
from studies.command_line import end_as_by_ctrl_c, run_study, study_app
from studies.experiment.grid import Experiment

from . import questions as question_files
from .slices import RESULTS, Machine, commit_of, pack_questions, prepared, run_slices
from .tables import write_tables

app = study_app()
STUDY = Path(__file__).parents[1]
EXPERIMENT = STUDY / "card.yaml"
KEPT = STUDY / "card_results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    return run_study(app, arguments, name="card")


@app.command()
def sample(
    leetcode: Annotated[Path, typer.Argument(exists=True, help="LeetCodeDataset's training file, .jsonl or .jsonl.gz")],
    output: Annotated[Path, typer.Option(help="JSONL file to write")],
) -> None:
    """Draw easy and medium problems of LeetCodeDataset."""
    rows = question_files.leetcode_sample(question_files.read_jsonl(leetcode))
    write_whole(output, json_lines(rows))
    typer.echo(f"{output}: {len(rows)} problems")


@app.command()
def draw(
    mbpp: Annotated[Path, typer.Argument(exists=True, help="MBPP, prepared against HumanEval+ and MBPP+")],
    leetcode: Annotated[Path, typer.Argument(exists=True, help="the sample of LeetCodeDataset, prepared the same way")],
    output: Annotated[Path, typer.Option(help="folder of the questions")],
) -> None:
    """Divide questions into those that are held out and those that the model is asked."""
    typer.echo(question_files.draw(mbpp, leetcode, output))


@app.command()
def write(
    files: Annotated[list[Path], typer.Argument(exists=True, help="MBPP and LeetCodeDataset, prepared as for `draw`")],
    output: Annotated[Path, typer.Option(help="folder of the questions")],
    kept: Annotated[Path, typer.Option(help="folder of the ids with their counts")] = KEPT,
) -> None:
    """Write the questions that `choose` chose, without asking the model again."""
    rows = [row for file in files for row in pd.read_parquet(file).to_dict("records")]
    question_files.write(rows, kept / question_files.CHOICE, output)


@app.command()
def choose(
    folder: Annotated[Path, typer.Argument(help="folder of `draw`")],
    asked: Annotated[list[Path], typer.Option(help="output of `code-a1 eval code` for asked questions; repeatable")],
    tried: Annotated[Path, typer.Option(help="output of `code-a1 eval code` for the held-out questions")],
    kept: Annotated[Path, typer.Option(help="folder for the ids with their counts")] = KEPT,
) -> None:
    """Keep the questions that the model solves sometimes, and give the held-out ones buggy programs."""
    typer.echo(question_files.choose(folder, asked, tried, kept))


@app.command()
def pack(
    questions: Annotated[Path, typer.Argument(help="folder of `choose`, with benchmark files in code/ and test/")],
    output: Annotated[Path, typer.Option(help="questions.tar.xz, which studies/card/offline.sh reads")],
) -> None:
    """Pack the questions and the commit for a machine without network."""
    typer.echo(pack_questions(questions, output))


@app.command()
def run(
    questions: Annotated[Path, typer.Option(help="folder of `choose`, with benchmark files in code/ and test/")],
    output: Annotated[Path, typer.Option(help="folder for results.jsonl, logs and packed rollouts")],
    work: Annotated[Path, typer.Option(help="folder for the runs with their checkpoints; 20 GB")],
    minutes: Annotated[float, typer.Option(min=0.1, help="after this time the running run is cut")],
    model: Annotated[
        str | None, typer.Option(help="folder of the base model; without it, the experiment's own")
    ] = None,
    experiment: Annotated[Path, typer.Option(help="YAML file of the arms; another one for a rehearsal")] = EXPERIMENT,
    results: Annotated[Path, typer.Option(help="results so far, which decide what is next")] = KEPT / RESULTS,
) -> None:
    """Run the next slices until the time is over."""
    deadline = time.monotonic() + 60 * minutes
    end_as_by_ctrl_c()
    output.mkdir(parents=True, exist_ok=True)
    if not (output / RESULTS).is_file() and results.is_file():
        write_whole(output / RESULTS, results.read_bytes())
    grid = prepared(Experiment.load(experiment), work.absolute(), questions.absolute(), model)
    machine = Machine(
        experiment=grid,
        questions=questions.absolute(),
        output=output.absolute(),
        commit=commit_of(questions),
        deadline=deadline,
    )
    typer.echo(run_slices(machine))
    typer.echo(write_tables(machine.results, grid.seeds))


@app.command()
def preset(
    output: Annotated[Path, typer.Option(help="folder for the table and the log")],
    work: Annotated[Path, typer.Option(help="folder for the models and the run")],
    rehearsal: Annotated[bool, typer.Option("--rehearsal", help="small models with the preset cpu")] = False,
) -> None:
    """Train three steps of qwen2.5-coder-1.5b-1gpu as shipped, on random weights of its shape."""
    from .preset import ON_A_CARD, REHEARSAL, run_preset

    typer.echo(run_preset(REHEARSAL if rehearsal else ON_A_CARD, work.absolute(), output.absolute()))


@app.command()
def table(
    results: Annotated[Path, typer.Argument(help="the results file")] = KEPT / RESULTS,
    experiment: Annotated[Path, typer.Option(help="YAML file of the arms")] = EXPERIMENT,
) -> None:
    """Print the tables, and draw the figure beside the results file."""
    typer.echo(write_tables(results, Experiment.load(experiment).seeds))


if __name__ == "__main__":
    sys.exit(main())
