"""Calls the hooks of a user's own extension, checks their results, and names the hook and the line in errors."""

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..algorithm.episode_types import Episode, EpisodeTask
from ..algorithm.hooks import Extension, ExtraGroup, Imitated, JudgedQuestion
from ..algorithm.mistake_book import MistakeBook
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


class OwnExtension(Extension):
    """Calls a user's extension and checks its results."""

    def __init__(self, own: Extension, *, where: str) -> None:
        """``where`` names the extension in errors."""
        self.own = own
        self.name = own.name
        self._where = where

    def _in(self, hook: str) -> AbstractContextManager[None]:
        return user_code(f"{self._where}, {hook}", type(self.own))

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        with self._in(f"before_episode of question {task.question.id!r}"):
            changed = self.own.before_episode(task, book)
            is_task = isinstance(changed, EpisodeTask)
            if not is_task or not all(isinstance(call, str) for call in changed.history):
                raise TypeError(f"must return an EpisodeTask whose history holds calls as texts, got {changed!r:.200}")
            return changed

    def after_step(self, found: Sequence[Any]) -> dict[str, float]:
        with self._in("after_step"):
            metrics = dict(self.own.after_step(found))
            for name, value in metrics.items():
                is_finite = isinstance(value, int | float) and math.isfinite(value)
                if not is_finite or not isinstance(name, str):
                    raise TypeError(f"must return finite numbers by names, got {name!r}: {value!r}")
            return metrics

    def state(self) -> Any:
        with self._in("state"):
            return self.own.state()

    def load_state(self, state: Any) -> None:
        with self._in("load_state"):
            self.own.load_state(state)

    def needs_all_cases(self, task: EpisodeTask) -> bool:
        with self._in("needs_all_cases"):
            return self.own.needs_all_cases(task)

    def after_verdicts(self, judged: JudgedQuestion) -> Any:
        with self._in(f"after_verdicts of question {judged.task.question.id!r}"):
            return self.own.after_verdicts(judged)

    # The next three hooks may be generators. Making a list runs the generator to its end inside the block that reports
    # errors.
    def metrics(self, episode: Episode) -> Iterable[tuple[str, float]]:
        with self._in("metrics"):
            return [(name, float(value)) for name, value in self.own.metrics(episode)]

    def extra_groups(self, episode: Episode) -> Iterable[ExtraGroup]:
        with self._in("extra_groups"):
            return list(self.own.extra_groups(episode))

    def imitated(self, task: EpisodeTask) -> Iterable[Imitated]:
        with self._in("imitated"):
            return list(self.own.imitated(task))
