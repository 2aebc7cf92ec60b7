"""The model that a command line names, and how it samples.

A trained model answers best if it is asked as in training. So a model of a run samples as in the run's own validation,
unless an option says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....algorithm.sampling import SamplingParameters
from ....errors import InputError
from ....jobs.options import assignments, in_range
from ....runs.reader import RunRecords

if TYPE_CHECKING:
    from ....config.run_config import RunConfig

USUAL_SAMPLING = SamplingParameters(
    temperature=0.7, top_p=0.95, top_k=-1, max_prompt_tokens=8192, max_response_tokens=4096
)
"""Sampling of a model that no run trained, with the temperature and top-p of the paper's validation."""
USUAL_PROMPT = "chat_v2"
_LEVELS = 3
"""Number of folders in the path run/checkpoints/global_step_n. A user may name any of these folders to mean the run."""
option = partial(typer.Option, rich_help_panel="The model: where it is and how it samples")
_AS_VALIDATED = "for a run, the value of its validation"
_AS_TRAINED = "for a run, its own"


def _engine_arguments(texts: list[str]) -> dict[str, Any]:
    """Read texts ``KEY=VALUE``. A value is written as in YAML."""
    import yaml

    pairs = assignments(texts)
    for key in pairs:
        if not key.isidentifier():
            raise typer.BadParameter(f"--engine must be KEY=VALUE, got {key!r} as a key")
    return {key: yaml.safe_load(value) for key, value in pairs.items()}


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of the model. None stands for the value of the run's validation, or without a run for the usual value."""

    model: Annotated[
        str,
        option(
            help="Hugging Face folder or hub id, which vLLM loads here; or a run folder, or a step of its checkpoints"
        ),
    ] = ""
    step: Annotated[str, option(help="step of a run folder: latest, best, or the number of a saved step")] = "latest"
    endpoint: Annotated[
        str,
        option(
            metavar="URL",
            help="OpenAI-compatible server, such as http://localhost:8000/v1; OPENAI_API_KEY holds its key",
        ),
    ] = ""
    endpoint_model: Annotated[str, option(metavar="NAME", help="name of the model at the endpoint")] = ""
    temperature: Annotated[
        float | None, option(min=0, max=2, help="0 is greedy", show_default=f"0.7; {_AS_VALIDATED}")
    ] = None
    top_p: Annotated[float | None, option(callback=in_range(1, ends="(]"), show_default=f"0.95; {_AS_VALIDATED}")] = (
        None
    )
    max_tokens: Annotated[
        int | None,
        option(
            min=1,
            help="longest response",
            show_default=f"4096; for HumanEval+ and MBPP+, 768; {_AS_TRAINED}",
        ),
    ] = None
    max_prompt_tokens: Annotated[
        int | None,
        option(
            min=1,
            help="longest prompt; the model is not asked longer ones",
            show_default=f"8192; {_AS_TRAINED}",
        ),
    ] = None
    engine: Annotated[
        Mapping[str, Any],
        option(
            metavar="KEY=VALUE",
            help="argument of vLLM's engine, such as tensor_parallel_size=2 or dtype=bfloat16; repeatable",
        ),
        _engine_arguments,
    ] = field(default_factory=dict)
    prefix: str = ""
    """Beginning of the option names in messages, such as "test-" in ``--test-model``."""

    @property
    def is_named(self) -> bool:
        """True if the command line names a model."""
        return bool(self.model or self.endpoint)

    def sampling(self, policy: str) -> SamplingParameters:
        """Return the sampling parameters of the model.

        Args:
            policy: "code" or "test". A run has separate parameters for each policy.

        Raises:
            InputError: the run's configuration cannot be read.
        """
        stated: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_response_tokens": self.max_tokens,
            "max_prompt_tokens": self.max_prompt_tokens,
        }
        parameters = USUAL_SAMPLING
        if run := run_of(self):
            rollout = run.policy(policy).rollout
            parameters = replace(SamplingParameters.of_rollout(rollout, validation=True), top_k=-1)
        parameters = replace(parameters, **{name: value for name, value in stated.items() if value is not None})
        return parameters if parameters.temperature else parameters.greedy()


def run_of(*models: ModelOptions) -> "RunConfig | None":
    """Read the configuration of the first model that is a run or a part of a run. Returns None if there is none.

    Raises:
        InputError: the configuration cannot be read.
    """
    for options in models:
        path = Path(options.model)
        is_weights = (path / "config.json").is_file()
        if options.model and not is_weights and (run := RunRecords.find(path, levels=_LEVELS)):
            return run.settings
    return None


def usual_prompt(run: "RunConfig | None", *policies: str) -> str:
    """Return the name of a pair of templates, or for a single policy the path of the run's own template.

    Raises:
        InputError: the command asks several policies, and the run has templates of its own.
    """
    if run is None:
        return USUAL_PROMPT
    own = {policy: path for policy in policies if (path := getattr(run.prompts, policy))}
    if own and len(policies) > 1:
        keys = " and ".join(f"prompts.{policy}={path}" for policy, path in own.items())
        raise InputError(f"the run was trained with {keys}, and this command asks both policies; name a pair of them")
    return next(iter(own.values()), run.prompts.name)
