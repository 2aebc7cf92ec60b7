"""Settings of the ideas beside the paper, shipped ones and a user's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from reward_fns import load_module, reward_file

from ..algorithm.hooks import Extension
from ..algorithm.rewards import RewardChoice
from ..algorithm.settings import RecipeSettings
from ..errors import SettingsError
from .hindsight import HindsightSettings


class ExtensionChoice(RewardChoice):
    """An extension of a user's own."""

    name: str
    """Name of a subclass of ``algorithm.hooks.Extension`` at ``path``."""
    path: str
    """``pkg://package.module`` or a Python file, which every node has under this path."""

    def load(self) -> Extension:
        """A new instance.

        Raises:
            SettingsError: the class is not there, or does not take its arguments.
        """
        place = f"extensions: {self.path}"
        try:
            kind = getattr(load_module(self.path), self.name, None)
        except ValueError as error:
            raise SettingsError(f"extensions: {error}") from error
        if not (isinstance(kind, type) and issubclass(kind, Extension)):
            hint = f"define `class {self.name}(Extension)` there; Extension is in code_a1_recipe.algorithm.hooks"
            raise SettingsError(f"{place} has no subclass {self.name!r} of Extension; {hint}")
        try:
            return kind(**self.kwargs)
        except Exception as error:  # a user's class may raise anything
            hint = f"`kwargs` holds its keyword arguments, got {self.kwargs!r}"
            raise SettingsError(f"{place}: {self.name} raises {type(error).__name__}: {error}; {hint}") from error


class ExtendedSettings(RecipeSettings):
    """The paper's settings and those of the ideas beside it."""

    hindsight: HindsightSettings = HindsightSettings()
    extensions: Annotated[tuple[ExtensionChoice, ...], Field(strict=False)] = ()
    """Extensions of a user's own: blocks with path, name and kwargs."""

    @property
    def learns_in_hindsight(self) -> bool:
        """Lessons are looked for: there is a Test LLM that learns."""
        return bool(self.hindsight.weight and self.schedule.test_every and "test" in self.policy_names)

    @property
    def user_files(self) -> dict[str, Path]:
        """Templates, reward functions and extensions of the user's own, by key."""
        files = {f"extensions[{number}].path": reward_file(own.path) for number, own in enumerate(self.extensions)}
        return super().user_files | {key: file for key, file in files.items() if file is not None}

    def extension_problems(self) -> Iterator[str]:
        """Why an extension of the user's own cannot be used, one message for each."""
        names = {"", "hindsight", "repair"}
        for own in self.extensions:
            try:
                name = own.load().name
            except SettingsError as error:
                yield str(error)
                continue
            if name in names:
                rule = "a text that no other extension has"
                yield f"extensions: {own.path}: {own.name}.name must be {rule}, got {name!r}"
            names.add(name)
