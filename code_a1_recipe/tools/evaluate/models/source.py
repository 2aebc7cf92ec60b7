"""Samples responses from a Hugging Face folder, a run's checkpoint or an endpoint."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reward_fns import ExtractionFailure, extract_suite

from ....algorithm.episode_types import Message, PromptTooLongError, Response
from ....algorithm.prompts import render, template_for
from ....algorithm.question import Question
from ....algorithm.sampling import SamplingParameters, sampling_seed
from ....errors import InputError
from ....files import files_fingerprint
from ....jobs.progress import Progress
from ....training.checkpoint.export import check_policy, export_policy, find_step
from .endpoint import EndpointModel
from .engine import EngineModel
from .options import ModelOptions
from .response_store import RESPONSES, OpenModel, ResponseStore, StoredSampler, finish_all

Prompts = Sequence[tuple[str, Sequence[Message]]]
"""A name and the messages of each prompt. The names of prompts appear in error messages and in stored rows."""
Samples = list[list[Response | None]]
"""Responses by ``[prompt][sample]``. None stands for a response to a prompt that is too long for the model."""
_OF_PLACEMENT = {
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "gpu_memory_utilization",
    "max_num_seqs",
}
"""Engine arguments that change speed and memory use, but no response."""


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """A model that is chosen but not started."""

    label: str
    """The model's name in tables and in requests to an endpoint."""
    fingerprint: str
    """A text that identifies the weights, and is part of the key of every stored response."""
    path: str = ""
    """Folder or hub id of a model that a vLLM engine loads in this process."""
    endpoint: str = ""
    """Address of the server that runs the model; empty for a model in this process."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine."""

    async def open(self, parameters: SamplingParameters) -> OpenModel:
        """Start an engine, or make a client of the endpoint.

        Raises:
            InputError: the model cannot be loaded.
        """
        if self.endpoint:
            return EndpointModel(url=self.endpoint, name=self.label, parameters=parameters)
        return EngineModel.start(self.path, parameters=parameters, options=self.engine)


def choose_model(options: ModelOptions, *, policy: str, work_folder: Path, stored_only: bool = False) -> ModelChoice:
    """Find the model that the command line names, and export it into ``work_folder`` if it is a checkpoint.

    Args:
        options: the model's options.
        policy: "code" or "test", the policy that is taken from a run.
        work_folder: folder whose subfolder ``models`` keeps the exported models for later calls.
        stored_only: True if the caller only reads stored responses. Then nothing is exported.

    Raises:
        InputError: the options name no model or two models, or the named folder holds no model.
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
    # Another dtype or another revision changes the responses.
    return replace(choice, fingerprint=f"{choice.fingerprint} {json.dumps(deciding, default=str)}")


def checkpoint_model(
    source: Path, step: str, policy: str, *, work_folder: Path, engine: Mapping[str, Any], stored_only: bool = False
) -> ModelChoice:
    """Choose one policy of a run's checkpoint, and export it into ``work_folder/models`` unless it is there.

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
    """Return stored responses, and sample the responses that are not stored yet.

    Args:
        model: the model, which starts when a response is missing.
        prompts: a name and the messages of each prompt.
        seeds: seeds by ``[prompt][sample]``.
        parameters: how the model samples.
        store: holds earlier responses and receives new ones.
        stored_only: True if the model must not be asked.
        description: name of the work in the progress bar.

    Raises:
        InputError: the model cannot be started or asked. Earlier responses are stored.
        InputError: ``stored_only`` is True, and a response is missing.
        OutageError: the model does not answer any more. Earlier responses are stored.
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


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """A chosen model, its sampling parameters, and the folder that stores its responses."""

    choice: ModelChoice
    policy: str
    """"code" or "test". The sampling seeds depend on the policy."""
    parameters: SamplingParameters
    folder: Path
    """Output folder of the command."""
    seed: int
    """The value of ``--seed``."""
    stored_only: bool
    """True if the model must not be asked, so that a missing response is an error."""

    @classmethod
    def choose(
        cls,
        options: ModelOptions,
        *,
        policy: str,
        folder: Path,
        seed: int,
        stored_only: bool,
        own: str = "",
    ) -> "StoredModel":
        """Choose the model that the command line names.

        Args:
            options: the model's options.
            policy: "code" or "test".
            folder: output folder of the command.
            seed: the value of ``--seed``.
            stored_only: True if the model must not be asked.
            own: label for the files' own programs or tests. If it is given, no model is chosen or asked.

        Raises:
            InputError: the options name no usable model, see :func:`choose_model`.
        """
        choice = ModelChoice(label=own, fingerprint=own)
        if not own:
            choice = choose_model(options, policy=policy, work_folder=folder, stored_only=stored_only)
        return cls(
            choice=choice,
            policy=policy,
            parameters=options.sampling(policy),
            folder=folder,
            seed=seed,
            stored_only=stored_only,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The part of an evaluation's settings that describes the model."""
        return {"model": self.choice.fingerprint, "sampling": asdict(self.parameters)}

    def sample(self, prompts: Prompts, *, num_samples: int = 1, description: str = "sample") -> Samples:
        """Return stored responses, and sample the missing ones. It raises like :func:`sample_all`."""
        seeds = []
        for name, _ in prompts:
            seeds.append([sampling_seed(self.seed, self.policy, name, number) for number in range(num_samples)])
        with ResponseStore(self.folder / RESPONSES) as store:
            return sample_all(
                self.choice,
                prompts,
                seeds=seeds,
                parameters=self.parameters,
                store=store,
                stored_only=self.stored_only,
                description=description,
            )


def sample_suites(
    model: StoredModel,
    programs: Sequence[tuple[str, Question, str]],
    *,
    prompt: str,
    num_tests: int,
    description: str = "sample",
) -> list[tuple[str, ...] | ExtractionFailure]:
    """Let the Test LLM write a suite of asserts for each program.

    Args:
        model: the Test LLM.
        programs: for each suite, a name for the prompt, the question, and the program that the Test LLM sees.
        prompt: name of a pair of templates, or the path of a template.
        num_tests: number of asserts that the prompt asks for. Further asserts in a response are ignored.
        description: name of the work in the progress bar.

    Raises:
        InputError, OutageError: see :func:`sample_all`.
    """
    template = template_for("test", prompt)
    prompts = []
    for name, question, program in programs:
        messages = render(template, **question.prompt_fields, candidate=program, num_cases=num_tests)
        prompts.append((name, messages))
    suites: list[tuple[str, ...] | ExtractionFailure] = []
    for (response,) in model.sample(prompts, description=description):
        if response:
            suites.append(extract_suite(response.text, max_asserts=num_tests))
        else:
            suites.append(ExtractionFailure(reason="too_long"))
    return suites
