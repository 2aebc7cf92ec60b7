"""The options of ``code-a1 score``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ...jobs import options as shared


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """The rollouts, and the settings of their rewards.

    None stands for the run's setting if ``source`` lies in a run, and otherwise for the paper's setting.
    """

    source: Annotated[Path, Argument(help="folder of a run, or a file of rollouts")]
    output: shared.ResumedFile
    questions: Annotated[
        tuple[Path, ...],
        Option(metavar="FILE", help="file of the questions that your rows name"),
    ] = ()
    alpha: Annotated[
        float | None,
        Option(help="weight of validity in the Test LLM's reward"),
    ] = None
    adversarial: Annotated[
        str | None,
        Option(help="formula of the adversarial term: release, figure..."),
    ] = None
    cases: Annotated[
        int | None,
        Option(min=1, help="K, the number of cases that a suite was asked for"),
    ] = None
    allow_missing: shared.AllowMissing = ()
    workers: shared.Workers = shared.NUM_CORES
