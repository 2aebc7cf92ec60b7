"""Which model answers: a Hugging Face folder, a run's checkpoint, or an endpoint; and how it samples."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..argument_types import positive
from ..checkpointing import CheckpointError
from ..episode_data import Message, PromptTooLongError
from ..export import ExportError, check_policy, export_policy, find_step
from ..run_folder import RunFolder
from ..sampling_parameters import SamplingParameters
from .endpoint import EndpointModel, ModelError
from .response_store import OpenModel, ResponseStore, StoredSampler

_BLOCK_BYTES = 1 << 16
_BLOCKS = 512
"""Read of a weight file for its fingerprint, evenly spread: a matrix that changed is met, within a second."""
_WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")
_OF_PLACEMENT = frozenset(
    {"tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "gpu_memory_utilization", "max_num_seqs"}
)
"""Engine arguments that say where and how much at once, not what is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model that can be opened."""

    label: str
    """As tables show it."""
    fingerprint: str
    """Equal for equal weights; part of the key of every stored response."""
    path: str = ""
    """Folder or hub id, for a vLLM engine of this process."""
    endpoint: str = ""
    endpoint_model: str = ""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of vLLM's engine."""
    timeout_seconds: float = 600.0
    """Of one request to an endpoint."""

    async def open(self, parameters: SamplingParameters) -> OpenModel:
        """Start or reach it.

        Raises:
            ModelError: it cannot be loaded or reached.
        """
        if self.endpoint:
            return EndpointModel(
                url=self.endpoint,
                name=self.endpoint_model,
                parameters=parameters,
                timeout_seconds=self.timeout_seconds,
            )
        from .engine import EngineModel

        return EngineModel.start(self.path, parameters=parameters, options=self.engine)


def add_model_arguments(parser: argparse.ArgumentParser, *, prefix: str = "", role: str = "the model") -> None:
    """``--model`` and its neighbours; with a prefix ``--<prefix>model`` and so on, for a second model."""
    group = parser.add_argument_group(f"{role}: where it is and how it samples")
    add = group.add_argument
    add(
        f"--{prefix}model",
        metavar="MODEL",
        help="a Hugging Face folder or hub id (runs in vLLM here), a run folder, or a step of its checkpoints",
    )
    add(f"--{prefix}step", default="latest", help="of a run folder: latest (default), best, or a saved step")
    add(
        f"--{prefix}endpoint",
        metavar="URL",
        help="OpenAI-compatible server instead, such as http://localhost:8000/v1; its key in OPENAI_API_KEY",
    )
    add(f"--{prefix}endpoint-model", metavar="NAME", help="the model's name there")
    add(f"--{prefix}temperature", type=_temperature, help="default 0.7, of a run as it validated; 0 is greedy")
    add(f"--{prefix}top-p", type=_share, help="default 0.95, of a run as it validated")
    add(f"--{prefix}max-tokens", type=positive, help="of a response (default 4096, of a run its own)")
    add(
        f"--{prefix}max-prompt-tokens",
        type=positive,
        help="longer prompts are not asked (default 8192, of a run its own)",
    )
    add(
        f"--{prefix}engine",
        nargs="+",
        type=_engine_option,
        default=[],
        metavar="KEY=VALUE",
        help="vLLM engine arguments, such as tensor_parallel_size=2 gpu_memory_utilization=0.8 dtype=bfloat16",
    )


def sampling_of(options: argparse.Namespace, *, prefix: str = "") -> SamplingParameters:
    """The sampling parameters of the command line (``run_defaults.fill_defaults`` first); temperature 0 is greedy."""
    at = _reader(options, prefix)
    parameters = SamplingParameters(
        temperature=at("temperature"),
        top_p=at("top_p"),
        top_k=-1,
        max_prompt_tokens=at("max_prompt_tokens"),
        max_response_tokens=at("max_tokens"),
    )
    return parameters if at("temperature") else parameters.greedy()


