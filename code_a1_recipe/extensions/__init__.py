"""Ideas beside the paper. All extensions use the hooks of ``algorithm.hooks``, and are off by default."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithm.hooks import Extension
from .hindsight import Hindsight
from .settings import ExtendedSettings


def extensions_of(config: ExtendedSettings) -> tuple[Extension, ...]:
    """Make instances of the run's extensions: first the shipped ones, then the user's own in their order.

    Raises:
        SettingsError: one of the user's own extensions cannot be used.
    """
    extensions: list[Extension] = []
    if config.learns_in_hindsight:
        extensions.append(Hindsight(config.hindsight, num_cases=config.episode.cases_per_suite))
    extensions += [choice.load(place=f"extensions[{number}]") for number, choice in enumerate(config.extensions)]
    return tuple(extensions)


def after_step(extensions: Sequence[Extension], found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Let each extension learn from a step.

    Args:
        extensions: the trainer's instances.
        found: ``Episode.found`` of each question of the step.

    Returns:
        The metrics of all extensions together.
    """
    metrics: dict[str, float] = {}
    for extension in extensions:
        own_results = [kept[extension.name] for kept in found if extension.name in kept]
        metrics |= extension.after_step(own_results)
    return metrics
