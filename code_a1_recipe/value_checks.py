"""Checks of configuration values that need neither models nor data."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from .compose import LAYOUTS, SEPARATE, policy_view, pool_of
from .rollout_backend import backend_name
from .runners import check_runner
from .settings import RecipeSettings, SettingsError
from .verl_compat import TRAINER_NAME

_AT_LEAST_ONE = (
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "trainer.n_gpus_per_node",
    "trainer.nnodes",
)
_AT_LEAST_ONE_PER_POLICY = (
    "actor.ppo_mini_batch_size",
    "rollout.prompt_length",
    "rollout.response_length",
    "rollout.tensor_model_parallel_size",
)


def check_settings(config: DictConfig) -> RecipeSettings:
    """Check the recipe's blocks, verl's values that the recipe relies on, and the sizes of a step.

    Raises:
        SettingsError: rule, value, key and cure of the first thing that cannot work.
    """
    raw: Any = OmegaConf.to_container(config, resolve=True)
    settings = RecipeSettings.from_mapping(raw)
    check_runner(settings.sandbox)
    for key in _AT_LEAST_ONE:
        _check_count(OmegaConf.select(config, key), key)
    steps = config.trainer.total_training_steps
    if steps is not None:
        _check_count(steps, "trainer.total_training_steps")
    for key in ("trainer.save_freq", "trainer.test_freq"):
        value = OmegaConf.select(config, key)
        if type(value) is not int:
            raise SettingsError(f"{key} must be an integer, a number of steps (-1: never), got {value!r}")
    _check_one_of(config.trainer.device, ("cpu", "cuda"), "trainer.device")
    if isinstance(config.trainer.logger, str):
        raise SettingsError(f"trainer.logger must be a list such as [tensorboard], got {config.trainer.logger!r}")
    _check_fixed(config.trainer.v1.trainer_mode, TRAINER_NAME, "trainer.v1.trainer_mode")
    _check_fixed(config.algorithm.adv_estimator, "grpo", "algorithm.adv_estimator")
    _check_layout(config, settings)
    groups = groups_per_step(config, settings)
    for name in settings.policy_names:
        view = policy_view(config, name).actor_rollout_ref
        _check_policy_values(view, name, settings)
        _check_sizes(config, view, name, groups=groups[name])
    return settings


def groups_per_step(config: DictConfig, settings: RecipeSettings) -> dict[str, int]:
    """GRPO groups each policy trains on in a step when nothing is masked."""
    questions, selection = config.data.train_batch_size, settings.selection
    per_question = settings.episode.num_candidates if selection.name == "all" else selection.update_n
    suites = questions * per_question if settings.episode.num_suites else 0
    if settings.self_play:
        return {"code": questions + suites}
    return {"code": questions, "test": suites}


def _check_layout(config: DictConfig, settings: RecipeSettings) -> None:
    _check_one_of(config.layout, LAYOUTS, "layout")
    for name in settings.policy_names if config.layout == SEPARATE else ():
        for key in ("nnodes", "n_gpus_per_node"):
            _check_count(OmegaConf.select(config, f"pools.{name}.{key}"), f"pools.{name}.{key}")


def _check_count(value: object, key: str) -> None:
    if type(value) is not int or value < 1:
        raise SettingsError(f"{key} must be an integer of at least 1, got {value!r}")


def _check_one_of(value: object, known: tuple[str, ...], key: str) -> None:
    if value not in known:
        raise SettingsError(f"{key} must be one of {', '.join(known)}, got {value!r}")


def _check_fixed(value: object, wanted: object, key: str) -> None:
    if value != wanted:
        raise SettingsError(f"{key} must be {wanted!r} in this recipe, got {value!r}; leave it out")


def _check_policy_values(view: DictConfig, name: str, settings: RecipeSettings) -> None:
    for key in _AT_LEAST_ONE_PER_POLICY:
        _check_count(OmegaConf.select(view, key), f"policies.{name}.{key}")
    rate = view.actor.optim.lr
    if type(rate) not in (int, float) or rate < 0:
        raise SettingsError(f"policies.{name}.actor.optim.lr must be a number of at least 0, got {rate!r}")
    _check_fixed(view.rollout.name, backend_name(name), f"policies.{name}.rollout.name")
    _check_fixed(view.rollout.calculate_log_probs, True, f"policies.{name}.rollout.calculate_log_probs")
    key, size = {
        "code": ("episode.num_candidates", settings.episode.num_candidates),
        "test": ("episode.num_suites", settings.episode.num_suites),
    }[name]
    if view.rollout.n != size:
        raise SettingsError(
            f"policies.{name}.rollout.n follows {key} = {size}, got {view.rollout.n}; set {key} instead"
        )


def _check_sizes(config: DictConfig, view: DictConfig, name: str, *, groups: int) -> None:
    nodes, gpus = pool_of(config, name)
    devices, where = nodes * gpus, f"pools.{name}" if config.layout == SEPARATE else "trainer"
    rows, mini_batch = groups * view.rollout.n, view.actor.ppo_mini_batch_size
    if rows % devices:
        raise SettingsError(
            f"policy {name}: {groups} groups of {view.rollout.n} responses are {rows} rows a step, which "
            f"{devices} devices ({where}.n_gpus_per_node * {where}.nnodes) cannot share evenly; change "
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
    needed, limit = view.rollout.prompt_length + view.rollout.response_length, view.rollout.max_model_len
    if limit is not None and needed > limit:
        raise SettingsError(
            f"policies.{name}.rollout: prompt_length {view.rollout.prompt_length} + response_length "
            f"{view.rollout.response_length} = {needed} tokens exceed max_model_len {limit}"
        )
