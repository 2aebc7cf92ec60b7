"""The options of ``code-a1 data sft``, and the files that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from .training_command import DEFAULT_MODEL

DEFAULT_CASES = 8
_GPU_RATE, _CPU_RATE = 1e-5, 3e-4
"""Learning rates: for an instruction-tuned model, and for one of half a million parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SftOptions:
    """What to make demonstrations of, and which."""

    output: Path
    files: tuple[Path, ...] = ()
    run: Path | None = None
    questions: tuple[Path, ...] = ()
    overwrite: bool = False
    adapter: str = "auto"
    columns: Mapping[str, str] | None = None
    prompt: str | None = None
    """None: that of the run, else chat_v1."""
    cases: int | None = None
    """K; None: that of the run, else ``DEFAULT_CASES``."""
    mutants: int = 0
    only_breaking: bool = False
    max_per_question: int = 8
    max_assert_chars: int = 400
    max_chars: int = 16_384
    val_frac: float = 0.05
    seed: int = 0
    model: str | None = None
    cpu: bool = False
    workers: int = 1
    tier: int = 0
    allow_missing: tuple[str, ...] = ()

    @property
    def val_output(self) -> Path:
        return self.output.with_name(f"{self.output.stem}.val.parquet")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Whatever may be written, ``output`` first."""
        return (self.output, self.card_output, *([self.val_output] if self.val_frac else []))

    @property
    def work_output(self) -> Path:
        """What is done, for a repeated command."""
        return self.output.with_name(f"{self.output.name}.judged.jsonl")

    @property
    def card_output(self) -> Path:
        return self.output.with_name(f"{self.output.name}.card.md")

    @property
    def model_and_rate(self) -> tuple[str, float]:
        """What the printed command trains, and how fast."""
        return self.model or ("MODEL" if self.cpu else DEFAULT_MODEL), _CPU_RATE if self.cpu else _GPU_RATE

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
