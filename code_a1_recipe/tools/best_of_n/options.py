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
    """The options of ``select``. ``model`` is the Code LLM, or a run that has both LLMs."""

    test_model: ModelOptions = field(default_factory=ModelOptions)
    """The Test LLM. It may stay unnamed if ``model`` is a run that has both."""
    samples: Annotated[int, Option(min=1, help="programs a question")] = 16
    suites: Annotated[int, Option(min=1, help="suites a question")] = 16
    tests: Annotated[
        int | None,
        Option(
            min=1,
            help="asserts a suite",
            show_default="8, of a run its own",
        ),
    ] = None
    rule: Annotated[str, Option(callback=listed_in(RULES), help=f"whose choice is written: {', '.join(RULES)}")] = (
        "codet"
    )
