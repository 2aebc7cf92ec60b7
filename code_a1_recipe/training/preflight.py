"""Checks files, models and hardware before Ray starts, so that a run fails early and with a hint.

No check changes anything. ``START_RULES`` take a second. ``check_run`` loads tokenizers and data, and is the last stage
of ``training.resolve``.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..algorithm.question import Question
from ..config.rules import VALUE_RULES, Rule
from ..config.run_config import RunConfig
from ..errors import SettingsError
from ..runs.folder import LOCK, RunFolder
from ..verl_plugin.compat import VERL_VERSION, installed_verl
from ..verl_plugin.config_checks import check_reporting, check_verl_config
from .checkpoint.fingerprints import check_weights, data_fingerprint, model_fingerprint
from .checkpoint.folder import FORMAT, find_checkpoint, saved_steps
from .hub import find_mbpp, hub_silence, takes_mbpp
from .plan.check import plan_of
from .plan.machine import Machine, why_no_gpu
from .plan.sizes import SMOLLM2, check_tokenizer, in_a_line, size_of, without_weights
from .question_checks import (
    check_chat_template,
    check_given_tests,
    check_left_out,
    check_prompt_lengths,
    check_references,
    questions_of_run,
)
from .runners import service_answers

_LEAST_ADAPTER_RATE = 5e-6


def verl_problem() -> Iterator[str]:
    """Yield a message if another version of verl is installed than the one that the recipe was checked on."""
    if (found := installed_verl()) != VERL_VERSION:
        yield (
            f"this recipe was checked on verl {VERL_VERSION}, found {found}; install it with "
            f"`pip install verl=={VERL_VERSION}` (see REQUIRED_VERL.txt)"
        )


def _device(config: RunConfig) -> Iterator[str]:
    if config.trainer.device != "cuda" or config.ray_kwargs.address != "local":
        return
    import torch

    if not torch.cuda.is_available():
        yield (
            f"trainer.device=cuda, but torch sees no GPU here: {why_no_gpu()}. Use the preset `cpu`, or name the Ray "
            "cluster that has them: +ray_kwargs.ray_init.address=auto"
        )


def _nodes(config: RunConfig) -> Iterator[str]:
    nodes = max(len(devices) for devices in config.pool_spec().values())
    if nodes > 1 and config.ray_kwargs.address == "local":
        yield (
            f"the run asks for {nodes} nodes (trainer.nnodes, pools.*.nnodes), and a Ray of its own has one; name the "
            "cluster: +ray_kwargs.ray_init.address=auto"
        )


def _question_files(config: RunConfig) -> Iterator[str]:
    for key in ("train_files", "val_files"):
        files = getattr(config.data, key)
        if not files and config.micro is None and not takes_mbpp(config):
            yield _not_set(f"data.{key}")
        for file in files:
            if "://" not in file and not Path(file).exists():
                yield f"data.{key}={file!r}: there is no such file (relative paths start at {Path.cwd()})"


def _model_folders(config: RunConfig) -> Iterator[str]:
    for name in config.policy_names:
        key, path = f"policies.{name}.model.path", config.policy(name).model.path
        if path is None:
            if config.micro is None:
                yield _not_set(key)
        elif not Path(path).is_dir() and not _may_be_of_the_hub(path):
            hint = "give one with config.json, weights and tokenizer (`hf download ID --local-dir FOLDER`)"
            yield f"{key}={path!r}: there is no such folder; {hint}"
        else:
            try:
                check_weights(path)
            except Exception as error:  # noqa: BLE001  # libraries may raise any error for a damaged file
                yield _unusable(key, path, error)


def _hub(config: RunConfig) -> Iterator[str]:
    """If the hub does not answer, this machine's caches must have what the run takes from it."""
    from huggingface_hub import try_to_load_from_cache

    paths = {name: config.policy(name).model.path or "" for name in reversed(config.policy_names)}
    models = {path: name for name, path in paths.items() if _may_be_of_the_hub(path) and not Path(path).is_dir()}
    if not (models or takes_mbpp(config)) or not (error := hub_silence()):
        return
    for path, name in models.items():
        if not isinstance(try_to_load_from_cache(path, "config.json"), str):
            yield _unusable(f"policies.{name}.model.path", path, error)
    if takes_mbpp(config):
        try:
            find_mbpp(error)
        except SettingsError as refused:
            yield str(refused)


def _may_be_of_the_hub(path: str) -> bool:
    """Return True for a path of the form ``org/name`` if no folder ``org`` exists."""
    has_form = path.count("/") == 1 and not path.startswith((".", "/", "~"))
    return has_form and not Path(path).parent.is_dir()


