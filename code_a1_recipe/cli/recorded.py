"""Commands that use a recorded run again: score, harvest, validate."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..errors import CodeA1Error
from ..jobs.options import NUM_CORES, ResumedFile, Workers
from ..tools.recorded.options import ScoreOptions
from ..tools.recorded.rollout_rows import COLUMNS
from .declared import with_options
from .status import finish, resumable, resume
from .tables import print_table

Run = Annotated[Path, Argument(help="run folder")]
SCORE_HELP = """Compute the rewards of recorded rollouts: extract, judge, apply the reward functions, write JSON lines.

SOURCE is a run folder, a file of its rollouts/, or a file of yours (JSON lines or parquet) with these columns:

{columns}

Settings and questions come from the run. So the command without options computes the run's rewards again, and an
option changes one setting.

`code-a1 score outputs/my-run --alpha 0.7 --output rescored.jsonl`

`code-a1 score rollouts.jsonl --questions train.parquet --output scored.jsonl`
"""


@with_options
def score(options: ScoreOptions) -> None:
    from ..tools.recorded.score import score as score_rollouts

    resume(options.output, score_rollouts, options)


score.__doc__ = SCORE_HELP.format(columns="\n".join(f"- {name}: {meaning}" for name, meaning in COLUMNS.items()))


def harvest(
    run: Run,
    output: ResumedFile,
    workers: Workers = NUM_CORES,
) -> None:
    """Write a run's questions, with golden tests that its Test LLM wrote.

    The golden tests are few, but kill the same programs as all tests. The killed programs are mutants of the references
    (small mistakes, by cosmic-ray) and incorrect programs of the run.

    `code-a1 harvest outputs/my-run --output tests.jsonl`, then `code-a1 cpu arm=static data.train_files=tests.jsonl`
    """
    from ..tools.recorded.harvest import harvest as harvest_tests

    with resumable(output):
        report = harvest_tests(run, output=output, workers=workers)
    finish(report)


def validate(
    run: Run,
    output: Annotated[Path, Option(help="folder of the results; a repeated command resumes from it")],
    step: Annotated[str, Option(help="latest, best, or a saved step")] = "latest",
) -> None:
    """Repeat a run's validation of a checkpoint, and show the new figures beside those of training.

    `code-a1 validate outputs/my-run --step 40 --output out/validation`
    """
    from ..tools.recorded.validation import validate as validate_again

    with resumable(output):
        figures, num_different = validate_again(run, step=step, output=output)
    print_table(figures)
    if num_different:
        raise CodeA1Error(f"{num_different} figures differ from those of training")
