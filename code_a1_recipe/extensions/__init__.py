"""Ideas beside the paper, each behind the hooks of ``algorithm.hooks``; all are off by default."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithm.hooks import Extension
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
            is_pooled=config.rewards.is_pooled,
        )
        found.append(repair)
    own = [choice.load(place=f"extensions[{number}]") for number, choice in enumerate(config.extensions)]
    return (*found, *own)


def after_step(
    extensions: Sequence[Extension],
    found: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """Let all extensions learn from a step; ``found`` is ``Episode.found`` of each question. Returns their metrics."""
    metrics: dict[str, float] = {}
    for extension in extensions:
        name = extension.name
        own = [kept[name] for kept in found if name in kept]
        metrics.update(extension.after_step(own))
    return metrics
