"""Commands that put a recorded run to use again: score, harvest, validate."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..jobs.options import NUM_CORES, ResumedFile, Workers
from ..jobs.outputs import Report
from ..recorded.rollout_rows import COLUMNS
from .status import finish, resumable
from .tables import print_table

Run = Annotated[Path, Argument(help="run folder")]
SCORE_HELP = """Give rollouts on disk their rewards: extraction, judge and reward functions, to JSON lines.

SOURCE is a run folder, a file of its rollouts/, or a file of yours (JSON lines or parquet) with these columns:

{columns}

A run has its own settings and questions, so the plain command gives its rewards again; options say what differs.

`code-a1 score outputs/my-run --alpha 0.7 --output rescored.jsonl`

`code-a1 score rollouts.jsonl --questions train.parquet --output scored.jsonl`
"""


def score(
    source: Annotated[Path, Argument(help="run folder, or rollouts")],
    output: ResumedFile,
    questions: Annotated[list[Path] | None, Option(metavar="FILE", help="questions of your rows")] = None,
    alpha: Annotated[float | None, Option(help="weight of validity in the Test LLM's reward")] = None,
    adversarial: Annotated[str | None, Option(help="reading of the adversarial term: release, figure...")] = None,
    cases: Annotated[int | None, Option(min=1, help="K, the cases that a suite was asked for")] = None,
    allow_missing: Annotated[list[str] | None, Option(help="a protection that this kernel lacks")] = None,
    workers: Workers = NUM_CORES,
) -> None:
    from ..recorded.score import score as score_rollouts

    changes = {"alpha": alpha, "adversarial": adversarial}
    with resumable(output):
        report = score_rollouts(
            source,
            output=output,
            questions=questions or (),
            changes={name: value for name, value in changes.items() if value is not None},
            num_cases=cases,
            allow_missing=allow_missing or (),
            workers=workers,
        )
    finish(report)


score.__doc__ = SCORE_HELP.format(columns="\n".join(f"- {name}: {meaning}" for name, meaning in COLUMNS.items()))


def harvest(
    run: Run,
    output: ResumedFile,
    minimise: Annotated[bool, Option(help="keep as few tests as kill the same programs; else the best 32")] = True,
    workers: Workers = NUM_CORES,
) -> None:
    """Write a run's questions with the tests of its Test LLM as golden tests, as few as kill the same programs.

    Programs are mutants of the references (small mistakes, by cosmic-ray) and incorrect programs that the run recorded.

    `code-a1 harvest outputs/my-run --output tests.jsonl`, then `code-a1 cpu arm=static data.train_files=tests.jsonl`
    """
    from ..recorded.harvest import harvest as harvest_tests

    with resumable(output):
        report = harvest_tests(run, output=output, minimise=minimise, workers=workers)
    finish(report)


def validate(
    run: Run,
    output: Annotated[Path, Option(help="folder; responses in it are not sampled again")],
    step: Annotated[str, Option(help="latest, best, or a saved step")] = "latest",
) -> None:
    """Run a run's validation of a checkpoint again, and show its figures beside the figures of training.

    `code-a1 validate outputs/my-run --step 40 --output out/validation`
    """
    from ..recorded.validation import validate as validate_again

    with resumable(output):
        figures, num_different = validate_again(run, step=step, output=output)
    print_table(figures)
    finish(Report(text="", failure=f"{num_different} figures are not those of training" if num_different else ""))
