"""Settings of the ideas beside the paper, both the shipped ideas and a user's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from reward_fns import load_module, reward_file

from ..algorithm.hooks import Extension
from ..algorithm.settings import RecipeSettings
from ..algorithm.settings_block import NamedCode
from ..algorithm.user_code import user_code
from ..errors import CodeA1Error, SettingsError
from .hindsight import HindsightSettings
from .own import OwnExtension, hook_problems
from .states import saved_states


class ExtensionChoice(NamedCode):
    """A user's own extension."""

    name: str
    """Name of a subclass of ``algorithm.hooks.Extension`` at ``path``."""
    path: str
    """``pkg://package.module`` or a Python file that every node has under this path."""

    def load(self, *, place: str) -> OwnExtension:
        """Make an instance of the extension; ``place`` names the block in errors.

        Raises:
            SettingsError: the class does not exist, does not take its arguments, or has methods that are no hooks.
        """
        try:
            kind = getattr(load_module(self.path), self.name, None)
        except ValueError as error:
            raise SettingsError(f"{place}: {error}") from error
        place = f"{place}: {self.path}"
        if not (isinstance(kind, type) and issubclass(kind, Extension)):
            hint = f"define `class {self.name}(Extension)` there; Extension is in code_a1_recipe.algorithm.hooks"
            raise SettingsError(f"{place} has no subclass {self.name!r} of Extension; {hint}")
        if problems := list(hook_problems(kind)):
            raise SettingsError(f"{place}: {self.name}: {'; '.join(problems)}")
        try:
            with user_code(f"{place}: {self.name}", kind):
                own = kind(**self.kwargs)
        except CodeA1Error as error:
            hint = f"`kwargs` holds its keyword arguments, got {self.kwargs!r}"
            raise SettingsError(f"{error}; {hint}") from error
        if not isinstance(own.name, str) or not own.name.isidentifier():
            raise SettingsError(f"{place}: {self.name}.name must be letters, digits and _, got {own.name!r}")
        return OwnExtension(own, where=f"{place}: {self.name}")


class ExtendedSettings(RecipeSettings):
    """The settings of the paper and of the ideas beside it."""

    hindsight: HindsightSettings = HindsightSettings()
    extensions: Annotated[tuple[ExtensionChoice, ...], Field(strict=False)] = ()
    """The user's own extensions: blocks with path, name and kwargs."""

    @property
    def learns_in_hindsight(self) -> bool:
        """Whether the run uses lessons: their weight is above 0, and the run trains a Test LLM."""
        return bool(self.hindsight.weight and self.schedule.test_every and "test" in self.policy_names)

    @property
    def user_files(self) -> dict[str, Path]:
        """The user's own templates, reward functions and extensions, by key."""
        files = super().user_files
        for number, choice in enumerate(self.extensions):
            if file := reward_file(choice.path):
                files[f"extensions[{number}].path"] = file
        return files

    def extension_problems(self) -> Iterator[str]:
        """One message for each of the user's own extensions that cannot be used."""
        names = {"hindsight"}
        for number, choice in enumerate(self.extensions):
            place = f"extensions[{number}]"
            try:
                extension = choice.load(place=place)
                saved_states([extension])  # finds an unusable state before the first checkpoint
            except CodeA1Error as error:
                yield str(error)
                continue
            if extension.name in names:
                yield f"{place}: {choice.name}.name must differ from other extensions' names, got {extension.name!r}"
            names.add(extension.name)
