"""Options of the commands that sample a model and judge its responses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..files import file_fingerprint
from ..jobs import options as shared
from ..jobs.outputs import check_folder
from .models.options import ModelOptions

OWN_FILES = ("responses.jsonl", "verdicts.jsonl", "choices.jsonl", "models", "mutants")
"""Every folder that these commands write has one of these files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingEvalOptions:
    """The options that these commands share."""

    files: Annotated[Sequence[Path], typer.Argument(metavar="FILE...", help="problems; any file that training reads")]
    output: shared.ResumedFolder
    model: ModelOptions = field(default_factory=ModelOptions)
    prompt: Annotated[
        str | None,
        typer.Option(
            help="pair of templates (chat_v2, micro), or of eval a .txt template",
            show_default="chat_v2, of a run its own",
        ),
    ] = None
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    limit: shared.Limit = None
    seed: shared.Seed = 0
    workers: shared.Workers = shared.NUM_CORES
    sample_only: Annotated[bool, typer.Option(help="store responses and stop, for instance on a GPU node")] = False
    judge_only: shared.JudgeOnly = False

    def __post_init__(self) -> None:
        if self.sample_only and self.judge_only:
            raise InputError("--sample-only and --judge-only exclude each other; leave both out to do both")
        check_folder(self.output, own=OWN_FILES)

    def check_sizes(self, ks: Sequence[int], *, most: str, repeats: str, own: str) -> None:
        """Refuse a k above the option ``most``, and options of sampled responses beside the files' ``own``."""
        if too_many := [k for k in ks if k > getattr(self, most)]:
            raise InputError(f"--k {too_many[0]} needs at least as many --{most}, got {getattr(self, most)}")
        name = own.replace("_", "-")
        if getattr(self, own) and self.model.is_named:
            raise InputError(f"--{name} takes what the files have themselves; leave the model out")
        if getattr(self, own) and (getattr(self, repeats) > 1 or self.sample_only):
            raise InputError(f"--{name} takes what a question has itself; leave --{repeats} and --sample-only out")

    def read_with(self) -> dict[str, Any]:
        """The files of the problems and how they are read; part of the settings of every verdict.

        Raises:
            InputError: a file is not there.
        """
        return {
            "files": [file_fingerprint(path) for path in self.files],
            "adapter": self.adapter,
            "columns": dict(sorted(self.columns.items())),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeEvalOptions(SamplingEvalOptions):
    """Options of ``eval code``."""

    prompt: Annotated[
        str | None,
        typer.Option(
            help="chat_v2, micro (of the tiny models), evalplus (its official prompt), file (chat messages of the "
            "file's column 'prompt'), or a .txt template with {{prompt}}",
            show_default="chat_v2, of a run its own",
        ),
    ] = None
    samples: Annotated[int, typer.Option(min=1, help="programs a problem; the paper: 32")] = 1
    k: Annotated[
        Sequence[int], typer.Option(min=1, help="repeatable", show_default="1, 5, 10, as far as --samples goes")
    ] = ()
    references: Annotated[bool, typer.Option(help="no model: judge the files' own references; lists what fails")] = (
        False
    )
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="LiveCodeBench: only contests of this day and later")
    ] = None
    until: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="LiveCodeBench: only contests of this day and earlier")
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            callback=shared.one_of(("complete", "instruct")),
            help="BigCodeBench: which prompts",
            show_default="complete",
        ),
    ] = None

    def __post_init__(self) -> None:
        SamplingEvalOptions.__post_init__(self)
        self.check_sizes(self.k, most="samples", repeats="samples", own="references")

    @property
    def ks(self) -> list[int]:
        """The k of pass@k, ascending."""
        return sorted(self.k) or [k for k in (1, 5, 10) if k <= self.samples]

    def judged_with(self) -> dict[str, Any]:
        """The settings that decide verdicts; a file of verdicts has one set of them."""
        return self.read_with() | ({"references": True} if self.references else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEvalOptions(SamplingEvalOptions):
    """Options of ``eval test``."""

    tests: Annotated[int, typer.Option(min=1, help="asserts a suite")] = 5
    suites: Annotated[int, typer.Option(min=1, help="responses a function; figures are their mean")] = 1
    k: Annotated[
        Sequence[int], typer.Option(min=1, help="repeatable", show_default="1, 2, 5, as far as --tests goes")
    ] = ()
    own_tests: Annotated[bool, typer.Option(help="no model: measure the questions' own tests, as a baseline")] = False
    max_mutants: Annotated[int, typer.Option(help="a function; 0: no mutants")] = 50
    buggy_programs: Annotated[bool, typer.Option(help="also tests for each question's buggy programs: bugs_killed")] = (
        False
    )

    def __post_init__(self) -> None:
        SamplingEvalOptions.__post_init__(self)
        if self.max_mutants < 0:
            raise InputError(f"--max-mutants must be at least 0, got {self.max_mutants}")
        self.check_sizes(self.k, most="tests", repeats="suites", own="own_tests")

    @property
    def ks(self) -> list[int]:
        """The numbers of first tests, ascending."""
        return sorted(self.k) or [k for k in (1, 2, 5) if k <= self.tests]

    def judged_with(self) -> dict[str, Any]:
        """The settings that decide measurements."""
        return {**self.read_with(), "max_mutants": self.max_mutants}
