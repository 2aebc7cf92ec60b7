"""Finds the key that set a refused value, and makes a configuration without refused values."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf
from pydantic import TypeAdapter

from ..algorithm.settings_block import Block
from .verl_keys import shared_key, value_at

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)")


def origin(tree: DictConfig, key: str) -> str:
    """Find the key that set a value.

    A policy without its own value uses the value in ``actor_rollout_ref``, which may refer to another key.
    """
    written = OmegaConf.to_container(tree, resolve=False)
    if value_at(written, key) is None:
        key = shared_key(key)
    reference = _REFERENCE.match(str(value_at(written, key)))
    return reference.group(1) if reference else key


def without(block: type[Any], raw: Mapping[str, Any], refused: Collection[tuple[Any, ...]]) -> Any:
    """Make a block without its refused values. Reading a refused value raises AttributeError.

    Args:
        block: the class of the block.
        raw: the plain values of the block.
        refused: paths to the refused values. A path is a tuple of names and indices that starts in this block.
    """
    values, dropped = {}, []
    for name, field in block.model_fields.items():
        below = [place[1:] for place in refused if place[0] == name]
        kind = field.annotation
        if not below:
            if name in raw:
                values[name] = TypeAdapter(field.rebuild_annotation()).validate_python(raw[name])
        elif () not in below and isinstance(kind, type) and issubclass(kind, Block):
            values[name] = without(kind, raw[name], below)
        else:
            dropped.append(name)
    partial = block.model_construct(**values)
    for name in dropped:  # pydantic has set the dropped fields to defaults
        partial.__dict__.pop(name, None)
    return partial
