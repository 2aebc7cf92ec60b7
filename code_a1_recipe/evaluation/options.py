"""What the commands that sample a model and judge its responses are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import file_fingerprint
from .models.options import ModelOptions

SPLITS = ("instruct", "complete")
"""BigCodeBench's two prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingEvalOptions:
    """What all of them share."""

    files: Sequence[Path]
    """Problems, in any form that training reads."""
    output: Path
    """Folder of responses, verdicts and tables; resumed."""
    model: ModelOptions = field(default_factory=ModelOptions)
    adapter: str = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    """Only the first so many problems."""
    seed: int = 0
    workers: int = os.cpu_count() or 1
    """Programs that run at once."""
    prompt: str | None = None
    """A pair of templates or a template; None: of the run, or the usual one."""
    sample_only: bool = False
    """Store responses and stop."""
    judge_only: bool = False
    """Judge stored responses; no model is started."""

    def __post_init__(self) -> None:
        if self.sample_only and self.judge_only:
            raise InputError("--sample-only and --judge-only exclude each other; leave both out to do both")

    def read_with(self) -> dict[str, Any]:
        """What the problems were read from and how; part of the settings of every verdict.

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
    """Of ``eval code``."""

    references: bool = False
    """No model: the files' own references are judged."""
    samples: int = 1
    """Programs a problem."""
    k: Sequence[int] = ()
    """Of pass@k; none: 1, 5, 10 as ``samples`` allows."""
    since: date | None = None
    """LiveCodeBench: only contests of this day and later."""
    until: date | None = None
    bigcodebench_split: str = SPLITS[0]
    bigcodebench_calibrated: bool = True
    """BigCodeBench: programs need not repeat the task's imports."""
    in_process_tests: bool = False
    """Run all tests of a problem in the program's own process, where it could forge the outcome."""

    def __post_init__(self) -> None:
        SamplingEvalOptions.__post_init__(self)
        if too_many := [k for k in self.k if k > self.samples]:
            raise InputError(f"--k {too_many[0]} needs at least as many --samples, got {self.samples}")
        if self.references and self.model.is_named:
            raise InputError("--references judges the files' own references; leave the model out")
        if self.references and (self.samples > 1 or self.sample_only):
            raise InputError("--references judges one program a problem; leave --samples and --sample-only out")

    @property
    def ks(self) -> list[int]:
        """The k of pass@k, ascending."""
        return sorted(self.k) or [k for k in (1, 5, 10) if k <= self.samples]

    def judged_with(self) -> dict[str, Any]:
        """What decides verdicts; those of other settings do not belong in one file."""
        changed = {
            "references": True if self.references else None,
            "in_process_tests": True if self.in_process_tests else None,
            "bigcodebench_calibrated": None if self.bigcodebench_calibrated else False,
        }
        return {**self.read_with(), **{name: value for name, value in changed.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEvalOptions(SamplingEvalOptions):
    """Of ``eval test``."""

    tests: int = 5
    """Asserts a suite."""
    suites: int = 1
    """Responses a function; figures are their mean."""
    k: Sequence[int] = ()
    """First tests of a suite; none: 1, 2, 5 as ``tests`` allows."""
    own_tests: bool = False
    """No model: the questions' own tests are measured, as a baseline."""
    max_mutants: int = 50
    """A function; 0: no mutants."""
    mutants_folder: Path | None = None
    """Where mutants are kept; None: in ``output``."""
    coverage: bool = True
    buggy_programs: bool = False
    """Also tests for each question's buggy programs."""

    def __post_init__(self) -> None:
        SamplingEvalOptions.__post_init__(self)
        if self.max_mutants < 0:
            raise InputError(f"--max-mutants must be at least 0, got {self.max_mutants}")
        if too_many := [k for k in self.k if k > self.tests]:
            raise InputError(f"--k {too_many[0]} needs at least as many --tests, got {self.tests}")
        if self.own_tests and self.model.is_named:
            raise InputError("--own-tests measures the questions' own tests; leave the model out")

    @property
    def ks(self) -> list[int]:
        """The numbers of first tests, ascending."""
        return sorted(self.k) or [k for k in (1, 2, 5) if k <= self.tests]

    def judged_with(self) -> dict[str, Any]:
        """As of ``CodeEvalOptions``."""
        return {**self.read_with(), "max_mutants": self.max_mutants, "coverage": self.coverage}
