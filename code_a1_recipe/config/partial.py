"""What a refused value leaves behind: the key it was set by, and the blocks without it."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf
from pydantic import TypeAdapter

from ..algorithm.settings_block import Block
from .verl_keys import value_at

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)")


def origin(tree: DictConfig, key: str) -> str:
    """The key that a value was set by: a policy's may come from ``actor_rollout_ref``, and that by an interpolation."""
    written = OmegaConf.to_container(tree, resolve=False)
    if key.startswith("policies.") and value_at(written, key) is None:
        key = f"actor_rollout_ref.{key.split('.', 2)[2]}"
    reference = _REFERENCE.match(str(value_at(written, key)))
    return reference.group(1) if reference else key


def without(block: type[Any], raw: Mapping[str, Any], refused: Collection[tuple[Any, ...]]) -> Any:
    """The block without the values at the places that were refused: to read one of them is an AttributeError."""
    values, dropped = {}, []
    for name, field in block.model_fields.items():
        below = [place[1:] for place in refused if place[0] == name]
        kind = field.annotation
        if not below and name in raw:
            values[name] = TypeAdapter(field.rebuild_annotation()).validate_python(raw[name])
        elif () not in below and isinstance(kind, type) and issubclass(kind, Block):
            values[name] = without(kind, raw[name], below)
        elif below:
            dropped.append(name)
    partial = block.model_construct(**values)
    for name in dropped:
        partial.__dict__.pop(name, None)
    return partial
