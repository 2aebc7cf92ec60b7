"""Checks before Ray starts: what would fail minutes later fails here, with the cure."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from .checkpointing import find_checkpoint
from .compose import policy_view
from .run_folder import RunFolder
from .schedule import POLICY_NAMES
from .settings import RecipeSettings, SettingsError

logger = logging.getLogger(__name__)


def check_run(config: DictConfig) -> None:
    """Check verl's version, settings, models, data and sizes of a run.

    Raises:
        SettingsError: rule, value, place and cure of the first thing that cannot work.
    """
    _check_verl()
    _check_run_folder(config)
    check_settings(config)
    fill_micro_assets(config)
    for key in ("policies.code.model.path", "policies.test.model.path", "data.train_files", "data.val_files"):
        _check_required(config, key)
    for name in POLICY_NAMES:
        view = policy_view(config, name)
        _check_model(view, name)
        _check_verl_config(view, name)
    _check_data(config)


def check_settings(config: DictConfig) -> RecipeSettings:
    """Check what needs neither models nor data: the recipe's blocks and the sizes of a step.

    Raises:
        SettingsError: as :func:`check_run`.
    """
    settings = read_settings(config)
    _check_sizes(config, settings)
    return settings


def _check_run_folder(config: DictConfig) -> None:
    folder = RunFolder(Path(config.run_dir))
    root = Path(config.trainer.default_local_dir)
    trainer = config.trainer
    resumed = find_checkpoint(root, mode=trainer.resume_mode, path=trainer.resume_from_path)
    if folder.metrics.exists() and resumed is None:
        raise SettingsError(
            f"run_dir={config.run_dir!r} holds a run that left no checkpoint to resume from; choose another run_dir, "
            "or remove the folder"
        )


def _check_verl_config(view: DictConfig, name: str) -> None:
    """verl's own checks of a policy's configuration, told with the policy's name."""
    from verl.utils.config import validate_config

    try:
        validate_config(config=view, use_reference_policy=view.actor_rollout_ref.actor.use_kl_loss, use_critic=False)
    except (AssertionError, ValueError, TypeError) as error:
        raise SettingsError(f"policies.{name}: verl refuses this configuration: {error}") from error


def _check_verl() -> None:
    from .verl_compat import VERL_VERSION, installed_verl

    found = installed_verl()
    if found != VERL_VERSION:
        raise SettingsError(
            f"this recipe was checked on verl {VERL_VERSION}, found {found}; install it with "
            f"`pip install verl=={VERL_VERSION}` (see REQUIRED_VERL.txt)"
        )


def read_settings(config: DictConfig) -> RecipeSettings:
    raw: Any = OmegaConf.to_container(config, resolve=True)
    return RecipeSettings.from_mapping(raw)


def fill_micro_assets(config: DictConfig) -> None:
    """Put the paths of the shipped questions and tiny models where the configuration left them open."""
    if config.get("micro") is None:
        return
    open_paths = [
        key
        for key in ("policies.code.model.path", "policies.test.model.path", "data.train_files", "data.val_files")
        if OmegaConf.select(config, key) is None
    ]
    if not open_paths:
        return
    from .micro import MicroSettings, ensure_assets

    micro: Any = OmegaConf.to_container(config.micro, resolve=True)

    RunFolder.show("finding the shipped questions and tiny models (made on first use, one to two minutes)")
    assets = ensure_assets(settings=MicroSettings.from_mapping(micro, where="micro"))
    made = {
        "policies.code.model.path": assets.code_model,
        "policies.test.model.path": assets.test_model,
        "data.train_files": assets.train_file,
        "data.val_files": assets.val_file,
    }
    for key in open_paths:
        OmegaConf.update(config, key, str(made[key]))


def _check_required(config: DictConfig, key: str) -> None:
    if OmegaConf.is_missing(config, key) or OmegaConf.select(config, key) is None:
        raise SettingsError(f"{key} is not set; give it on the command line ({key}=...) or in the YAML file")


def _check_sizes(config: DictConfig, settings: RecipeSettings) -> None:
    devices = config.trainer.n_gpus_per_node * config.trainer.nnodes
    questions = config.data.train_batch_size
    for name, groups in (("code", questions), ("test", questions * settings.selection.update_n)):
        view = policy_view(config, name).actor_rollout_ref
        rows, mini_batch = groups * view.rollout.n, view.actor.ppo_mini_batch_size
        if rows % devices:
            raise SettingsError(
                f"policy {name}: {groups} groups of {view.rollout.n} responses are {rows} rows a step, which "
                f"{devices} devices (trainer.n_gpus_per_node * trainer.nnodes) cannot share evenly; change "
                "data.train_batch_size or the number of devices"
            )
        if groups % mini_batch:
            raise SettingsError(
                f"policies.{name}.actor.ppo_mini_batch_size must divide the step's {groups} groups, got {mini_batch}"
            )
        parallel = view.rollout.tensor_model_parallel_size
        if devices % parallel:
            raise SettingsError(
                f"policies.{name}.rollout.tensor_model_parallel_size must divide the {devices} devices, got {parallel}"
            )
        needed = view.rollout.prompt_length + view.rollout.response_length
        limit = view.rollout.max_model_len
        if limit is not None and needed > limit:
            raise SettingsError(
                f"policies.{name}.rollout: prompt_length {view.rollout.prompt_length} + response_length "
                f"{view.rollout.response_length} = {needed} tokens exceed max_model_len {limit}"
            )


def _check_model(view: DictConfig, name: str) -> None:
    from transformers import AutoConfig, AutoTokenizer

    path = view.actor_rollout_ref.model.path
    key = f"policies.{name}.model.path"
    try:
        model_config = AutoConfig.from_pretrained(path)
        tokenizer = AutoTokenizer.from_pretrained(view.actor_rollout_ref.model.tokenizer_path or path)
    except (OSError, ValueError, KeyError) as error:  # a damaged tokenizer file ends in any of these
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingsError(
            f"{key}={path!r} cannot be loaded: {first}; give a folder with config.json, weights and tokenizer, or a "
            "model id that this machine can fetch"
        ) from error
    if not tokenizer.chat_template:
        raise SettingsError(
            f"{key}={path!r}: its tokenizer has no chat template, so prompts cannot be rendered; use an instruct model "
            "or save one into the tokenizer (tokenizer.chat_template = ...)"
        )
    rollout = view.actor_rollout_ref.rollout
    limit = getattr(model_config, "max_position_embeddings", None)
    needed = rollout.prompt_length + rollout.response_length
    if limit is not None and needed > limit:
        raise SettingsError(
            f"policies.{name}.rollout: prompt_length + response_length = {needed} tokens, but {path!r} has "
            f"{limit} positions (max_position_embeddings)"
        )


def _check_data(config: DictConfig) -> None:
    from .question_dataset import QuestionDataset

    for key, samples in (("train_files", "train_max_samples"), ("val_files", "val_max_samples")):
        try:
            dataset = QuestionDataset(config.data[key], config=config.data, max_samples=config.data[samples])
        except OSError as error:
            raise SettingsError(f"data.{key}={config.data[key]!r} cannot be read: {error}") from error
        except ValueError as error:
            raise SettingsError(str(error)) from error
        needed = config.data.train_batch_size if key == "train_files" else 1
        if len(dataset) < needed:
            raise SettingsError(
                f"data.{key}={config.data[key]!r} holds {len(dataset)} questions, a step needs {needed} "
                "(data.train_batch_size)"
            )
