"""The options of ``code-a1 score``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ...jobs import options as shared


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """The rollouts and how they are rewarded. If ``source`` lies in a run, None stands for the run's own value."""

    source: Annotated[Path, Argument(help="run folder, or rollouts")]
    output: shared.ResumedFile
    questions: Annotated[tuple[Path, ...], Option(metavar="FILE", help="questions of your rows")] = ()
    alpha: Annotated[float | None, Option(help="weight of validity in the Test LLM's reward")] = None
    adversarial: Annotated[str | None, Option(help="reading of the adversarial term: release, figure...")] = None
    cases: Annotated[int | None, Option(min=1, help="K, the cases that a suite was asked for")] = None
    allow_missing: shared.AllowMissing = ()
    workers: shared.Workers = shared.NUM_CORES