def _not_set(key: str) -> str:
    return f"{key} is not set; give it on the command line ({key}=...) or in the YAML file"


def _unusable(key: str, path: str, error: Exception) -> str:
    command = "`hf download ID --local-dir FOLDER` makes one where the hub answers"
    if path == SMOLLM2:
        command = "`python -m studies.real_model smollm2-135m --output FOLDER` in a clone makes one without the hub"
    return (
        f"{key}={path!r} cannot be used: {in_a_line(error)}; give a folder with config.json, weights and tokenizer "
        f"({key}=FOLDER): {command}"
    )


def _run_folder(config: RunConfig) -> Iterator[str]:
    folder = RunFolder(Path(config.run_dir))
    if folder.root.exists() and not folder.root.is_dir():
        yield f"run_dir={config.run_dir!r} is not a folder; choose another"
        return
    # A run that ended early may have only one of these files, and may be started again.
    is_run = folder.resolved_config.exists() or folder.metrics.exists() or folder.checkpoints.exists()
    names = {path.name for path in folder.root.iterdir()} if folder.root.is_dir() else set()
    if names - {LOCK} and not is_run:
        yield f"run_dir={config.run_dir!r} holds files that are no run's; choose another, or an empty folder"
    steps = saved_steps(Path(config.trainer.default_local_dir))
    if config.trainer.resume_mode == "disable" and (folder.metrics.exists() or steps):
        place = f"steps {steps} in {config.trainer.default_local_dir}" if steps else "another run"
        yield (
            f"run_dir={config.run_dir!r} holds {place}, and resume=never (trainer.resume_mode=disable) would write "
            "over it; choose another run_dir, or leave resume out"
        )


def _adapter_rates(config: RunConfig) -> Iterator[str]:
    for name in config.policy_names:
        policy = config.policy(name)
        rate = policy.actor.optim.lr
        if policy.model.lora_rank and 0 < rate < _LEAST_ADAPTER_RATE:
            need = f"at least {_LEAST_ADAPTER_RATE:g} with a LoRA adapter, which a rate for whole weights hardly moves"
            yield f"policies.{name}.actor.optim.lr must be {need}, got {rate:g}; begin with 2e-5"


START_RULES: tuple[Rule, ...] = (
    *VALUE_RULES,
    lambda _: verl_problem(),
    _device,
    _nodes,
    _question_files,
    _model_folders,
    _hub,
    _run_folder,
    _adapter_rates,
    service_answers,
)
"""Checks that take a second. ``config.compose.read_config`` reports the messages of these checks together with bad
values."""


def check_run(config: RunConfig) -> None:
    """Check that the run can load its configurations, tokenizers, questions, and the checkpoint to resume from.

    Raises:
        SettingsError: the message names all problems.
        CheckpointError: the checkpoint does not fit this run.
    """
    problems: list[str] = []

    def attempt(check: Callable[..., Any], *arguments: Any) -> Any:
        """Return the check's result, or None if the check refuses something."""
        try:
            return check(*arguments)
        except SettingsError as error:
            problems.extend(error.args)
            return None

    attempt(check_reporting, config)
    tokenizers, questions = {}, {}
    for name in config.policy_names:
        attempt(check_verl_config, config, name)
        tokenizers[name] = attempt(load_checked_tokenizer, config, name)
        if tokenizers[name] is not None and config.policy(name).model.lora_rank:
            attempt(_check_adapter, config, name)
    attempt(check_left_out, config)
    for key in ("train_files", "val_files"):
        questions[key] = attempt(questions_of_run, config, key)
        if questions[key] is not None:
            attempt(check_references, config, key, questions[key])
            if tokenizers["code"] is not None:
                attempt(check_prompt_lengths, config, key, questions[key], tokenizers["code"])
    if (train := questions["train_files"]) is not None:
        attempt(check_given_tests, config, train)
    if all(tokenizers.values()):
        attempt(_check_plan, config)
    if problems:
        raise SettingsError(*dict.fromkeys(problems))
    checkpoint = find_checkpoint(config.trainer)
    if checkpoint is not None:
        checkpoint.check_whole()
        checkpoint.check_fits(run_identity(config, train), allow_new_questions=config.checkpoint.allow_new_questions)


