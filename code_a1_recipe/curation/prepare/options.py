"""The options of ``code-a1 data prepare``, and the files that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...jobs.confinement import Confinement
from .decontaminate import OverlapSettings
from .reference_checks import limits_for


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOptions:
    """What is read, what decides which rows stay, and where they go."""

    inputs: tuple[str, ...]
    output: Path
    overwrite: bool = False
    against: tuple[str, ...] = ()
    """Evaluation sets that the rows must not repeat."""
    adapter: str = "auto"
    columns: Mapping[str, str] | None = None
    against_columns: Mapping[str, str] | None = None
    limit: int | None = None
    """Rows of each input; None for all."""
    min_tests: int = 1
    drop_tests: bool = False
    slow_seconds: float = 1.0
    """CPU seconds of one call of a reference, on the machine that prepares the data."""
    ngram: int = 10
    duplicate_threshold: float = 0.8
    workers: int = 1
    tier: int = 0
    allow_missing: tuple[str, ...] = ()

    @property
    def card_output(self) -> Path:
        return self.output.with_name(f"{self.output.name}.card.md")

    @property
    def dropped_output(self) -> Path:
        """One JSON line a row that was left out."""
        return self.output.with_name(f"{self.output.name}.dropped.jsonl")

    @property
    def work_output(self) -> Path:
        """What the judge found, for a repeated command."""
        return self.output.with_name(f"{self.output.name}.judged.jsonl")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Whatever may be written, ``output`` first."""
        return (self.output, self.card_output, self.dropped_output)

    @property
    def overlap(self) -> OverlapSettings:
        return OverlapSettings(ngram=self.ngram, threshold=self.duplicate_threshold)

    @property
    def confinement(self) -> Confinement:
        """Raises SandboxConfigError where ``slow_seconds`` is out of range."""
        return Confinement(limits=limits_for(self.slow_seconds), tier=self.tier, allow_missing=self.allow_missing)

    def of_judging(self) -> dict[str, Any]:
        """What decides the facts of a reference."""
        return {"slow_seconds": self.slow_seconds, "tier": self.tier}

    def described(self) -> dict[str, Any]:
        """What decides which rows stay."""
        names = ("ngram", "duplicate_threshold", "slow_seconds", "tier", "min_tests", "drop_tests", "limit")
        return {name: getattr(self, name) for name in names}

    def check(self) -> None:
        """Raises InputError where the output is no name of a parquet file."""
        if not self.output.name.endswith(".parquet"):
            raise InputError(f"--output {self.output}: must end in .parquet, the format that is written")
        if self.output.is_dir():
            raise InputError(f"--output {self.output}: is a folder; name a file")
