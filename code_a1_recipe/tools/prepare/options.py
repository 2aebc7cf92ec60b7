"""The options of ``code-a1 data prepare`` and ``data sft``, and the files that they name."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from sandbox import Limits

from ...algorithm.prompts import PROMPT_PAIRS
from ...errors import InputError
from ...jobs import options as shared
from ...jobs.confinement import Confinement
from ...jobs.jsonl_store import files_of
from ...jobs.outputs import check_outputs


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The options that ``data prepare`` and ``data sft`` share, and the files beside ``--output``."""

    output: Annotated[Path, Option(help="file of the questions or demonstrations; must end in .parquet")]
    overwrite: shared.Overwrite = False
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    seed: shared.Seed = 0
    workers: shared.Workers = shared.NUM_CORES
    tier: shared.Tier = 0
    allow_missing: shared.AllowMissing = ()

    @property
    def card_output(self) -> Path:
        return self.beside(".card.md")

    @property
    def work_output(self) -> Path:
        """The file of judgements, from which a repeated command resumes."""
        return self.beside(".judged.jsonl")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """All files that may be written, ``output`` first."""
        return (self.output, self.card_output)

    def beside(self, ending: str) -> Path:
        """Return the path of the output with this ending added."""
        return self.output.with_name(f"{self.output.name}{ending}")

    def check(self, inputs: Iterable[Path]) -> None:
        """Raise InputError if ``output`` does not name a parquet file, or if writing it would destroy a file."""
        if not self.output.name.endswith(".parquet") or self.output.is_dir():
            raise InputError(f"--output {self.output}: must end in .parquet and be no folder; name a file")
        work_files = files_of(self.work_output)
        check_outputs(self.outputs, inputs=inputs, overwrite=self.overwrite, work_files=work_files)


@dataclass(frozen=True, kw_only=True)
class PrepareOptions(OutputOptions):
    """The options of ``data prepare``."""

    inputs: Annotated[
        tuple[str, ...],
        Argument(metavar="INPUT...", help="files, or ids of data sets on the hub"),
    ]
    against: Annotated[
        tuple[str, ...],
        Option(metavar="SET", help="evaluation set whose questions no row may repeat; repeatable"),
    ] = ()
    against_columns: Annotated[
        shared.Columns,
        Option(metavar="NAME=COLUMN", help="columns of the sets of --against; prompt=COLUMN is enough"),
    ] = field(default_factory=dict)
    limit: Annotated[
        int | None,
        Option(min=1, help="read only the first rows of each INPUT, for a trial"),
    ] = None
    min_tests: Annotated[
        int,
        Option(min=0, help="least number of usable tests of a row; 0 keeps rows without tests"),
    ] = 1
    golden: Annotated[
        int,
        Option(min=0, help="number of first tests of a row that become golden; arm=golden trains only on them"),
    ] = 0
    slow_seconds: Annotated[
        float,
        Option(callback=shared.in_range(ends="()"), help="most CPU seconds of a reference for one call"),
    ] = 1.0
    control: Annotated[
        bool,
        Option("--control", help="leave out rows whose tests accept a program that solves nothing"),
    ] = False
    rates: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="output folder of `code-a1 eval code` on the same questions, for --keep"),
    ] = None
    keep: Annotated[
        tuple[float, float] | None,
        Option(
            metavar="LOW HIGH",
            help="with --rates, keep questions if LOW to HIGH of the programs solve them, as shares",
            show_default="0.05 0.95",
        ),
    ] = None

    @property
    def dropped_output(self) -> Path:
        """The file with a JSON line for each row that was left out."""
        return self.beside(".dropped.jsonl")

    @property
    def outputs(self) -> tuple[Path, ...]:
        return (*super().outputs, self.dropped_output)

    @property
    def confinement(self) -> Confinement:
        """The confinement of all programs. Raises SandboxConfigError if ``slow_seconds`` is out of range."""
        limits = Limits(reference_cpu_seconds_per_case=self.slow_seconds)
        return Confinement(limits=limits, tier=self.tier, allow_missing=self.allow_missing)

    def of_judging(self) -> dict[str, Any]:
        """Return the settings on which the facts about a reference depend."""
        return {"slow_seconds": self.slow_seconds, "tier": self.tier, "control": self.control, "format": 2}

    def check(self, inputs: Iterable[Path]) -> None:
        """Raise InputError also if options contradict one another."""
        if self.keep:
            if not self.rates:
                raise InputError("--keep chooses by the rates of an evaluation; name its folder with --rates FOLDER")
            low, high = self.keep
            if not 0 <= low <= high <= 1:
                raise InputError(f"--keep must be LOW HIGH with 0 <= LOW <= HIGH <= 1, got {low:g} {high:g}")
        OutputOptions.check(self, inputs)


@dataclass(frozen=True, kw_only=True)
class SftOptions(OutputOptions):
    """The options of ``data sft``."""

    files: Annotated[tuple[Path, ...], Argument(metavar="FILE...", help="files of questions")]
    prompt: Annotated[
        str,
        Option(callback=shared.listed_in(PROMPT_PAIRS), help="prompts.name of the later training run"),
    ] = "chat_v2"
    cases: Annotated[int, Option(min=1, help="most asserts of a suite")] = 8
    mutants: Annotated[int, Option(min=0, help="most mutants of a reference that get a suite")] = 0
    max_per_question: Annotated[int, Option(min=1, help="most demonstrations of a question")] = 8
    val_frac: Annotated[
        float,
        Option(callback=shared.in_range(1, ends="[)"), help="share of the questions for validation"),
    ] = 0.05

    @property
    def val_output(self) -> Path:
        return self.output.with_suffix(".val.parquet")

    @property
    def outputs(self) -> tuple[Path, ...]:
        return (*super().outputs, self.val_output) if self.val_frac else super().outputs
