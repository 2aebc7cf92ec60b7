"""Two answers about a refused value: the key that it was set by, and the configuration without it."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf
from pydantic import TypeAdapter

from ..algorithm.settings_block import Block
from .verl_keys import shared_key, value_at

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?([\w.]+)")


def origin(tree: DictConfig, key: str) -> str:
    """The key that a value was set by.

    A policy without a value of its own has the one of ``actor_rollout_ref``, which may refer to another key.
    """
    written = OmegaConf.to_container(tree, resolve=False)
    if value_at(written, key) is None:
        key = shared_key(key)
    reference = _REFERENCE.match(str(value_at(written, key)))
    return reference.group(1) if reference else key


def without(block: type[Any], raw: Mapping[str, Any], refused: Collection[tuple[Any, ...]]) -> Any:
    """Make a block without its refused values. To read such a value raises AttributeError.

    Args:
        block: the class of the block.
        raw: the plain values of the block.
        refused: places of the refused values: names and indices from this block downwards.
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
    for name in dropped:  # pydantic has filled in the default
        partial.__dict__.pop(name, None)
    return partial
