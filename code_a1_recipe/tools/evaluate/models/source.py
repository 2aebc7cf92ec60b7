"""Sampling from a model: a Hugging Face folder, a run's checkpoint or an endpoint."""

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
"""Names and messages of prompts. Names appear in error messages and in the store."""
Samples = list[list[Response | None]]
"""Responses by ``[prompt][sample]``; None where the prompt is too long."""
_OF_PLACEMENT = {
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "max_num_seqs",
}
"""Engine arguments that change speed and memory, but not the computed values."""


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """A model that is chosen but not started."""

    label: str
    """The name in tables, and for an endpoint also the name in requests."""
    fingerprint: str
    """A text that is equal for equal weights. It is part of the key of every stored response."""
    path: str = ""
    """The folder or hub id that a vLLM engine of this process loads."""
    endpoint: str = ""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine."""

    def check(self, parameters: SamplingParameters, *, prefix: str = "") -> None:
        """Check what can be checked without loading the weights, before other long work. An endpoint is not asked.

        Args:
            parameters: how the model will sample.
            prefix: prefix of the model's options in messages.

        Raises:
            InputError: the model's context is too short for ``parameters``, or its tokenizer cannot be used.
        """
        if not self.endpoint:
            chat_tokenizer(self.path, parameters, self.engine, prefix=prefix)

    async def open(self, parameters: SamplingParameters) -> OpenModel:
        """Start the engine, or make a client of the endpoint.

        Raises:
            InputError: the model cannot be loaded.
        """
        if self.endpoint:
            return EndpointModel(url=self.endpoint, name=self.label, parameters=parameters)
        return EngineModel.start(self.path, parameters=parameters, options=self.engine)


def choose_model(options: ModelOptions, *, policy: str, work_folder: Path, stored_only: bool = False) -> ModelChoice:
    """Find the model that the command line names. A checkpoint's policy is first exported into ``work_folder``.

    Args:
        options: the model's options.
        policy: "code" or "test"; it chooses the policy of a run.
        work_folder: exported models are kept in its ``models/``, and found there again.
        stored_only: True if the choice only serves to find stored responses. Then nothing is exported.

    Raises:
        InputError: the options name no model or two, or something that is no model.
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
    choice = ModelChoice(label=model, fingerprint=model, path=model, engine=engine)
    if (path / "config.json").is_file():
        choice = replace(choice, label=path.name, fingerprint=files_fingerprint(path, path.iterdir()))
    elif path.is_dir():
        choice = checkpoint_model(
            path, options.step, policy, work_folder=work_folder, engine=engine, stored_only=stored_only
        )
    elif model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise InputError(
            f"--{prefix}model={model!r} is no folder here (relative paths start at {Path.cwd()}), nor a hub id org/name"
        )
    deciding = {name: value for name, value in sorted(engine.items()) if name not in _OF_PLACEMENT}
    if not deciding:
        return choice
    # Another dtype or revision gives other responses.
    return replace(choice, fingerprint=f"{choice.fingerprint} {json.dumps(deciding, default=str)}")


def checkpoint_model(
    source: Path, step: str, policy: str, *, work_folder: Path, engine: Mapping[str, Any], stored_only: bool = False
) -> ModelChoice:
    """Choose one policy of a run's checkpoint, which is exported once into ``work_folder/models``.

    Raises:
        InputError: the checkpoint or the policy does not exist, or cannot be exported.
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
    """Return responses by ``[prompt][sample]``. Only responses that are not stored are sampled.

    Args:
        model: starts when the first response is not stored.
        prompts: names and messages.
        seeds: by ``[prompt][sample]``.
        parameters: how the model samples.
        store: holds earlier responses and receives new ones.
        stored_only: True forbids asking the model.
        description: name of the work in the progress bar.

    Raises:
        InputError: the model cannot be started or asked; responses until then are stored.
        InputError: with ``stored_only``, a response is not stored.
        OutageError: the model does not answer any more.
    """
    open_model = None if stored_only else model.open
    sampler = StoredSampler(store, model=model.fingerprint, parameters=parameters, open_model=open_model)
    with Progress(description, total=sum(map(len, seeds)), unit="response") as progress:

        async def sample(name: str, messages: Sequence[Message], seed: int) -> Response | None:
            response = None
            with contextlib.suppress(PromptTooLongError):
                response = await sampler.sample(messages, seed=seed, session=name)
            progress.advance()
            return response

        work = [sample(*prompt, seed) for prompt, row in zip(prompts, seeds, strict=True) for seed in row]
        responses = iter(asyncio.run(finish_all(work, samplers=[sampler])))
    return [[next(responses) for _ in row] for row in seeds]


def sample_stored(
    model: ModelChoice,
    prompts: Prompts,
    options: SamplingEvalOptions,
    *,
    policy: str,
    num_samples: int,
    parameters: SamplingParameters,
    description: str = "sample",
) -> Samples:
    """Call :func:`sample_all` with the response store of an evaluation's output folder.

    The seeds depend on ``--seed``, the policy, the prompts' names and the samples' numbers.
    """
    numbers = range(num_samples)
    with ResponseStore(options.output / RESPONSES) as store:
        return sample_all(
            model,
            prompts,
            seeds=[[sampling_seed(options.seed, policy, name, n) for n in numbers] for name, _ in prompts],
            parameters=parameters,
            store=store,
            stored_only=options.judge_only,
            description=description,
        )
