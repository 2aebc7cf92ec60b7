"""Commands whose parameters are the fields of a dataclass, so that an option is declared once."""

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Annotated, Any

import typer

Reader = Callable[[Mapping[str, Any]], Any]
"""From the values of all parameters of a command to the value of a field, or to the whole dataclass."""


def with_options(run: Callable[[Any], None]) -> Callable[..., None]:
    """The command of ``run``, whose one argument ``options`` is a dataclass.

    A field is a parameter where its type is ``Annotated`` with ``typer.Option`` or ``typer.Argument``. A field
    ``model`` or ``NAME_model`` that is such a dataclass itself gives all of its own, with ``NAME_`` before their names;
    its field ``prefix`` is then "NAME-".
    """
    parameters: list[inspect.Parameter] = []
    read_options = _declare(typing.get_type_hints(run)["options"], "", parameters)

    def command(**values: Any) -> None:
        run(read_options(values))

    command.__name__, command.__doc__ = run.__name__, run.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _declare(options_class: type, prefix: str, parameters: list[inspect.Parameter]) -> Reader:
    """Add the parameters of a dataclass, each with ``prefix`` before its name; returns what makes one of values."""
    readers = {}
    hints = typing.get_type_hints(options_class, include_extras=True)
    for field in dataclasses.fields(options_class):
        name, hint = f"{prefix}{field.name}", hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            readers[field.name] = _declare(hint, field.name.removesuffix("model"), parameters)
        if typing.get_origin(hint) is not Annotated:
            continue
        hint, info, *texts = typing.get_args(hint)
        read: Callable[[Any], Any] | None = None
        if texts:
            hint, read = list[str], texts[0]
        elif typing.get_origin(hint) is Sequence or Ellipsis in typing.get_args(hint):
            hint, read = list[typing.get_args(hint)[0]], tuple  # type: ignore[misc]
        info, default = copy.copy(info), field.default
        if default is field.default_factory:  # no default of either kind
            default = inspect.Parameter.empty
        elif read is not None:
            default = []
        elif hint is bool and default is False:
            info.param_decls = (f"--{name.replace('_', '-')}",)  # without a --no-... that says what is so anyway
        parameter = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[hint, info],
        )
        parameters.append(parameter)
        readers[field.name] = itemgetter(name) if read is None else partial(_read_list, name, read)
    own = {"prefix": prefix.replace("_", "-")} if prefix else {}
    return lambda values: options_class(**{name: read(values) for name, read in readers.items()}, **own)


def _read_list(name: str, read: Callable[[Any], Any], values: Mapping[str, Any]) -> Any:
    try:
        return read(values[name])
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint=f"'--{name.replace('_', '-')}'") from error
