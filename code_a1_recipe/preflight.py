"""Checks before Ray starts: what would fail minutes later fails here, with the cure."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from .checkpointing import FORMAT, find_checkpoint, saved_steps
from .compose import policy_view
from .episode import given_tests
from .fingerprints import data_fingerprint, model_fingerprint
from .prompts import find_prompt_pair, render
from .question_dataset import QuestionDataset
from .run_folder import LOCK, RunFolder
from .runners import check_service
from .settings import RecipeSettings, SettingsError
from .value_checks import check_settings

logger = logging.getLogger(__name__)


def check_run(config: DictConfig) -> None:
    """Check verl's version, values, models, data, the checkpoint to resume from and a remote judge's service.

    Raises:
        SettingsError: rule, value, place and cure of the first thing that cannot work.
        CheckpointError: the checkpoint does not fit this run.
    """
    _check_verl()
    settings = check_settings(config)
    check_device(config)
    _check_checkpoints(config)
    _check_run_folder(config)
    check_service(settings.sandbox)
    fill_micro_assets(config)
    models = [f"policies.{name}.model.path" for name in settings.policy_names]
    for key in (*models, "data.train_files", "data.val_files"):
        _check_required(config, key)
    tokenizers = {}
    for name in settings.policy_names:
        view = policy_view(config, name)
        tokenizers[name] = _check_model(view, name)
        _check_verl_config(view, name)
    train, _ = (_check_data(config, key, tokenizers["code"]) for key in ("train_files", "val_files"))
    _check_given_tests(config, settings, train)
    _check_keep_best(config, settings)
    _check_resume(config, settings, train)


def run_identity(config: DictConfig, settings: RecipeSettings, train: QuestionDataset) -> dict[str, Any]:
    """What a checkpoint must share with the run that resumes it: by content, wherever files lie."""
    from .verl_compat import installed_verl

    identity = {
        "format": FORMAT,
        "verl": installed_verl(),
        "questions": f"{len(train)} questions, digest {data_fingerprint(train.questions)}",
        "train_batch_size": config.data.train_batch_size,
        "seed": config.data.seed,
        "shuffle": config.data.shuffle,
    }
    for name in settings.policy_names:
        view = policy_view(config, name)
        identity[f"{name}_model"] = model_fingerprint(view.actor_rollout_ref.model.path)
        # verl writes a shard for each rank, and LoRA's weights apart.
        identity[f"{name}_ranks"] = view.trainer.n_gpus_per_node * view.trainer.nnodes
        identity[f"{name}_lora_rank"] = lora_rank(view.actor_rollout_ref.model)
    return identity


def lora_rank(model: DictConfig) -> int:
    """Rank of a policy's LoRA adapter, 0 without one; verl reads it from either of two keys."""
    return int(OmegaConf.select(model, "lora.rank") or model.get("lora_rank") or 0)


def _check_checkpoints(config: DictConfig) -> None:
    kept = config.trainer.max_actor_ckpt_to_keep
    if kept is not None and (type(kept) is not int or kept < 1):
        raise SettingsError(
            f"trainer.max_actor_ckpt_to_keep must be an integer of at least 1, or null: all, got {kept!r}"
        )
    if type(config.deterministic) is not bool:
        raise SettingsError(f"deterministic must be true or false, got {config.deterministic!r}")
    if config.deterministic and config.episode.share_suites:
        raise SettingsError(
            "episode.share_suites must be false with deterministic=true (which of two identical programs is the first "
            "depends on time), got true; set deterministic=false"
        )


def _check_keep_best(config: DictConfig, settings: RecipeSettings) -> None:
    """Some step is both validated and saved."""
    if settings.checkpoint.keep_best is None:
        return
    frequencies = {"trainer.save_freq": config.trainer.save_freq, "trainer.test_freq": config.trainer.test_freq}
    for key, frequency in frequencies.items():
        if frequency <= 0:
            raise SettingsError(
                f"checkpoint.keep_best={settings.checkpoint.keep_best} needs steps that are validated and saved, "
                f"got {key}={frequency}; set it above 0, or checkpoint.keep_best=null"
            )


