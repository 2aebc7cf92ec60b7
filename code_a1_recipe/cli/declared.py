"""Commands whose parameters are the fields of a dataclass, so that an option is declared once."""

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.models import OptionInfo, ParameterInfo

from ..jobs.options import FromTexts

Reader = Callable[[Mapping[str, Any]], Any]
"""From the values of all parameters of a command to the value of a field, or to the whole dataclass."""


def with_options(run: Callable[[Any], None]) -> Callable[..., None]:
    """The command of ``run``, whose one argument is a dataclass of options.

    A field is a parameter where its type is ``Annotated`` with ``typer.Option`` or ``typer.Argument``. A field
    ``model`` or ``NAME_model`` that is such a dataclass itself gives all of its own, with ``NAME_`` before their names;
    its field ``prefix`` is then "NAME-".
    """
    (options_class,) = (hint for name, hint in typing.get_type_hints(run).items() if name != "return")
    parameters: list[inspect.Parameter] = []
    read_options = _declare(options_class, "", parameters)

    def command(**values: Any) -> None:
        run(read_options(values))

    command.__name__, command.__doc__ = run.__name__, run.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _declare(options_class: type, prefix: str, parameters: list[inspect.Parameter]) -> Reader:
    """Add the parameters of a dataclass, each with ``prefix`` before its name; returns what makes one of values."""
    readers: dict[str, Reader] = {}
    hints = typing.get_type_hints(options_class, include_extras=True)
    for field in dataclasses.fields(options_class):
        hint, *extras = [hints[field.name]]
        if typing.get_origin(hint) is Annotated:
            hint, *extras = typing.get_args(hint)
        info = next((extra for extra in extras if isinstance(extra, ParameterInfo)), None)
        texts = next((extra for extra in extras if isinstance(extra, FromTexts)), None)
        name = f"{prefix}{field.name}"
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            readers[field.name] = _declare(hint, field.name.removesuffix("model"), parameters)
        elif texts is not None:
            parameters.append(_parameter(name, list[str], info, field, is_sequence=True))
            readers[field.name] = partial(_read_texts, name, texts)
        elif info is not None:
            is_sequence = typing.get_origin(hint) is Sequence or Ellipsis in typing.get_args(hint)
            hint = list[typing.get_args(hint)[0]] if is_sequence else hint  # type: ignore[misc]
            parameters.append(_parameter(name, hint, info, field, is_sequence=is_sequence))
            readers[field.name] = partial(_read, name, is_sequence)
    own = {"prefix": prefix.replace("_", "-")} if prefix else {}
    return lambda values: options_class(**{name: read(values) for name, read in readers.items()}, **own)


def _parameter(
    name: str, hint: Any, info: ParameterInfo | None, field: dataclasses.Field[Any], *, is_sequence: bool
) -> inspect.Parameter:
    info, default = copy.copy(info), field.default
    if is_sequence:
        is_required = default is field.default_factory is dataclasses.MISSING
        default = dataclasses.MISSING if is_required else []
    elif hint is bool and default is False and isinstance(info, OptionInfo):
        info.param_decls = (f"--{name.replace('_', '-')}",)  # without a --no-... that says what is so anyway
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
        annotation=Annotated[hint, info],
    )


def _read(name: str, is_sequence: bool, values: Mapping[str, Any]) -> Any:
    return tuple(values[name]) if is_sequence else values[name]


def _read_texts(name: str, texts: FromTexts, values: Mapping[str, Any]) -> Any:
    try:
        return texts.read(values[name])
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint=f"'--{name.replace('_', '-')}'") from error
