"""Options of ``eval code`` and ``eval test``; ``select`` shares most of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ...algorithm.question import Question
from ...data.reader import question_table
from ...errors import InputError
from ...jobs import options as shared
from ...jobs.outputs import check_folder
from .models.options import ModelOptions

OWN_FILES = ("responses.jsonl", "verdicts.jsonl", "choices.jsonl", "models")
"""Every folder that these commands write holds at least one of these files."""


@dataclass(frozen=True, kw_only=True)
class SamplingEvalOptions:
    """Options of every command that samples responses to problems and judges them."""

    files: Annotated[Sequence[Path], Argument(metavar="FILE...", help="problems; any file that training reads")]
    output: Annotated[Path, Option(help="folder of responses, verdicts and tables; a repeated command resumes")]
    model: ModelOptions = field(default_factory=ModelOptions)
    prompt: Annotated[
        str,
        Option(
            help="pair of templates (chat_v2, micro); of eval also a .txt template with {{prompt}}, of eval code "
            "evalplus (its official prompt)",
            show_default="chat_v2, of a run its own",
        ),
    ] = ""
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    limit: Annotated[int | None, Option(min=1, help="only the first so many problems")] = None
    seed: shared.Seed = 0
    workers: shared.Workers = shared.NUM_CORES
    sample_only: Annotated[bool, Option(help="store responses and stop, for instance on a GPU node")] = False
    judge_only: Annotated[bool, Option(help="judge stored responses; no model is started")] = False

    def __post_init__(self) -> None:
        if self.sample_only and self.judge_only:
            raise InputError("--sample-only and --judge-only exclude each other; leave both out to do both")
        check_folder(self.output, own=OWN_FILES)

    def check_own(self, option: str, *, num_samples: int = 1) -> None:
        """Refuse options of sampling beside ``option``, which measures programs or tests of the files themselves."""
        if self.model.is_named or self.sample_only or num_samples > 1:
            raise InputError(
                f"{option} takes what the files have themselves; leave the model out, and --samples and --sample-only"
            )

    def questions(self) -> list[Question]:
        """Read the first ``limit`` questions of all files. Raises InputError if a file cannot be read."""
        table = question_table(self.files, adapter=self.adapter, columns=self.columns)
        return list(table.values())[: self.limit]


@dataclass(frozen=True, kw_only=True)
class CodeEvalOptions(SamplingEvalOptions):
    """Options of ``eval code``."""

    samples: Annotated[int, Option(min=1, help="programs a problem; the paper: 32")] = 1
    references: Annotated[bool, Option(help="no model: judge the files' own references; lists what fails")] = False
    split: Annotated[
        str, Option(callback=shared.listed_in(("complete", "instruct")), help="BigCodeBench: which prompts")
    ] = "complete"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.references:
            self.check_own("--references", num_samples=self.samples)


@dataclass(frozen=True, kw_only=True)
class SuiteEvalOptions(SamplingEvalOptions):
    """Options of ``eval test``."""

    tests: Annotated[int, Option(min=1, help="asserts a suite")] = 5
    own_tests: Annotated[bool, Option(help="no model: measure the questions' own tests, as a baseline")] = False
    max_mutants: Annotated[int, Option(min=0, help="a function; 0: no mutants")] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_tests:
            self.check_own("--own-tests")
