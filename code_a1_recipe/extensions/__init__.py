"""Ideas beside the paper, each behind the hooks of ``algorithm.hooks``; all are off by default."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithm.hooks import Extension
from ..errors import CodeA1Error
from .hindsight import Hindsight
from .repair import Repair
from .settings import ExtendedSettings


def extensions_of(config: ExtendedSettings) -> tuple[Extension, ...]:
    """New instances of the extensions that a run uses: the shipped ones, then the user's own in their order.

    Raises:
        SettingsError: one of the user's own cannot be used.
    """
    found: list[Extension] = []
    if config.learns_in_hindsight:
        hindsight = Hindsight(
            config.hindsight,
            num_cases=config.episode.cases_per_suite,
        )
        found.append(hindsight)
    if config.episode.repair_turns:
        repair = Repair(
            num_turns=config.episode.repair_turns,
            prompts=config.prompts.name,
            is_pooled=config.rewards.code_tests == "pooled",
        )
        found.append(repair)
    found.extend(own.load() for own in config.extensions)
    return tuple(found)


def after_step(
    extensions: Sequence[Extension],
    found: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """Let all learn from a step, of whose questions ``found`` has ``Episode.found`` in their order; their metrics."""
    metrics: dict[str, float] = {}
    for extension in extensions:
        name = extension.name
        own = [kept[name] for kept in found if name in kept]
        metrics.update(extension.after_step(own))
    return metrics


def saved_states(extensions: Sequence[Extension]) -> dict[str, Any]:
    """A copy of the states that a checkpoint keeps, by name, which later steps do not change.

    Raises:
        CodeA1Error: a state is made of other than JSON values.
    """
    states = {}
    for extension in extensions:
        try:
            state = json.loads(json.dumps(extension.state()))
        except (TypeError, ValueError) as error:
            raise CodeA1Error(f"extensions: state() of {extension.name} must return JSON values: {error}") from error
        if state is not None:
            states[extension.name] = state
    return states


def restore_states(extensions: Sequence[Extension], states: Mapping[str, Any]) -> None:
    """Give each extension its state of ``saved_states``; one that has none there begins empty."""
    for extension in extensions:
        if extension.name in states:
            extension.load_state(states[extension.name])
