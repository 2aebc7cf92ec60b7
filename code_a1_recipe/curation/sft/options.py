"""The options of ``code-a1 data sft``, and the files that they name."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ...algorithm.prompts import PROMPT_PAIRS
from ...errors import InputError
from ...jobs import options as shared
from ..dataset_card import card_path

DEFAULT_CASES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SftOptions:
    """What to make demonstrations of, and which."""

    output: Annotated[Path, typer.Option(help="the demonstrations; must end in .parquet")]
    files: Annotated[tuple[Path, ...], typer.Argument(metavar="[FILE]...", help="questions")] = ()
    run: Annotated[
        Path | None, typer.Option(help="a run folder, or a file of its rollouts or of `code-a1 score` of them")
    ] = None
    questions: Annotated[
        tuple[Path, ...], typer.Option(metavar="FILE", help="of --run; default: the run's own; repeatable")
    ] = ()
    overwrite: shared.Overwrite = False
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    prompt: Annotated[
        str | None,
        typer.Option(
            callback=shared.one_of(tuple(sorted(PROMPT_PAIRS))),
            help="prompts.name of the run to come; default: chat_v2, or the run's",
        ),
    ] = None
    cases: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"asserts of a suite; default: {DEFAULT_CASES}, or the run's; fewer where tests are few"
        ),
    ] = None
    mutants: Annotated[int, typer.Option(min=0, help="mutants of each reference to show")] = 0
    only_breaking: Annotated[bool, typer.Option(help="leave out suites that do not break the program shown")] = False
    max_per_question: Annotated[int, typer.Option(min=1, help="demonstrations of a question")] = 8
    max_assert_chars: Annotated[int, typer.Option(min=1, help="longer asserts are not used")] = 400
    max_chars: Annotated[int, typer.Option(min=1, help="of a demonstration's messages together")] = 16_384
    val_frac: Annotated[
        float, typer.Option(callback=shared.within(0, 1, ends="[)"), help="of the questions, for validation")
    ] = 0.05
    seed: Annotated[int, typer.Option(help="of every choice")] = 0
    model: Annotated[str | None, typer.Option(help="that the printed command trains")] = None
    cpu: Annotated[bool, typer.Option(help="print a command for a machine without a GPU, for tiny models")] = False
    workers: shared.Workers = shared.NUM_CORES
    tier: shared.Tier = 0
    allow_missing: shared.AllowMissing = ()

    @property
    def num_cases(self) -> int:
        """K; a question with fewer right tests gets a prompt that asks for as many as it has."""
        return self.cases or DEFAULT_CASES

    @property
    def val_output(self) -> Path:
        return self.output.with_name(f"{self.output.stem}.val.parquet")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Whatever may be written, ``output`` first."""
        return (self.output, card_path(self.output), *([self.val_output] if self.val_frac else []))

    @property
    def work_output(self) -> Path:
        """What is done, for a repeated command."""
        return self.output.with_name(f"{self.output.name}.judged.jsonl")

    def check(self) -> None:
        """Raises InputError."""
        if bool(self.files) == (self.run is not None):
            raise InputError(
                "give question files, or --run RUN, and not both; `code-a1 data sft --help` says what each makes"
            )
        if self.output.suffix != ".parquet":
            raise InputError(f"--output must end in .parquet, got {self.output}; verl's SFT trainer reads nothing else")
        if self.output.is_dir():
            raise InputError(f"--output {self.output} is a folder; name the file to write")
        if self.run is not None and self.mutants:
            raise InputError(f"--mutants {self.mutants} makes programs for question files; leave it out with --run")
        if self.run is not None and self.run.is_dir() and self.cases is not None:
            raise InputError(f"--cases {self.cases}: a run folder says how many asserts its suites have; leave it out")
        if self.run is None and self.questions:
            raise InputError("--questions says what the rollouts of --run name; give the files without it instead")
        if self.run is not None and not self.run.exists():
            raise InputError(f"--run {self.run}: no such file or folder (relative paths start at {Path.cwd()})")