def run_identity(config: RunConfig, train: Sequence[Question]) -> dict[str, Any]:
    """Return the values, or hashes of files, that must be equal in a checkpoint and in the run that resumes it."""
    identity = {
        "format": FORMAT,
        "verl": installed_verl(),
        "questions": f"{len(train)} questions, digest {data_fingerprint(train)}",
        "train_batch_size": config.data.train_batch_size,
        "seed": config.seed,
        "shuffle": config.data.shuffle,
    }
    for name in config.policy_names:
        model = config.policy(name).model
        identity[f"{name}_model"] = model_fingerprint(str(model.path))
        # The number of ranks and LoRA change which files verl writes into a checkpoint.
        identity[f"{name}_ranks"] = config.num_devices(name)
        identity[f"{name}_lora_rank"] = model.lora_rank
    return identity


def check_hub_models(config: RunConfig) -> None:
    """Raise SettingsError if a model is named by an id of the hub, and cannot be fetched."""
    from transformers import AutoConfig

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # else a line for each of its attempts
    for name in config.policy_names:
        model = config.policy(name).model
        if model.path is None or Path(model.path).is_dir():
            continue
        try:
            AutoConfig.from_pretrained(model.path, trust_remote_code=model.trust_remote_code)
        except Exception as error:  # libraries may raise any error for an id
            raise SettingsError(_unusable(f"policies.{name}.model.path", model.path, error)) from error


def load_checked_tokenizer(config: RunConfig, name: str) -> Any:
    """Load a policy's tokenizer, and check that it fits the model's configuration and weights.

    Raises:
        SettingsError: the model or its tokenizer cannot be used, or the model has too few positions.
    """
    from transformers import AutoConfig

    from ..verl_plugin.sampler import load_tokenizer

    model, rollout = config.policy(name).model, config.policy(name).rollout
    assert model.path is not None  # `_model_folders`
    key = f"policies.{name}.model.path"
    try:
        model_config = AutoConfig.from_pretrained(model.path, trust_remote_code=model.trust_remote_code)
        tokenizer = load_tokenizer(config, name)
        check_tokenizer(tokenizer, rows=size_of(model).vocabulary)
        if tokenizer.eos_token_id is None:
            raise ValueError("its tokenizer names no end token (eos_token), so no response would end")
        check_weights(model.path)
    except Exception as error:  # libraries may raise any error for a damaged file
        if "trust_remote_code" in str(error):
            hint = "actor_rollout_ref.model.trust_remote_code=true runs it"
            raise SettingsError(f"{key}={model.path!r} brings Python code of its own; {hint}") from error
        raise SettingsError(_unusable(key, model.path, error)) from error
    limit = getattr(model_config, "max_position_embeddings", None)
    needed = rollout.max_model_len or rollout.prompt_length + rollout.response_length
    if limit is not None and needed > limit:
        raise SettingsError(
            f"policies.{name}.rollout: max_model_len (null: prompt_length + response_length) is {needed} tokens, but "
            f"{model.path!r} has {limit} positions (max_position_embeddings)"
        )
    check_chat_template(config, name, tokenizer)
    return tokenizer


def _check_adapter(config: RunConfig, name: str) -> None:
    """Raise SettingsError if the model lacks the layers that LoRA changes. Otherwise verl's worker would fail later."""
    from peft import LoraConfig, get_peft_model

    own = config.policy(name).model
    model = config.for_policy(name).actor_rollout_ref.model
    keys = ("lora_alpha", "target_modules", "target_parameters", "exclude_modules")
    wanted = {key: model[key] for key in keys if key in model}
    try:
        _, plain = without_weights(model.path, trust_remote_code=own.trust_remote_code)
        get_peft_model(plain, LoraConfig(task_type="CAUSAL_LM", r=own.lora_rank, **wanted))
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"policies.{name}.model: LoRA with target_modules={model.target_modules!r} does not fit "
            f"{model.path!r}: {error}"
        ) from error


def _check_plan(config: RunConfig) -> None:
    """Raise SettingsError if the run needs more than this machine has. With ``check_resources=false`` only warn."""
    if config.ray_kwargs.address != "local":  # the nodes of a running cluster are not known here
        return
    machine = Machine.here(config.trainer.default_local_dir, device=config.trainer.device)
    lacks = list(plan_of(config, machine).problems())
    # The plan counts the least that a run needs. A run that gets less would fail after some minutes.
    if lacks and config.check_resources:
        hint = "`code-a1 plan` shows all of it; check_resources=false starts it all the same"
        raise SettingsError(*lacks[:-1], f"{lacks[-1]}. {hint}")
    for problem in lacks:
        RunFolder.show(problem)
