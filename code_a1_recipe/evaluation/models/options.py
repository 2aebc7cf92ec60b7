"""The model that a command line names, and how it samples; what it leaves open, a run's own validation says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...algorithm.sampling import SamplingParameters
from ...errors import InputError
from ...runs.reader import RunRecords

if TYPE_CHECKING:
    from ...config.run_config import RunConfig

USUAL_SAMPLING = SamplingParameters(
    temperature=0.7, top_p=0.95, top_k=-1, max_prompt_tokens=8192, max_response_tokens=4096
)
"""Temperature and top-p of the paper's validation."""
USUAL_PROMPT = "chat_v1"
_LEVELS = 3
"""From a step's folder up to its run: run/checkpoints/global_step_n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """``--model`` and its neighbours."""

    model: str | None = None
    """A Hugging Face folder or hub id, a run folder, or a step of its checkpoints."""
    step: str = "latest"
    """Of a run folder: latest, best, or a saved step."""
    endpoint: str | None = None
    """URL of an OpenAI-compatible server instead."""
    endpoint_model: str | None = None
    temperature: float | None = None
    """In [0, 2]; 0 is greedy. None, here and below: as the run validated, or the usual value."""
    top_p: float | None = None
    max_tokens: int | None = None
    """Of a response."""
    max_prompt_tokens: int | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine."""
    prefix: str = ""
    """Before the options' names, for messages: "test-" of ``--test-model``."""

    @property
    def is_named(self) -> bool:
        """Whether there is a model at all."""
        return bool(self.model or self.endpoint)

    def sampling(self, policy: str, *, shared: ModelOptions | None = None) -> SamplingParameters:
        """How it samples.

        Args:
            policy: "code" or "test", where the model is a run.
            shared: the command's other model, whose run has both policies where this one is not named.

        Raises:
            InputError: a run's configuration cannot be read.
        """
        source = shared if shared is not None and not self.is_named else self
        stated = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_response_tokens": self.max_tokens,
            "max_prompt_tokens": self.max_prompt_tokens,
        }
        known: dict[str, Any] = {name: value for name, value in stated.items() if value is not None}
        parameters = replace(RunDefaults.of(source).sampling(policy), **known)
        return parameters if parameters.temperature else parameters.greedy()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDefaults:
    """How a run asks its models, or the usual way. A model answers well only what it was trained on."""

    config: RunConfig | None = None
    """The run's ``resolved_config.yaml``; None without a run."""

    @classmethod
    def of(cls, *models: ModelOptions) -> RunDefaults:
        """Of the first model that is a run.

        Raises:
            InputError: its configuration cannot be read.
        """
        configs = (_config_of(Path(one.model)) for one in models if one.model)
        return cls(config=next((config for config in configs if config is not None), None))

    def prompt(self, *policies: str) -> str:
        """Name of the pair of templates, or the run's own template for the one policy that is asked.

        Raises:
            InputError: several policies are asked, and the run has templates of its own.
        """
        if self.config is None:
            return USUAL_PROMPT
        prompts = self.config.prompts
        templates = {"code": prompts.code, "test": prompts.test}
        own = {policy: path for policy in policies if (path := templates[policy])}
        if own and len(policies) > 1:
            keys = " and ".join(f"prompts.{policy}={path}" for policy, path in own.items())
            raise InputError(
                f"the run was trained with {keys}, and this command asks both policies; name a pair of them"
            )
        return next(iter(own.values()), prompts.name)

    @property
    def cases_per_suite(self) -> int | None:
        """Asserts that a suite is asked for."""
        return self.config.episode.cases_per_suite if self.config else None

    def sampling(self, policy: str) -> SamplingParameters:
        """As the run samples in validation."""
        if self.config is None:
            return USUAL_SAMPLING
        rollout = self.config.policy(policy).rollout
        return replace(SamplingParameters.of_rollout(rollout, validation=True), top_k=-1)


def _config_of(model: Path) -> RunConfig | None:
    """The configuration of the run that the path lies in; None where it is a model's folder, or no run's."""
    if (model / "config.json").is_file() or (run := RunRecords.find(model, levels=_LEVELS)) is None:
        return None
    from ...config.compose import recorded_config  # hydra, which --help does not wait for

    return recorded_config(run.paths.resolved_config)
