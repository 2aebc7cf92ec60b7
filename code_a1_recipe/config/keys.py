"""Finds keys of a composed configuration that are unknown, refused or without effect."""

from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ..algorithm.schedule import POLICY_NAMES
from ..algorithm.settings_block import unknown_key
from .verl_keys import changed_keys, rule_of

# Other projects define the keys of these blocks (a Hugging Face config, vLLM, Ray), so users may add any key.
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
    # This entry is a single key, which verl's dataclasses have and verl's YAML files lack.
    "rollout.enable_sleep_mode",
)


def key_problems(tree: DictConfig, base: DictConfig, overrides: Sequence[str]) -> dict[str, str]:
    """Return a message for each key that a run must not set.

    Args:
        tree: the composed configuration of a run.
        base: the composed ``code_a1.yaml``, which has all keys of verl and of the recipe.
        overrides: words of the command line, in the form ``key=value``.
    """
    return dict([*_unknown_keys(tree, base), *changed_keys(tree, base, "refused"), *_overruled(tree, overrides)])


def _unknown_keys(tree: DictConfig, base: DictConfig) -> Iterator[tuple[str, str]]:
    """Yield each unknown key with its message. Keys below an unknown block are skipped."""
    known = set(_keys(OmegaConf.to_container(base)))
    shared = [key.removeprefix("actor_rollout_ref.") for key in known if key.startswith("actor_rollout_ref.")]
    for policy in POLICY_NAMES:
        known.update(f"policies.{policy}.{key}" for key in shared)
    offered = sorted(key for key in known if (rule := rule_of(key)) is None or rule.kind != "refused")
    unknown = ""
    for key in _keys(OmegaConf.to_container(tree)):
        is_free = any(f".{block}." in f".{key}." for block in _FREE_BLOCKS)
        is_below_unknown = key.startswith(f"{unknown}.")
        if key not in known and not is_free and not is_below_unknown:
            unknown = key
            yield key, unknown_key(key, offered)


def _keys(tree: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of nested dictionaries. A block comes before the keys in it."""
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def _overruled(tree: DictConfig, overrides: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each shared value that no policy uses, because both policies have different values.

    Blocks are skipped, since a policy may still use a part of a block.
    """
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if not key.startswith("actor_rollout_ref."):
            continue
        shared = OmegaConf.select(tree, key, default=None)
        if shared is None or OmegaConf.is_config(shared):
            continue
        own = [f"policies.{policy}{key.removeprefix('actor_rollout_ref')}" for policy in POLICY_NAMES]
        if all(OmegaConf.select(tree, own_key, default=shared) != shared for own_key in own):
            yield key, f"{key}={value} has no effect: each policy has a value of its own; set {' and '.join(own)}"
