"""Options of ``eval code`` and ``eval test``. The command ``select`` shares most of these options."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ...algorithm.question import Question
from ...data.reader import question_table
from ...errors import InputError, OutputError
from ...files import file_fingerprint
from ...jobs import options as shared
from ...jobs.jsonl_store import Row
from .models.options import ModelOptions

_OWN_FILES = ("responses.jsonl", "verdicts.jsonl", "choices.jsonl", "models")
"""Names of files and folders, of which every output folder of these commands holds at least one."""


def check_folder(output: Path) -> None:
    """Refuse a folder that no evaluation wrote, unless it is missing or empty. Call this function before any work.

    Raises:
        OutputError: ``output`` is a file, or a folder that has files but none of ``_OWN_FILES``.
    """
    if not output.exists():
        return
    if not output.is_dir():
        raise OutputError(f"--output {output} is a file; name a folder")
    names = {path.name for path in output.iterdir()}
    if names and names.isdisjoint(_OWN_FILES):
        raise OutputError(
            f"--output {output} holds {min(names)!r}, which this command did not write; name a new folder, or the "
            "folder of an earlier call"
        )


@dataclass(frozen=True, kw_only=True)
class SamplingEvalOptions:
    """Options of all commands that sample responses to problems and judge them."""

    files: Annotated[
        Sequence[Path], Argument(metavar="FILE...", help="files of problems, in any format that training reads")
    ]
    output: Annotated[Path, Option(help="folder for responses, verdicts and tables; a repeated command resumes")]
    model: ModelOptions = field(default_factory=ModelOptions)
    prompt: Annotated[
        str,
        Option(
            help="pair of templates: chat_v2 or micro; eval also takes a .txt template with {{prompt}}, and eval code "
            "takes evalplus, EvalPlus's official prompt",
            show_default="chat_v2; for a run, the run's own",
        ),
    ] = ""
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    limit: Annotated[int | None, Option(min=1, help="use only this many problems, the first ones")] = None
    seed: shared.Seed = 0
    workers: shared.Workers = shared.NUM_CORES
    sample_only: Annotated[bool, Option(help="store responses and stop, for example on a GPU node")] = False
    judge_only: Annotated[bool, Option(help="judge stored responses and start no model")] = False

    def __post_init__(self) -> None:
        if self.sample_only and self.judge_only:
            raise InputError("--sample-only and --judge-only exclude each other; leave both out to do both")
        check_folder(self.output)

    def check_own(self, option: str, *, num_samples: int = 1) -> None:
        """Refuse sampling options together with ``option``, which measures the files' own programs or tests."""
        if self.model.is_named or self.sample_only or num_samples > 1:
            raise InputError(
                f"{option} asks no model, because it measures the files' own programs or tests; leave the model out, "
                "and --samples and --sample-only"
            )

    def questions(self) -> list[Question]:
        """Read the first ``limit`` questions of all files. Raises InputError if a file cannot be read."""
        table = question_table(self.files, adapter=self.adapter, columns=self.columns)
        return list(table.values())[: self.limit]

    def reading_settings(self) -> Row:
        """Return settings that describe the files and how they are read. Every verdict depends on these settings.

        Raises:
            InputError: a file does not exist.
        """
        return {
            "files": list(map(file_fingerprint, self.files)),
            "adapter": self.adapter,
            "columns": dict(sorted(self.columns.items())),
        }


@dataclass(frozen=True, kw_only=True)
class CodeEvalOptions(SamplingEvalOptions):
    """Options of ``eval code``."""

    samples: Annotated[int, Option(min=1, help="programs per problem; the paper takes 32")] = 1
    references: Annotated[
        bool, Option(help="judge the files' own references instead of a model, and list those that fail")
    ] = False
    split: Annotated[
        str,
        Option(
            callback=shared.listed_in(("complete", "instruct")), help="prompts of BigCodeBench: complete or instruct"
        ),
    ] = "complete"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.references:
            self.check_own("--references", num_samples=self.samples)


@dataclass(frozen=True, kw_only=True)
class SuiteEvalOptions(SamplingEvalOptions):
    """Options of ``eval test``."""

    tests: Annotated[int, Option(min=1, help="asserts per suite")] = 5
    own_tests: Annotated[bool, Option(help="measure the questions' own tests instead of a model's, as a baseline")] = (
        False
    )
    max_mutants: Annotated[int, Option(min=0, help="mutants per function; 0 makes none")] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own_tests:
            self.check_own("--own-tests")
