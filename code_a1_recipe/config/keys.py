"""Problems with single keys of a composed configuration: unknown, removed, refused, or overruled keys."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ..algorithm.schedule import POLICY_NAMES
from ..algorithm.settings_block import unknown_key
from .removed import refused_keys
from .verl_keys import changed_keys

# Blocks whose keys another project defines (a Hugging Face config, vLLM, Ray): users may add any key there.
_FREE_BLOCKS = (
    "model.override_config",
    "rollout.engine_kwargs",
    "fsdp_config.mixed_precision",
    "apply_chat_template_kwargs",
    "ray_kwargs.ray_init",
    "optim.override_optimizer_config",
    "sandbox.limits",
    "data.columns",
    "rewards.code.kwargs",
    "rewards.test.kwargs",
    "micro",
    # No block, but a key that verl's dataclasses have and its YAML files do not.
    "rollout.enable_sleep_mode",
)


def key_problems(tree: DictConfig, base: DictConfig, overrides: Sequence[str]) -> dict[str, str]:
    """A message for each key that a run must not set.

    Args:
        tree: the composed configuration of a run.
        base: the recipe's own configuration, ``code_a1.yaml``. It has all keys of verl and of the recipe.
        overrides: the user's words ``key=value``.
    """
    return dict(
        chain(
            _unknown_keys(tree, base),
            refused_keys(tree),
            changed_keys(tree, base, "refused"),
            _overruled(tree, overrides),
        )
    )


def _unknown_keys(tree: DictConfig, base: DictConfig) -> Iterator[tuple[str, str]]:
    """Each unknown key with its message. The keys below an unknown block are not named."""
    known = set(_keys(OmegaConf.to_container(base)))
    shared = [key.removeprefix("actor_rollout_ref.") for key in known if key.startswith("actor_rollout_ref.")]
    for policy in POLICY_NAMES:
        known.update(f"policies.{policy}.{key}" for key in shared)
    unknown = ""
    for key in _keys(OmegaConf.to_container(tree)):
        is_free = any(f".{block}." in f".{key}." for block in _FREE_BLOCKS)
        is_below_unknown = key.startswith(f"{unknown}.")
        if key not in known and not is_free and not is_below_unknown:
            unknown = key
            yield key, unknown_key(key, sorted(known))


def _keys(tree: Any, prefix: str = "") -> Iterator[str]:
    """Dotted keys of plain dictionaries, a block before its own keys."""
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def _overruled(tree: DictConfig, overrides: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each shared value that nothing would read, since both policies have values of their own.

    A whole block is no such value: a part of it may still be read.
    """
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        shared = OmegaConf.select(tree, key, default=None) if key.startswith("actor_rollout_ref.") else None
        if shared is None or OmegaConf.is_config(shared):
            continue
        own = [f"policies.{policy}{key.removeprefix('actor_rollout_ref')}" for policy in POLICY_NAMES]
        if all(OmegaConf.select(tree, own_key, default=shared) != shared for own_key in own):
            yield key, f"{key}={value} has no effect: each policy has a value of its own; set {' and '.join(own)}"
