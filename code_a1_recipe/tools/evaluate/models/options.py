"""The model that a command line names, and how it samples; what it leaves open, a run's own validation says."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from ....algorithm.sampling import SamplingParameters
from ....errors import InputError
from ....jobs.options import assignments, within
from ....runs.reader import RunRecords

if TYPE_CHECKING:
    from ....config.run_config import RunConfig

USUAL_SAMPLING = SamplingParameters(
    temperature=0.7, top_p=0.95, top_k=-1, max_prompt_tokens=8192, max_response_tokens=4096
)
"""Temperature and top-p of the paper's validation."""
USUAL_PROMPT = "chat_v2"
_LEVELS = 3
"""From a step's folder up to its run: run/checkpoints/global_step_n."""
option = partial(typer.Option, rich_help_panel="The model: where it is and how it samples")
_AS_VALIDATED = "of a run as it validated"


def _engine_arguments(texts: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` with values as YAML reads them."""
    import yaml

    pairs = assignments(texts)
    if odd := next((key for key in pairs if not key.isidentifier()), None):
        raise typer.BadParameter(f"--engine must be KEY=VALUE, got {odd!r} as a key")
    return {key: yaml.safe_load(value) for key, value in pairs.items()}


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """``--model`` and its neighbours. Where None stands for a value, it is as the run validated, or the usual one."""

    model: Annotated[
        str,
        option(help="a Hugging Face folder or hub id (runs in vLLM here), a run folder, or a step of its checkpoints"),
    ] = ""
    step: Annotated[str, option(help="of a run folder: latest, best, or a saved step")] = "latest"
    endpoint: Annotated[
        str,
        option(
            metavar="URL",
            help="OpenAI-compatible server instead, such as http://localhost:8000/v1; its key in OPENAI_API_KEY",
        ),
    ] = ""
    endpoint_model: Annotated[str, option(metavar="NAME", help="the model's name there")] = ""
    temperature: Annotated[
        float | None, option(min=0, max=2, help="0 is greedy", show_default=f"0.7, {_AS_VALIDATED}")
    ] = None
    top_p: Annotated[float | None, option(callback=within(0, 1, ends="(]"), show_default=f"0.95, {_AS_VALIDATED}")] = (
        None
    )
    max_tokens: Annotated[
        int | None,
        option(min=1, help="of a response", show_default="4096, of HumanEval+ and MBPP+ 768, of a run its own"),
    ] = None
    max_prompt_tokens: Annotated[
        int | None, option(min=1, help="longer prompts are not asked", show_default="8192, of a run its own")
    ] = None
    engine: Annotated[
        Mapping[str, Any],
        option(
            metavar="KEY=VALUE",
            help="argument of vLLM's engine, such as tensor_parallel_size=2 or dtype=bfloat16; repeatable",
        ),
        _engine_arguments,
    ] = field(default_factory=dict)
    usual: ClassVar[SamplingParameters] = USUAL_SAMPLING
    """The sampling of a model that no run trained."""
    prefix: str = ""
    """Before the options' names, for messages: "test-" of ``--test-model``."""

    @property
    def is_named(self) -> bool:
        """A model was named."""
        return bool(self.model or self.endpoint)

    def sampling(self, policy: str) -> SamplingParameters:
        """The parameters that it samples with.

        Args:
            policy: "code" or "test", where the model is a run.

        Raises:
            InputError: a run's configuration cannot be read.
        """
        stated: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_response_tokens": self.max_tokens,
            "max_prompt_tokens": self.max_prompt_tokens,
        }
        parameters = self.usual
        if run := run_of(self):
            rollout = run.policy(policy).rollout
            parameters = replace(SamplingParameters.of_rollout(rollout, validation=True), top_k=-1)
        parameters = replace(parameters, **{name: value for name, value in stated.items() if value is not None})
        return parameters if parameters.temperature else parameters.greedy()


def run_of(*models: ModelOptions) -> "RunConfig | None":
    """The ``resolved_config.yaml`` of the first model that is a run; None without one.

    A model answers well only what it was trained on, so a run says how its models are asked where options do not.

    Raises:
        InputError: it cannot be read.
    """
    for one in models:
        if not one.model or (Path(one.model) / "config.json").is_file():
            continue
        if run := RunRecords.find(Path(one.model), levels=_LEVELS):
            return run.settings
    return None


def usual_prompt(run: "RunConfig | None", *policies: str) -> str:
    """Name of the pair of templates, or the run's own template for the one policy that is asked.

    Raises:
        InputError: several policies are asked, and the run has templates of its own.
    """
    if run is None:
        return USUAL_PROMPT
    own = {policy: path for policy in policies if (path := getattr(run.prompts, policy))}
    if own and len(policies) > 1:
        keys = " and ".join(f"prompts.{policy}={path}" for policy, path in own.items())
        raise InputError(f"the run was trained with {keys}, and this command asks both policies; name a pair of them")
    return next(iter(own.values()), run.prompts.name)