def has_model(options: argparse.Namespace, *, prefix: str = "") -> bool:
    """Whether the command line names a model."""
    at = _reader(options, prefix)
    return bool(at("model") or at("endpoint"))


def choose_model(
    options: argparse.Namespace, *, policy: str, work_folder: Path, prefix: str = "", stored_only: bool = False
) -> ModelChoice:
    """The model of the command line; a checkpoint's policy is exported into ``work_folder`` first.

    Args:
        policy: "code" or "test", of a run.
        work_folder: exports go to its ``models/``, and are found there again.
        stored_only: nothing is exported; the choice serves to find stored responses.

    Raises:
        ModelError: none or two are named, or what is named is no model.
    """
    at = _reader(options, prefix)
    model, endpoint, name = at("model"), at("endpoint"), at("endpoint_model")
    if bool(model) == bool(endpoint):
        raise ModelError(f"name either --{prefix}model or --{prefix}endpoint, got {'both' if model else 'neither'}")
    if endpoint:
        if not name:
            raise ModelError(f"--{prefix}endpoint needs --{prefix}endpoint-model, the model's name there")
        if not endpoint.startswith(("http://", "https://")):
            raise ModelError(f"--{prefix}endpoint must begin with http:// or https://, got {endpoint!r}")
        return ModelChoice(label=name, fingerprint=f"{endpoint} {name}", endpoint=endpoint, endpoint_model=name)
    engine = dict(at("engine"))
    path = Path(model)
    if path.is_dir() and not (path / "config.json").is_file():
        found = checkpoint_model(
            path, at("step"), policy, work_folder=work_folder, engine=engine, stored_only=stored_only
        )
        return replace(found, fingerprint=_of_engine(found.fingerprint, engine))
    if path.is_dir():
        fingerprint = _of_engine(folder_fingerprint(path), engine)
        return ModelChoice(label=path.name, fingerprint=fingerprint, path=str(path), engine=engine)
    if model.startswith((".", "/", "~")) or model.count("/") != 1:
        raise ModelError(
            f"--{prefix}model={model!r} is no folder here (relative paths start at {Path.cwd()}), nor a hub id org/name"
        )
    return ModelChoice(label=model, fingerprint=_of_engine(model, engine), path=model, engine=engine)


def checkpoint_model(
    source: Path,
    step: str,
    policy: str,
    *,
    work_folder: Path,
    engine: Mapping[str, Any] | None = None,
    stored_only: bool = False,
) -> ModelChoice:
    """One policy of a run's checkpoint, exported once into ``work_folder/models``.

    Raises:
        ModelError: there is no such checkpoint or policy, or it cannot be exported.
    """
    try:
        found = find_step(source, step)
        check_policy(found, policy)
    except (CheckpointError, ExportError) as error:
        is_run = RunFolder(source).resolved_config.is_file() or source.name.startswith("global_step_")
        told = f"--model={source}: " if is_run else f"--model={source} is neither a model (no config.json) nor a run: "
        raise ModelError(f"{told}{error}") from error
    weights = [one for one in (found.folder / policy / "actor").iterdir() if one.name.startswith("model_")]
    digest = _digest(weights)[:16]
    target = work_folder / "models" / f"{policy}_step_{found.step}_{digest}"
    if not stored_only and not target.is_dir():
        try:
            export_policy(found, policy, target)
        except (ExportError, OSError) as error:
            raise ModelError(f"--model={source}, step {found.step}, cannot be exported: {error}") from error
    run = RunFolder(source).root.name if (source / "checkpoints").is_dir() else found.folder.parent.parent.name
    return ModelChoice(
        label=f"{run} step {found.step} ({policy})",
        fingerprint=f"{policy} {digest}",
        path=str(target),
        engine=engine or {},
    )


