"""A model to sample from: a Hugging Face folder, a run's checkpoint, or an endpoint; and sampling from it."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ....algorithm.episode_types import Message, PromptTooLongError, Response
from ....algorithm.sampling import SamplingParameters, sampling_seed
from ....errors import InputError
from ....files import files_fingerprint
from ....jobs.progress import Progress
from ....training.checkpoint.export import check_policy, export_policy, find_step
from ..options import SamplingEvalOptions
from .endpoint import EndpointModel
from .engine import EngineModel, chat_tokenizer
from .options import ModelOptions
from .response_store import RESPONSES, OpenModel, ResponseStore, StoredSampler, finish_all

Prompts = Sequence[tuple[str, Sequence[Message]]]
"""Each with a name, for error messages and the store."""
Samples = list[list[Response | None]]
"""``[prompt][sample]`` responses; None where the prompt is too long."""
_OF_PLACEMENT = {
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "max_num_seqs",
}
"""Engine arguments that say where and how much at once, not what is computed."""


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """A model that can be opened."""

    label: str
    """Its name in tables; at an endpoint also the name that is asked for."""
    fingerprint: str
    """Equal for equal weights; part of the key of every stored response."""
    path: str = ""
    """Folder or hub id, for a vLLM engine of this process."""
    endpoint: str = ""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine."""

    def check(self, parameters: SamplingParameters, *, prefix: str = "") -> None:
        """Refuse what can be refused without its weights: before work that comes first; an endpoint is not asked.

        Args:
            prefix: of the options that name it, for messages.

        Raises:
            InputError: its context is too short for ``parameters``, or its tokenizer cannot be used.
        """
        if not self.endpoint:
            chat_tokenizer(self.path, parameters, self.engine, prefix=prefix)

    async def open(self, parameters: SamplingParameters) -> OpenModel:
        """Start or reach it.

        Raises:
            InputError: it cannot be loaded or reached.
        """
        if self.endpoint:
            return EndpointModel(url=self.endpoint, name=self.label, parameters=parameters)
        return EngineModel.start(self.path, parameters=parameters, options=self.engine)


def choose_model(options: ModelOptions, *, policy: str, work_folder: Path, stored_only: bool = False) -> ModelChoice:
    """The model of the command line; a checkpoint's policy is exported into ``work_folder`` first.

    Args:
        policy: "code" or "test", of a run.
        work_folder: exports go to its ``models/``, and are found there again.
        stored_only: nothing is exported; the choice serves to find stored responses.

    Raises:
        InputError: none or two are named, or what is named is no model.
    """
    model, endpoint, prefix = options.model, options.endpoint, options.prefix
    if bool(model) == bool(endpoint):
        raise InputError(f"name either --{prefix}model or --{prefix}endpoint, got {'both' if model else 'neither'}")
    if endpoint:
        name = options.endpoint_model
        if not name:
            raise InputError(f"--{prefix}endpoint needs --{prefix}endpoint-model, the model's name there")
        if not endpoint.startswith(("http://", "https://")):
            raise InputError(f"--{prefix}endpoint must begin with http:// or https://, got {endpoint!r}")
        return ModelChoice(label=name, fingerprint=f"{endpoint} {name}", endpoint=endpoint)
    engine, path = options.engine, Path(model)
    found = ModelChoice(label=model, fingerprint=model, path=model, engine=engine)
    if (path / "config.json").is_file():
        found = replace(found, label=path.name, fingerprint=files_fingerprint(path, path.iterdir()))
    elif path.is_dir():
        found = checkpoint_model(
            path, options.step, policy, work_folder=work_folder, engine=engine, stored_only=stored_only
        )
    elif model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise InputError(
            f"--{prefix}model={model!r} is no folder here (relative paths start at {Path.cwd()}), nor a hub id org/name"
        )
    deciding = {name: value for name, value in sorted(engine.items()) if name not in _OF_PLACEMENT}
    if not deciding:
        return found
    # Another dtype or revision gives other responses.
    return replace(found, fingerprint=f"{found.fingerprint} {json.dumps(deciding, default=str)}")


def checkpoint_model(
    source: Path, step: str, policy: str, *, work_folder: Path, engine: Mapping[str, Any], stored_only: bool = False
) -> ModelChoice:
    """One policy of a run's checkpoint, exported once into ``work_folder/models``.

    Raises:
        InputError: there is no such checkpoint or policy, or it cannot be exported.
    """
    try:
        found = find_step(source, step)
        check_policy(found, policy)
    except InputError as error:
        raise InputError(
            f"--model={source} is neither a model (no config.json) nor a run with such a checkpoint: {error}"
        ) from error
    weights = found.folder / policy / "actor"
    digest = files_fingerprint(weights, weights.glob("model_*"))
    if in_float32 := engine.get("dtype") == "float32":
        digest += "_float32"
    target = work_folder / "models" / f"{policy}_step_{found.step}_{digest}"
    if not stored_only and not target.is_dir():
        try:
            export_policy(found, policy, target, in_float32=in_float32)
        except (InputError, OSError) as error:
            raise InputError(f"--model={source}, step {found.step}, cannot be exported: {error}") from error
    label = f"{found.folder.absolute().parent.parent.name} step {found.step} ({policy})"
    return ModelChoice(label=label, fingerprint=f"{policy} {digest}", path=str(target), engine=engine)


def sample_all(
    model: ModelChoice,
    prompts: Prompts,
    *,
    seeds: Sequence[Sequence[int]],
    parameters: SamplingParameters,
    store: ResponseStore,
    stored_only: bool = False,
    description: str = "sample",
) -> Samples:
    """``[prompt][sample]`` responses, stored ones first looked up; None where the prompt is too long.

    Args:
        prompts: each with a name, for error messages and the store.
        seeds: for each prompt one seed per sample.
        stored_only: never ask the model.

    Raises:
        InputError: the model cannot be started, reached or asked; what was sampled is stored.
        InputError: ``stored_only``, and something is not stored.
    """
    open_model = None if stored_only else model.open
    sampler = StoredSampler(store, model=model.fingerprint, parameters=parameters, open_model=open_model)
    with Progress(description, total=sum(map(len, seeds)), unit="response") as progress:

        async def one(name: str, messages: Sequence[Message], seed: int) -> Response | None:
            response = None
            with contextlib.suppress(PromptTooLongError):
                response = await sampler.sample(messages, seed=seed, session=name)
            progress.advance()
            return response

        work = [one(*prompt, seed) for prompt, row in zip(prompts, seeds, strict=True) for seed in row]
        responses = iter(asyncio.run(finish_all(work, samplers=[sampler])))
    return [[next(responses) for _ in row] for row in seeds]


def sample_stored(
    model: ModelChoice,
    prompts: Prompts,
    options: SamplingEvalOptions,
    *,
    policy: str,
    num_samples: int,
    parameters: SamplingParameters | None = None,
    description: str = "sample",
) -> Samples:
    """``[prompt][sample]`` responses of an evaluation, kept in its output folder.

    The seeds depend on the prompts' names. Without ``parameters`` the command's one model samples as the
    options say. Other arguments, result and errors as of :func:`sample_all`.
    """
    numbers = range(num_samples)
    with ResponseStore(options.output / RESPONSES) as store:
        return sample_all(
            model,
            prompts,
            seeds=[[sampling_seed(options.seed, policy, name, n) for n in numbers] for name, _ in prompts],
            parameters=parameters or options.model.sampling(policy),
            store=store,
            stored_only=options.judge_only,
            description=description,
        )
