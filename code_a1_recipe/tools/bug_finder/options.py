"""The options of ``code-a1 attack``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ...errors import InputError
from ...jobs import options as shared
from ..evaluate.models.options import ModelOptions


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """The options of ``attack``: the file, its reference, and the source of the tests."""

    solution: Annotated[
        Path,
        Argument(metavar="FILE", help="the Python file to test"),
    ]
    reference: Annotated[
        Path | None,
        Option(help="a correct program; its answers are the expected ones"),
    ] = None
    question: Annotated[
        Path | None,
        Option(help="a text file with the problem, for the Test LLM"),
    ] = None
    suites: Annotated[
        tuple[Path, ...],
        Option(metavar="FILE", help="a file with asserts, in place of a Test LLM; repeatable"),
    ] = ()
    num_suites: Annotated[int, Option(min=1, help="number of suites to sample from the Test LLM")] = 16
    seed: shared.Seed = 0
    output: Annotated[
        Path | None,
        Option(help="the pytest file to write", show_default="test_FILE.py"),
    ] = None
    tier: shared.Tier = 0
    allow_missing: shared.AllowMissing = ()
    model: ModelOptions = field(default_factory=ModelOptions)
    """The Test LLM."""

    def __post_init__(self) -> None:
        if self.suites and self.model.is_named:
            raise InputError("name either --suites or a Test LLM (--model, --endpoint), not both")
