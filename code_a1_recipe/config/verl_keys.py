"""What each key of verl's configuration does here: honoured, refused, or without effect (``verl_keys.yaml``)."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from omegaconf import DictConfig, OmegaConf

from ..algorithm.schedule import POLICY_NAMES

_FILE = Path(__file__).with_suffix(".yaml")


class KeyRule(NamedTuple):
    """What becomes of a key."""

    kind: Literal["honoured", "refused", "no_effect"]
    hint: str = ""
    """What to do instead, or why nothing happens."""


def rule_of(key: str) -> KeyRule | None:
    """The rule of a key, or of the nearest block above it; None where the table has neither: no key of verl's."""
    key = _shared(key)
    while key:
        if key in _table():
            return _table()[key]
        key = key.rpartition(".")[0]
    return None


def changed_keys(tree: DictConfig, base: DictConfig, kind: str) -> Iterator[str]:
    """A message for each key of a kind whose value is not that of the recipe's own configuration.

    Args:
        tree: the composed configuration of a run.
        base: the recipe's own, ``code_a1.yaml``.
        kind: "refused" or "no_effect".
    """
    plain: Any = OmegaConf.to_container(tree, resolve=False)
    own: Any = OmegaConf.to_container(base, resolve=False)
    for key, value in leaves(plain):
        rule = rule_of(key)
        if rule is not None and rule.kind == kind and value != value_at(own, _shared(key)):
            what = "is not honoured here" if kind == "refused" else "has no effect here"
            yield f"{key}={value!r} {what}: {rule.hint}"


def _shared(key: str) -> str:
    """The key of both policies that one of a single policy stands for; any other as it is."""
    for policy in POLICY_NAMES:
        if key.startswith(f"policies.{policy}."):
            return "actor_rollout_ref." + key.removeprefix(f"policies.{policy}.")
    return key


@cache
def _table() -> dict[str, KeyRule]:
    loaded = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    rules = {key: KeyRule("honoured") for key in loaded["honoured"]}
    for kind in ("refused", "no_effect"):
        rules |= {key: KeyRule(kind, hint) for key, hint in loaded[kind].items()}
    return rules


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of everything in plain dictionaries that holds no further key."""
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def value_at(tree: Any, key: str) -> Any:
    """The value of a dotted key in plain dictionaries; None where there is none."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree
