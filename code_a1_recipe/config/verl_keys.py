"""Reads ``verl_keys.yaml``: for each key of verl's configuration, whether it is honoured, refused or without effect."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from omegaconf import DictConfig, OmegaConf

from ..algorithm.schedule import POLICY_NAMES

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)")
_FILE = Path(__file__).with_suffix(".yaml")
_POLICY_KEY = re.compile(rf"^policies\.({'|'.join(POLICY_NAMES)})\.")


class KeyRule(NamedTuple):
    """Kind of a key, with a hint for users."""

    kind: Literal["honoured", "refused", "no_effect"]
    hint: str = ""
    """Names an alternative, or says why the key changes nothing."""


def changed_keys(tree: DictConfig, base: DictConfig, kind: str) -> Iterator[tuple[str, str]]:
    """Yield each key of the given kind whose value differs from the recipe's value, with a message.

    Args:
        tree: the composed configuration of a run.
        base: the composed ``code_a1.yaml``.
        kind: "refused" or "no_effect".
    """
    plain: Any = OmegaConf.to_container(tree, resolve=False)
    own: Any = OmegaConf.to_container(base, resolve=False)
    for key, value in leaves(plain):
        rule = rule_of(key)
        if rule is None or rule.kind != kind:
            continue
        if value != value_at(own, shared_key(key)):
            what = "is not honoured here" if kind == "refused" else "has no effect here"
            yield key, f"{key}={value!r} {what}: {rule.hint}"


def rule_of(key: str) -> KeyRule | None:
    """Return the rule of a key, or of the nearest block above it. None: verl has no such key."""
    key = shared_key(key)
    while key and key not in _table():
        key = key.rpartition(".")[0]
    return _table().get(key)


def shared_key(key: str) -> str:
    """Turn a policy's key into the key that sets it for both policies. Return any other key unchanged."""
    return _POLICY_KEY.sub("actor_rollout_ref.", key)


@cache
def _table() -> dict[str, KeyRule]:
    loaded = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    rules = {key: KeyRule("honoured") for key in loaded["honoured"]}
    for kind in ("refused", "no_effect"):
        for key, hint in loaded[kind].items():
            rules[key] = KeyRule(kind, hint)
    return rules


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of each leaf of nested dictionaries."""
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def value_at(tree: Any, key: str) -> Any:
    """Look up a dotted key in nested dictionaries. None: there is no such key."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def origin(tree: DictConfig, key: str) -> str:
    """Find the key that set a value.

    A policy without its own value uses the value in ``actor_rollout_ref``, which may refer to another key.
    """
    written = OmegaConf.to_container(tree, resolve=False)
    if value_at(written, key) is None:
        key = shared_key(key)
    reference = _REFERENCE.match(str(value_at(written, key)))
    return reference.group(1) if reference else key