def _check_verl() -> None:
    from .verl_compat import VERL_VERSION, installed_verl

    found = installed_verl()
    if found != VERL_VERSION:
        raise SettingsError(
            f"this recipe was checked on verl {VERL_VERSION}, found {found}; install it with "
            f"`pip install verl=={VERL_VERSION}` (see REQUIRED_VERL.txt)"
        )


def check_device(config: DictConfig) -> None:
    """Refuse GPUs where there are none.

    Raises:
        SettingsError: ``trainer.device=cuda`` on a machine without one, and no Ray cluster is named.
    """
    import torch

    remote = OmegaConf.select(config, "ray_kwargs.ray_init.address") is not None
    if config.trainer.device == "cuda" and not remote and not torch.cuda.is_available():
        raise SettingsError(
            "trainer.device=cuda, but torch finds no GPU here; use the preset `cpu`, or name the Ray cluster that has "
            "them: +ray_kwargs.ray_init.address=auto"
        )


def check_paths(config: DictConfig) -> None:
    """Refuse files and folders that are named and not there; nothing is read.

    Raises:
        SettingsError: the key, the path and where it was looked for.
    """
    for key in ("data.train_files", "data.val_files"):
        files = OmegaConf.select(config, key)
        for file in [] if files is None else [files] if isinstance(files, str) else list(files):
            if "://" not in str(file) and not Path(file).exists():
                raise SettingsError(
                    f"{key}={str(file)!r}: there is no such file (relative paths start at {Path.cwd()})"
                )
    for name in config.policies:
        path = OmegaConf.select(config, f"policies.{name}.model.path")
        if path is not None:
            _check_model_folder(path, f"policies.{name}.model.path")


def _check_run_folder(config: DictConfig) -> None:
    folder = RunFolder(Path(config.run_dir))
    if folder.root.exists() and not folder.root.is_dir():
        raise SettingsError(f"run_dir={config.run_dir!r} is not a folder; choose another")
    ours = folder.resolved_config.exists() or folder.metrics.exists() or folder.checkpoints.exists()
    if folder.root.is_dir() and {path.name for path in folder.root.iterdir()} - {LOCK} and not ours:
        raise SettingsError(
            f"run_dir={config.run_dir!r} holds files that are no run's; choose another, or an empty folder"
        )
    trainer = config.trainer
    steps = saved_steps(Path(trainer.default_local_dir))
    if trainer.resume_mode == "disable" and (folder.metrics.exists() or steps):
        place = f"steps {steps} in {trainer.default_local_dir}" if steps else "another run"
        raise SettingsError(
            f"run_dir={config.run_dir!r} holds {place}, and resume=never (trainer.resume_mode=disable) would write "
            "over it; choose another run_dir, or leave resume out"
        )


def _check_resume(config: DictConfig, settings: RecipeSettings, train: QuestionDataset) -> None:
    trainer = config.trainer
    checkpoint = find_checkpoint(
        Path(trainer.default_local_dir), mode=trainer.resume_mode, path=trainer.resume_from_path
    )
    if checkpoint is not None:
        checkpoint.check_whole()
        checkpoint.check_fits(run_identity(config, settings, train))


def fill_micro_assets(config: DictConfig) -> None:
    """Put the paths of the shipped questions and tiny models where the configuration left them open.

    Raises:
        SettingsError: a value under ``micro`` cannot work, or the cache folder cannot be written.
    """
    if config.get("micro") is None:
        return
    open_paths = [
        key
        for key in ("policies.code.model.path", "policies.test.model.path", "data.train_files", "data.val_files")
        if OmegaConf.select(config, key) is None
    ]
    if not open_paths:
        return
    from .micro import MicroAssetsError, MicroSettings, ensure_assets

    micro: Any = OmegaConf.to_container(config.micro, resolve=True)
    if "variant" not in micro and (config.self_play or config.prompts.black_box):
        micro["variant"] = "self_play" if config.self_play else "black_box"  # the models that learned these prompts
    RunFolder.show("finding the shipped questions and tiny models (made on first use, two to three minutes)")
    try:
        assets = ensure_assets(settings=MicroSettings.from_mapping(micro, where="micro"))
    except (MicroAssetsError, TypeError, ValueError) as error:
        raise SettingsError(f"micro: {error}") from error
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


