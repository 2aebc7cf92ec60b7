"""The options of ``code-a1 select``."""

from dataclasses import dataclass, field
from typing import Annotated

from typer import Option

from ...jobs.options import listed_in
from ..evaluate.models.options import ModelOptions
from ..evaluate.options import SamplingEvalOptions
from .selection_rules import RULES


@dataclass(frozen=True, kw_only=True)
class SelectOptions(SamplingEvalOptions):
    """The options of ``select``. The field ``model`` is the Code LLM, or a run that has both LLMs."""

    test_model: ModelOptions = field(default_factory=ModelOptions)
    """The Test LLM, which may be left out if ``model`` is a run with both LLMs."""
    samples: Annotated[int, Option(min=1, help="programs per question")] = 16
    suites: Annotated[int, Option(min=1, help="suites per question")] = 16
    tests: Annotated[
        int | None,
        Option(
            min=1,
            help="asserts per suite",
            show_default="8; for a run, the run's own",
        ),
    ] = None
    rule: Annotated[
        str, Option(callback=listed_in(RULES), help=f"rule whose choices are written: {', '.join(RULES)}")
    ] = "codet"
