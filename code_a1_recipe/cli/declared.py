"""Commands whose parameters are the fields of a dataclass, so that an option is declared once."""

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.models import OptionInfo, ParameterInfo

from ..jobs.options import FromTexts


def with_options(run: Callable[[Any], None]) -> Callable[..., None]:
    """The command of ``run``, whose one argument is a dataclass of options.

    A field is a parameter where its type is ``Annotated`` with ``typer.Option`` or ``typer.Argument``. A field
    ``model`` or ``NAME_model`` that is such a dataclass itself gives all of its own, with ``NAME_`` before their names;
    its field ``prefix`` is then "NAME-".
    """
    (options_class,) = (hint for name, hint in typing.get_type_hints(run).items() if name != "return")
    parameters = list(_parameters(options_class, prefix=""))

    def command(**values: Any) -> None:
        run(_filled(options_class, values, prefix=""))

    command.__name__, command.__doc__ = run.__name__, run.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


@dataclasses.dataclass(frozen=True, slots=True)
class _Declared:
    """One field as the command line sees it."""

    field: dataclasses.Field[Any]
    hint: Any
    """Without ``Annotated``."""
    info: ParameterInfo | None
    texts: FromTexts | None

    @property
    def prefix(self) -> str | None:
        """Before the names of the fields of a dataclass in a field; None for other fields."""
        return self.field.name.removesuffix("model") if dataclasses.is_dataclass(self.hint) else None

    @property
    def is_sequence(self) -> bool:
        if self.texts is not None or typing.get_origin(self.hint) is Sequence:
            return True
        return typing.get_origin(self.hint) is tuple and Ellipsis in typing.get_args(self.hint)

    def parameter(self, prefix: str) -> inspect.Parameter:
        hint, info = self.hint, copy.copy(self.info)
        name = f"{prefix}{self.field.name}"
        default = self.field.default
        if self.is_sequence:
            hint = list[str] if self.texts else list[typing.get_args(hint)[0]]  # type: ignore[misc]
            is_required = default is self.field.default_factory is dataclasses.MISSING
            default = dataclasses.MISSING if is_required else []
        elif hint is bool and default is False and isinstance(info, OptionInfo):
            info.param_decls = (f"--{name.replace('_', '-')}",)  # without a --no-... that says what is so anyway
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
            annotation=Annotated[hint, info],
        )

    def value(self, given: Any, prefix: str) -> Any:
        if self.texts is not None:
            try:
                return self.texts.read(given)
            except typer.BadParameter as error:
                option = f"--{prefix}{self.field.name}".replace("_", "-")
                raise typer.BadParameter(error.message, param_hint=f"'{option}'") from error
        return tuple(given) if self.is_sequence else given


def _declared(options_class: type) -> Iterator[_Declared]:
    hints = typing.get_type_hints(options_class, include_extras=True)
    for field in dataclasses.fields(options_class):
        hint, *extras = [hints[field.name]]
        if typing.get_origin(hint) is Annotated:
            hint, *extras = typing.get_args(hint)
        info = next((extra for extra in extras if isinstance(extra, ParameterInfo)), None)
        texts = next((extra for extra in extras if isinstance(extra, FromTexts)), None)
        declared = _Declared(field, hint, info, texts)
        if info is not None or declared.prefix is not None:
            yield declared


def _parameters(options_class: type, *, prefix: str) -> Iterator[inspect.Parameter]:
    for declared in _declared(options_class):
        if declared.prefix is not None:
            yield from _parameters(declared.hint, prefix=declared.prefix)
        else:
            yield declared.parameter(prefix)


def _filled(options_class: type, values: Mapping[str, Any], *, prefix: str) -> Any:
    given = {
        declared.field.name: _filled(declared.hint, values, prefix=declared.prefix)
        if declared.prefix is not None
        else declared.value(values[f"{prefix}{declared.field.name}"], prefix)
        for declared in _declared(options_class)
    }
    if prefix:
        given["prefix"] = prefix.replace("_", "-")
    return options_class(**given)
