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
        found.append(Hindsight(config.hindsight, num_cases=config.episode.cases_per_suite))
    if num_turns := config.episode.repair_turns:
        is_pooled = config.rewards.code_tests == "pooled"
        found.append(Repair(num_turns=num_turns, prompts=config.prompts.name, is_pooled=is_pooled))
    return (*found, *(own.load() for own in config.extensions))


def after_step(extensions: Sequence[Extension], found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Let all learn from a step, of whose questions ``found`` has ``Episode.found`` in their order; their metrics."""
    metrics: dict[str, float] = {}
    for extension in extensions:
        own = [episode[extension.name] for episode in found if extension.name in episode]
        metrics.update(extension.after_step(own))
    return metrics


def saved_states(extensions: Sequence[Extension]) -> dict[str, Any]:
    """A copy of the states that a checkpoint keeps, by name, which later steps do not change.

    Raises:
        CodeA1Error: a state is made of other than JSON values.
    """
    states = {extension.name: extension.state() for extension in extensions}
    try:
        text = json.dumps({name: state for name, state in states.items() if state is not None})
    except (TypeError, ValueError) as error:
        raise CodeA1Error(f"extensions: state() of {', '.join(states)} must return JSON values: {error}") from error
    return dict(json.loads(text))


def restore_states(extensions: Sequence[Extension], states: Mapping[str, Any]) -> None:
    """Give each extension its state of ``saved_states``; one that has none there begins empty."""
    for extension in extensions:
        if extension.name in states:
            extension.load_state(states[extension.name])
