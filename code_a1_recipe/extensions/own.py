"""A user's own extension behind the same hooks: errors name the hook and the line, and results are checked."""

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..algorithm.episode_types import Episode, EpisodeTask
from ..algorithm.hooks import Extension, ExtraGroup, Found, Imitated, JudgedQuestion
from ..algorithm.mistake_book import MistakeBook
from ..algorithm.settings_block import near_misses
from ..algorithm.user_code import user_code

HOOKS = {name: hook for name, hook in vars(Extension).items() if inspect.isfunction(hook)}


def hook_problems(kind: type[Extension]) -> Iterator[str]:
    """One message for each method with a wrong name, wrong parameters, or a wrong ``async``."""
    for name, method in vars(kind).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        hook = HOOKS.get(name)
        if hook is None:
            # A helper of the user's may have any name, unless it looks like a misspelled hook.
            if near := near_misses(name, HOOKS):
                yield f"{name} is no hook (did you mean {near}?)"
            continue
        must_be_async = inspect.iscoroutinefunction(hook)
        if inspect.iscoroutinefunction(method) != must_be_async:
            yield f"{name} must {'' if must_be_async else 'not '}be async"
        wanted, given = inspect.signature(hook), inspect.signature(method)
        try:
            # Hooks are called by position, so the user may name the parameters.
            given.bind(*wanted.parameters)
        except TypeError:
            yield f"{name} must take {wanted}, got {given}"


class OwnExtension(Extension):
    """Calls a user's extension and checks what it returns."""

    def __init__(self, own: Extension, *, where: str) -> None:
        """``where`` names it in errors."""
        self.own, self.name = own, own.name
        self._where = where

    def _in(self, hook: str) -> AbstractContextManager[None]:
        return user_code(f"{self._where}, {hook}", type(self.own))

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        with self._in(f"before_episode of question {task.question.id!r}"):
            changed = self.own.before_episode(task, book)
            if not isinstance(changed, EpisodeTask) or not all(isinstance(call, str) for call in changed.history):
                raise TypeError(f"must return an EpisodeTask with texts of calls as its history, got {changed!r:.200}")
            return changed

    def after_step(self, found: Sequence[Any]) -> dict[str, float]:
        with self._in("after_step"):
            metrics = dict(self.own.after_step(found))
            for name, value in metrics.items():
                if not isinstance(name, str) or not isinstance(value, int | float) or not math.isfinite(value):
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

    async def after_verdicts(self, judged: JudgedQuestion) -> Found:
        with self._in(f"after_verdicts of question {judged.task.question.id!r}"):
            result = await self.own.after_verdicts(judged)
            if not isinstance(result, Found):
                raise TypeError(f"must return a Found, got {result!r:.200}")
            return result

    # The next three hooks may be generators; lists make their errors appear inside the block.
    def metrics(self, episode: Episode) -> Iterable[tuple[str, float]]:
        with self._in("metrics"):
            return [(name, float(value)) for name, value in self.own.metrics(episode)]

    def extra_groups(self, episode: Episode) -> Iterable[ExtraGroup]:
        with self._in("extra_groups"):
            return list(self.own.extra_groups(episode))

    def imitated(self, task: EpisodeTask) -> Iterable[Imitated]:
        with self._in("imitated"):
            return list(self.own.imitated(task))
