"""Strict blocks of keys: YAML to frozen types and back, and ``key=value`` changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, cast, get_type_hints

import yaml

Block = TypeVar("Block")
_KINDS = {int: "an integer", float: "a number", bool: "true or false", str: "a text"}


class SimulationError(ValueError):
    """What the simulator was given cannot be used; names rule, value, place and cure. Shown to the user as it is."""


def require(condition: bool, key: str, rule: str, value: object) -> None:
    """Raises SimulationError with key, rule and value where ``condition`` is false."""
    if not condition:
        raise SimulationError(f"{key} must be {rule}, got {value!r}")


def read_block(cls: type[Block], raw: object, *, where: str) -> Block:
    """A frozen dataclass from plain values, blocks inside blocks included.

    Args:
        cls: its fields are numbers, texts, truth values and other such classes.
        where: the block's place, for messages.

    Raises:
        SimulationError: an unknown or missing key, a value of another type, or one that ``cls`` itself refuses.
    """
    known = {entry.name: entry for entry in fields(cast("type[Any]", cls))}
    if not isinstance(raw, Mapping):
        raise SimulationError(f"{where} must be a block of keys, got {raw!r}; known: {', '.join(known)}")
    if unknown := [str(key) for key in raw if key not in known]:
        raise SimulationError(f"unknown keys under {where}: {', '.join(unknown)}; known: {', '.join(known)}")
    if missing := [name for name, entry in known.items() if name not in raw and entry.default is MISSING]:
        raise SimulationError(f"{where} lacks {', '.join(missing)}; every rate is stated, 0 where it does not matter")
    types = get_type_hints(cls)
    return cls(**{key: _value(types[key], value, f"{where}.{key}") for key, value in raw.items()})


def _value(wanted: Any, value: object, where: str) -> Any:
    if is_dataclass(wanted):
        return read_block(cast("type[Any]", wanted), value, where=where)
    if wanted is float and type(value) is str:
        value = _number(value)  # YAML 1.1 reads 1e-5 as a text
    allowed = (int, float) if wanted is float else (wanted,)
    require(type(value) in allowed, where, _KINDS[wanted], value)
    return wanted(value)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def require_ranges(block: object, where: str, *, positive: Sequence[str] = (), counts: Sequence[str] = ()) -> None:
    """Numbers of a block are finite and at least 0; those in ``positive`` above 0, those in ``counts`` at least 1."""
    for entry in fields(cast("Any", block)):
        value = getattr(block, entry.name)
        if type(value) not in (int, float):
            continue
        require(0 <= value < float("inf"), f"{where}.{entry.name}", "at least 0 and finite", value)
        require(entry.name not in positive or value > 0, f"{where}.{entry.name}", "above 0", value)
        require(entry.name not in counts or value >= 1, f"{where}.{entry.name}", "at least 1", value)


def _copy(value: Any) -> Any:
    """Blocks that a YAML alias makes one object become blocks of their own."""
    return {key: _copy(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def changed(raw: Mapping[str, Any], assignments: Sequence[str], *, default: str) -> dict[str, Any]:
    """A copy of nested plain values with some of them replaced.

    Args:
        assignments: ``key=value`` with dots between blocks; a key without a block belongs to block ``default``.

    Raises:
        SimulationError: no ``key=value``, or a key that is not there.
    """
    result: dict[str, Any] = _copy(raw)
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not (key and separator and text):
            raise SimulationError(f"must be key=value, got {assignment!r}")
        *path, name = key.split(".") if key.partition(".")[0] in result else [default, *key.split(".")]
        block: Any = result
        for part in path:
            block = block.get(part) if isinstance(block, dict) else None
        if not isinstance(block, dict) or name not in block:
            known = block if isinstance(block, dict) else result
            raise SimulationError(f"unknown key {key!r}; known there: {', '.join(map(str, known))}")
        try:
            block[name] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise SimulationError(f"{key} must be a plain value, got {text!r}") from error
    return result
