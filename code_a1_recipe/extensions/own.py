"""Calls the hooks of a user's own extension, checks their results, and names the hook and the line in errors."""

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..algorithm.episode_types import EpisodeTask
from ..algorithm.hooks import Extension
from ..algorithm.settings_block import near_misses
from ..algorithm.user_code import user_code

HOOKS = {name: hook for name, hook in vars(Extension).items() if inspect.isfunction(hook)}


def hook_problems(kind: type[Extension]) -> Iterator[str]:
    """One message for each method that looks like a hook with a wrong name, or is a hook with a wrong signature."""
    for name, method in vars(kind).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        hook = HOOKS.get(name)
        if hook is None:
            # A user's helper method may have any name that does not look like a misspelled hook.
            if near := near_misses(name, HOOKS):
                yield f"{name} is no hook (did you mean {near}?)"
            continue
        if inspect.iscoroutinefunction(method):
            yield f"{name} must not be async"
        wanted, given = inspect.signature(hook), inspect.signature(method)
        try:
            # Hooks are called with positional arguments, so a user may choose other names for the parameters.
            given.bind(*wanted.parameters)
        except TypeError:
            yield f"{name} must take {wanted}, got {given}"


def _task(changed: Any) -> EpisodeTask:
    if not isinstance(changed, EpisodeTask) or not all(isinstance(call, str) for call in changed.history):
        raise TypeError(f"must return an EpisodeTask whose history holds calls as texts, got {changed!r:.200}")
    return changed


def _metrics(returned: Any) -> dict[str, float]:
    metrics = dict(returned)
    for name, value in metrics.items():
        is_finite = isinstance(value, int | float) and math.isfinite(value)
        if not is_finite or not isinstance(name, str):
            raise TypeError(f"must return finite numbers by names, got {name!r}: {value!r}")
    return metrics


_CHECKED: dict[str, Callable[[Any], Any]] = {
    "before_episode": _task,
    "after_step": _metrics,
    # A hook may be a generator. Making a list runs it to its end inside the block that reports errors.
    "metrics": lambda pairs: [(name, float(value)) for name, value in pairs],
    "extra_groups": list,
    "imitated": list,
}
"""Hook -> check of what it returns."""


class OwnExtension(Extension):
    """Calls a user's extension and checks its results."""

    def __init__(self, own: Extension, *, where: str) -> None:
        """``where`` names the extension in errors."""
        self.own = own
        self.name = own.name
        for hook in HOOKS:
            setattr(self, hook, partial(self._call, f"{where}, {hook}", hook))

    def _call(self, place: str, hook: str, *arguments: Any) -> Any:
        for argument in arguments:
            task = getattr(argument, "task", argument)  # of a JudgedQuestion
            if isinstance(task, EpisodeTask):
                place += f" of question {task.question.id!r}"
        with user_code(place, type(self.own)):
            return _CHECKED.get(hook, lambda result: result)(getattr(self.own, hook)(*arguments))