def _check_verl_config(view: DictConfig, name: str) -> None:
    """verl's own checks of a policy's configuration, told with the policy's name."""
    from verl.utils.config import validate_config

    try:
        validate_config(config=view, use_reference_policy=view.actor_rollout_ref.actor.use_kl_loss, use_critic=False)
    except (AssertionError, ValueError, TypeError) as error:
        raise SettingsError(f"policies.{name}: verl refuses this configuration: {error}") from error


def _check_model(view: DictConfig, name: str) -> Any:
    """Load configuration and tokenizer of a model; returns the tokenizer."""
    from transformers import AutoConfig, AutoTokenizer

    path = view.actor_rollout_ref.model.path
    key = f"policies.{name}.model.path"
    _check_model_folder(path, key)
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
    return tokenizer


def _check_model_folder(path: str, key: str) -> None:
    if str(path).startswith((".", "/", "~")) and not Path(path).is_dir():
        raise SettingsError(
            f"{key}={path!r}: there is no such folder; give one with config.json, weights and tokenizer"
        )


def _check_data(config: DictConfig, key: str, tokenizer: Any) -> QuestionDataset:
    samples = {"train_files": config.data.train_max_samples, "val_files": config.data.val_max_samples}[key]
    try:
        dataset = QuestionDataset(config.data[key], config=config.data, max_samples=samples)
    except (OSError, ValueError) as error:
        raise SettingsError(f"data.{key}: {error}") from error
    needed = config.data.train_batch_size if key == "train_files" else 1
    if len(dataset) < needed:
        raise SettingsError(
            f"data.{key}={config.data[key]!r} gives {len(dataset)} questions"
            + (f" (data.train_max_samples={samples})" if samples and samples > 0 else "")
            + f", a step needs {needed} (data.train_batch_size); lower that, or give more questions"
        )
    _check_prompt_lengths(config, key, dataset, tokenizer)
    return dataset


def _check_given_tests(config: DictConfig, settings: RecipeSettings, train: QuestionDataset) -> None:
    """Every question brings the tests that the Code LLM is to be rewarded on."""
    if not settings.rewards.uses_given_tests:
        return
    without = [question.id for question in train.questions if not given_tests(question, settings.rewards)]
    if without:
        column = "tests" if settings.rewards.code_tests == "hidden" else "golden_tests"
        raise SettingsError(
            f"rewards.code_tests={settings.rewards.code_tests} needs the column {column!r}, which {len(without)} of "
            f"{len(train)} questions of data.train_files={config.data.train_files!r} leave empty, the first is "
            f"{without[0]!r}; fill it, take those rows out, or leave rewards.code_tests at suites"
        )


def _check_prompt_lengths(config: DictConfig, key: str, dataset: QuestionDataset, tokenizer: Any) -> None:
    from .sampling_parameters import prompt_token_ids

    limit = policy_view(config, "code").actor_rollout_ref.rollout.prompt_length
    template = find_prompt_pair(config.prompts.name).code
    lengths = {
        question.id: len(prompt_token_ids(tokenizer, render(template, prompt=question.prompt)))
        for question in dataset.questions
    }
    too_long = {identity: length for identity, length in lengths.items() if length > limit}
    if too_long:
        identity, length = max(too_long.items(), key=lambda item: item[1])
        raise SettingsError(
            f"data.{key}: {len(too_long)} of {len(lengths)} questions exceed the Code LLM's prompt length of {limit} "
            f"tokens, the longest is {identity!r} with {length}; raise data.max_prompt_length (and "
            "policies.test.rollout.prompt_length with it) or take those rows out"
        )