def folder_fingerprint(folder: Path) -> str:
    """16 hexadecimal digits of every file of a model's folder; weights by evenly spread blocks and their size."""
    return _digest([one for one in folder.iterdir() if one.is_file()])[:16]


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        size = path.stat().st_size
        digest.update(f"{path.name} {size} ".encode())
        with path.open("rb") as handle:
            if path.suffix not in _WEIGHTS or size <= _BLOCKS * _BLOCK_BYTES:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
                continue
            for number in range(_BLOCKS):
                handle.seek(number * (size - _BLOCK_BYTES) // (_BLOCKS - 1))
                digest.update(handle.read(_BLOCK_BYTES))
    return digest.hexdigest()


def _of_engine(fingerprint: str, engine: Mapping[str, Any]) -> str:
    """The weights and what the engine makes of them: another dtype or revision gives other responses."""
    deciding = {name: value for name, value in sorted(engine.items()) if name not in _OF_PLACEMENT}
    return f"{fingerprint} {json.dumps(deciding, sort_keys=True, default=str)}" if deciding else fingerprint


def sample_all(
    model: ModelChoice,
    prompts: Sequence[Sequence[Message]],
    *,
    seeds: Sequence[Sequence[int]],
    parameters: SamplingParameters,
    store: ResponseStore,
    sessions: Sequence[str] | None = None,
    stored_only: bool = False,
    description: str = "sample",
) -> list[list[str | None]]:
    """``[prompt][sample]`` texts, stored ones first looked up; None where the prompt is too long.

    Args:
        seeds: for each prompt one seed per sample.
        sessions: a name for each prompt, for error messages and the store; default: its number.
        stored_only: never ask the model.

    Raises:
        ModelError: the model cannot be started, reached or asked; what was sampled is stored.
        MissingResponseError: ``stored_only``, and something is not stored.
    """
    names = list(sessions) if sessions is not None else [str(number) for number in range(len(prompts))]
    total = sum(map(len, seeds))

    async def run(bar: tqdm[Any]) -> list[list[str | None]]:
        sampler = StoredSampler(
            store,
            model=model.fingerprint,
            parameters=parameters,
            open_model=None if stored_only else model.open,
            on_response=lambda is_new: bar.update() and None,
        )

        async def one(place: int, seed: int) -> str | None:
            try:
                return (await sampler.sample(prompts[place], seed=seed, session=names[place])).text
            except PromptTooLongError:
                return None

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [[group.create_task(one(place, seed)) for seed in row] for place, row in enumerate(seeds)]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await sampler.close()
        return [[task.result() for task in row] for row in tasks]

    with tqdm(total=total, unit="response", desc=description, disable=None) as bar:
        return asyncio.run(run(bar))


def sample_texts(
    options: argparse.Namespace,
    prompts: Sequence[Sequence[Message]],
    *,
    num_samples: int,
    policy: str,
    store: ResponseStore,
    work_folder: Path,
    prefix: str = "",
    seed: int = 0,
    description: str = "sample",
) -> list[list[str | None]]:
    """``[prompt][sample]`` texts of the command line's model; see :func:`sample_all`."""
    from ..episode import sampling_seed

    model = choose_model(options, policy=policy, work_folder=work_folder, prefix=prefix)
    seeds = [[sampling_seed(seed, place, number) for number in range(num_samples)] for place in range(len(prompts))]
    parameters = sampling_of(options, prefix=prefix)
    return sample_all(model, prompts, seeds=seeds, parameters=parameters, store=store, description=description)


def _reader(options: argparse.Namespace, prefix: str) -> Any:
    stem = prefix.replace("-", "_")
    return lambda name: getattr(options, f"{stem}{name}")


def _temperature(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"must be in [0, 2], got {text}")
    return value


def _share(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1], got {text}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from error


def _engine_option(text: str) -> tuple[str, Any]:
    import yaml

    key, separator, value = text.partition("=")
    if not (key.isidentifier() and separator and value):
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    return key, yaml.safe_load(value)
