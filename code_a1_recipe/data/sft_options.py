"""The command line of ``code-a1 data sft``."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.confine import OPTIONAL_FEATURES
from sandbox.tiers import LOCAL_TIERS

from ..adapters import ADAPTERS
from ..argument_types import column, positive
from ..prompts import PROMPT_PAIRS
from .sft_training import DEFAULT_MODEL

DEFAULT_CASES = 8
_GPU_RATE, _CPU_RATE = 1e-5, 3e-4
"""Learning rates: for an instruction-tuned model, and for one of half a million parameters."""

_DESCRIPTION = """\
Demonstrations for a cold start of the Test LLM: prompts as training will show them, each with a good suite.

A base model that writes mostly invalid asserts earns nothing to learn from; these show it suites that are well formed
and right. They are made

  of questions   FILE: tests of the question that the judge finds right on the reference, those first that break the
                 program shown (the reference, its wrong_programs, and with --mutants small mistakes in the reference)
  of a run       --run RUN: suites that its Test LLM wrote whose claims are all right (rejection sampling)

and written as parquet with a column `messages`, split into training and validation by question. The command that
trains on them with verl's SFT trainer is printed at the end, and stands in OUTPUT.card.md.
"""
_EPILOG = """\
examples:
  code-a1 data sft train.parquet --mutants 4 --output demonstrations.parquet
  code-a1 data sft --run outputs/my-run --only-breaking --output demonstrations.parquet

writes:
  OUTPUT            training demonstrations        OUTPUT without .parquet + .val.parquet   validation
  OUTPUT.card.md    counts, what was left out and why, and the training command

The printed command needs one NVIDIA GPU. verl 0.9.1's SFT trainer does not start on a machine without one; --cpu
prints a command that starts it there all the same, in this project's way, which is only of use for tiny models.
A command that was stopped goes on where it was when it is repeated (OUTPUT.judged.jsonl holds what is done).
Files that exist already are replaced with --overwrite only, and inputs never.
"""


class OptionsError(ValueError):
    """The command line asks for something that cannot be. Names the option, its value and the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line."""

    files: list[Path]
    run: Path | None
    questions: list[Path]
    output: Path
    overwrite: bool
    adapter: str
    columns: Mapping[str, str] | None
    prompt: str | None
    cases: int | None
    """K, None where it was not given."""
    mutants: int
    only_breaking: bool
    max_per_question: int
    max_assert_chars: int
    max_chars: int
    val_share: float
    seed: int
    model: str | None
    cpu: bool
    workers: int
    tier: int | None
    allow_missing: tuple[str, ...]

    @property
    def val_output(self) -> Path:
        return self.output.with_name(f"{self.output.stem}.val.parquet")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Whatever may be written, ``output`` first."""
        return (self.output, self.card_output, *([self.val_output] if self.val_share else []))

    @property
    def work_output(self) -> Path:
        """What is done, for going on."""
        return self.output.with_name(f"{self.output.name}.judged.jsonl")

    @property
    def card_output(self) -> Path:
        return self.output.with_name(f"{self.output.name}.card.md")

    @property
    def model_and_rate(self) -> tuple[str, float]:
        """What the printed command trains, and how fast."""
        return self.model or ("MODEL" if self.cpu else DEFAULT_MODEL), _CPU_RATE if self.cpu else _GPU_RATE

    def check(self) -> None:
        """Raises OptionsError."""
        if bool(self.files) == (self.run is not None):
            raise OptionsError(
                "give question files, or --run RUN, and not both; `code-a1 data sft --help` says what each makes"
            )
        if self.output.suffix != ".parquet":
            raise OptionsError(
                f"--output must end in .parquet, got {self.output}; verl's SFT trainer reads nothing else"
            )
        if self.output.is_dir():
            raise OptionsError(f"--output {self.output} is a folder; name the file to write")
        if self.run is not None and self.mutants:
            raise OptionsError(f"--mutants {self.mutants} makes programs for question files; leave it out with --run")
        if self.run is not None and self.run.is_dir() and self.cases is not None:
            raise OptionsError(
                f"--cases {self.cases}: a run folder says how many asserts its suites have; leave it out"
            )
        if self.run is None and self.questions:
            raise OptionsError("--questions says what the rollouts of --run name; give the files without it instead")
        if self.run is not None and not self.run.exists():
            raise OptionsError(f"--run {self.run}: no such file or folder (relative paths start at {Path.cwd()})")


def read_options(arguments: Sequence[str] | None) -> Options:
    """Exits as argparse does where a value cannot be read."""
    parsed = _parser().parse_args(arguments)
    values = vars(parsed) | {
        "columns": dict(parsed.columns) or None,
        "allow_missing": tuple(parsed.allow_missing),
    }
    return Options(**values)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="code-a1 data sft",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    _add_data(parser)
    _add_rules(parser)
    _add_training(parser)
    _add_sandbox(parser)
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="questions: parquet, JSONL or JSON")
    parser.add_argument(
        "--run", type=Path, metavar="RUN", help="a run folder, or a file of its rollouts or of `code-a1 score` of them"
    )
    parser.add_argument(
        "--questions", nargs="+", type=Path, default=[], metavar="FILE", help="of --run (default: the run's own)"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="OUTPUT", help="must end in .parquet")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace OUTPUT, and what is beside it, where they exist"
    )
    parser.add_argument("--adapter", default="auto", choices=["auto", *ADAPTERS], help="how to read the questions")
    parser.add_argument("--columns", nargs="+", type=column, default=[], metavar="NAME=COLUMN", help="as data.columns")


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prompt",
        choices=sorted(PROMPT_PAIRS),
        help="prompts.name of the run to come (default: chat_v1, or the run's)",
    )
    parser.add_argument(
        "--cases",
        type=positive,
        metavar="K",
        help=f"asserts of a suite (default {DEFAULT_CASES}; of a run folder: its own K); a question with fewer tests "
        "gets a prompt that asks for as many as it has",
    )
    parser.add_argument(
        "--mutants", type=_count, default=0, metavar="N", help="mutants of each reference to show (default 0)"
    )
    parser.add_argument(
        "--only-breaking", action="store_true", help="leave out suites that do not break the program shown"
    )
    parser.add_argument(
        "--max-per-question", type=positive, default=8, metavar="N", help="demonstrations of a question (default 8)"
    )
    parser.add_argument(
        "--max-assert-chars", type=positive, default=400, metavar="N", help="longer asserts are not used (default 400)"
    )
    parser.add_argument(
        "--max-chars",
        type=positive,
        default=16_384,
        metavar="N",
        help="of a demonstration's messages together; longer ones are left out (default 16384)",
    )
    parser.add_argument(
        "--val-share",
        type=_share,
        default=0.05,
        metavar="SHARE",
        help="of the questions, for validation (default 0.05)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of every choice (default 0)")


def _add_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="MODEL", help=f"that the printed command trains (default: {DEFAULT_MODEL})")
    parser.add_argument(
        "--cpu", action="store_true", help="print a command for a machine without a GPU, for tiny models"
    )


def _add_sandbox(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, help="judge processes (default: one a core)"
    )
    parser.add_argument("--tier", type=int, choices=LOCAL_TIERS, help="how programs are confined (default 0)")
    parser.add_argument(
        "--allow-missing",
        nargs="+",
        default=[],
        choices=OPTIONAL_FEATURES,
        metavar="NAME",
        help="protections this kernel lacks: landlock, seccomp",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, got {text!r}")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a number of at least 0 and below 1, got {text!r}")
    return value
