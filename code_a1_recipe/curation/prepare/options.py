"""The options of ``code-a1 data prepare``, and the files that they name."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from sandbox import Limits

from ...algorithm.sampling import SamplingParameters
from ...errors import InputError
from ...evaluation.models.options import USUAL_SAMPLING, ModelOptions, option
from ...jobs import options as shared
from ...jobs.confinement import Confinement
from ...jobs.hub import Public, Push
from ..dataset_card import card_path

TRAINING_SAMPLING = replace(USUAL_SAMPLING, temperature=1.0, top_p=1.0, max_prompt_tokens=4096)
"""As the Code LLM samples where nobody configures it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModelOptions(ModelOptions):
    """``--base-model`` and its neighbours; it samples as training does."""

    temperature: Annotated[float | None, option(min=0, max=2, help="0 is greedy")] = 1.0
    top_p: Annotated[float | None, option(callback=shared.within(0, 1, ends="(]"))] = 1.0
    max_prompt_tokens: Annotated[
        int | None, option(min=1, help="longer prompts are not asked", show_default="4096, of a run its own")
    ] = None
    usual: ClassVar[SamplingParameters] = TRAINING_SAMPLING


_NO_BASE_MODEL = BaseModelOptions(prefix="base-")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOptions:
    """What is read, what decides which rows stay, and where they go."""

    inputs: Annotated[tuple[str, ...], typer.Argument(metavar="INPUT...", help="files, folders, or ids of the hub")]
    output: Annotated[Path, typer.Option(help="the training set; must end in .parquet")]
    overwrite: shared.Overwrite = False
    push: Push = None
    public: Public = False
    against: Annotated[
        tuple[str, ...], typer.Option(metavar="SET", help="evaluation set that no row may repeat; repeatable")
    ] = ()
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    against_columns: Annotated[
        shared.Columns, typer.Option(metavar="NAME=COLUMN", help="the same for --against; prompt=COLUMN is enough")
    ] = field(default_factory=dict)
    limit: Annotated[int | None, typer.Option(min=1, help="rows of each INPUT, for a try")] = None
    min_tests: Annotated[int, typer.Option(min=0, help="usable tests a row must have; 0 keeps rows without tests")] = 1
    golden: Annotated[
        int, typer.Option(min=0, help="tests of a row, its first, that become golden: arm=golden trains on them alone")
    ] = 0
    drop_tests: Annotated[bool, typer.Option(help="tests that do not hold go alone; by default their row goes")] = False
    slow_seconds: Annotated[
        float,
        typer.Option(callback=shared.within(0, ends="()"), help="CPU seconds that a call of a reference may take"),
    ] = 1.0
    ngram: Annotated[int, typer.Option(min=2, help="words in a row that a prompt may not share with --against")] = 10
    duplicate_threshold: Annotated[
        float,
        typer.Option(callback=shared.within(0, 1, ends="(]"), help="Jaccard similarity of texts that are the same"),
    ] = 0.8
    base_model: BaseModelOptions = _NO_BASE_MODEL
    samples: Annotated[int, typer.Option(min=1, help="programs a question by --base-model")] = 8
    keep: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="share of programs that solve a question which stays, bounds included"),
    ] = (0.0, 1.0)
    prompt: Annotated[
        str | None,
        typer.Option(
            help="that --base-model is asked with: chat_v2, micro, or a .txt template with {{prompt}}",
            show_default="chat_v2, of a run its own",
        ),
    ] = None
    seed: shared.Seed = 0
    workers: shared.Workers = shared.NUM_CORES
    tier: shared.Tier = 0
    allow_missing: shared.AllowMissing = ()

    @property
    def dropped_output(self) -> Path:
        """One JSON line a row that was left out."""
        return self.output.with_name(f"{self.output.name}.dropped.jsonl")

    @property
    def work_output(self) -> Path:
        """What the judge found, for a repeated command."""
        return self.output.with_name(f"{self.output.name}.judged.jsonl")

    @property
    def base_output(self) -> Path:
        """Folder of the base model's responses and their verdicts, for a repeated command."""
        return self.output.with_name(f"{self.output.name}.base")

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Whatever may be written, ``output`` first."""
        return (self.output, card_path(self.output), self.dropped_output)

    @property
    def confinement(self) -> Confinement:
        """Raises SandboxConfigError where ``slow_seconds`` is out of range."""
        limits = Limits(reference_cpu_seconds_per_case=self.slow_seconds)
        return Confinement(limits=limits, tier=self.tier, allow_missing=self.allow_missing)

    def of_judging(self) -> dict[str, Any]:
        """What decides the facts of a reference."""
        return {"slow_seconds": self.slow_seconds, "tier": self.tier}

    def described(self) -> dict[str, Any]:
        """What decides which rows stay."""
        names = ("ngram", "duplicate_threshold", "slow_seconds", "tier", "min_tests", "drop_tests", "limit")
        return {name: getattr(self, name) for name in names}

    def check(self) -> None:
        """Raises InputError where the output is no name of a parquet file, or options do not go together."""
        if not self.output.name.endswith(".parquet"):
            raise InputError(f"--output {self.output}: must end in .parquet, the format that is written")
        if self.output.is_dir():
            raise InputError(f"--output {self.output}: is a folder; name a file")
        if self.base_model.is_named:
            self._check_keep()
        elif (self.keep, self.samples, self.prompt) != ((0.0, 1.0), 8, None) or self.base_model != _NO_BASE_MODEL:
            raise InputError("--keep, --samples, --prompt and --base-... say how --base-model rates questions; name it")

    def _check_keep(self) -> None:
        low, high = self.keep
        if not 0 <= low <= high <= 1:
            raise InputError(f"--keep must be LOW HIGH with 0 <= LOW <= HIGH <= 1, got {low:g} {high:g}")
        number = self.samples if self.base_model.temperature else 1  # greedy programs are all the same
        if not any(low <= solved / number <= high for solved in range(number + 1)):
            sampled = f"--samples {number}" if self.base_model.temperature else "--base-temperature 0"
            raise InputError(
                f"--keep {low:g} {high:g}: with {sampled} no question can be solved so often; raise --samples, sample "
                "at a higher temperature, or widen --keep"
            )
        if not self.min_tests:
            raise InputError(
                "--min-tests 0 keeps questions without tests, which nobody can solve; leave --base-model out"
            )
