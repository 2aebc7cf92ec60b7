"""Typer commands whose parameters are the fields of a dataclass. So each option is declared in only one place."""

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
"""A function that makes a field's value, or a whole dataclass, from the values of all parameters of a command."""


def with_options(run: Callable[[Any], None]) -> Callable[..., None]:
    """Make a Typer command from ``run``, whose only parameter ``options`` is a dataclass.

    A field becomes a parameter if its type is ``Annotated`` with ``typer.Option`` or ``typer.Argument``. A field called
    ``model`` or ``NAME_model`` may hold another dataclass of options. The fields of this dataclass become parameters
    too, with ``NAME_`` before their names. The dataclass's field ``prefix`` gets the value "NAME-".
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
    """Append one parameter to ``parameters`` for each field of a dataclass.

    A parameter's name is ``prefix``, followed by the field's name.

    Returns:
        A function that makes the dataclass from the values of the parameters.
    """
    readers = {}
    hints = typing.get_type_hints(options_class, include_extras=True)
    for field in dataclasses.fields(options_class):
        name = f"{prefix}{field.name}"
        hint = hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            readers[field.name] = _declare(hint, field.name.removesuffix("model"), parameters)
        if typing.get_origin(hint) is not Annotated:
            continue
        hint, info, *list_readers = typing.get_args(hint)
        parts = typing.get_args(hint)
        read: Callable[[Any], Any] | None = None
        if list_readers:  # a function converts the option's texts
            hint = list[str]
            read = list_readers[0]
        elif typing.get_origin(hint) is Sequence or Ellipsis in parts:
            hint = list[parts[0]]  # type: ignore[valid-type]
            read = tuple
        info = copy.copy(info)  # several dataclasses may share one Option
        default = field.default
        if default is field.default_factory:  # both are MISSING: the field has no default
            default = inspect.Parameter.empty
        elif read is not None:
            default = []
        elif hint is bool and default is False:
            info.param_decls = (f"--{name.replace('_', '-')}",)  # no option --no-NAME: it would change nothing
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[hint, info],
            )
        )
        readers[field.name] = itemgetter(name) if read is None else partial(_read_list, name, read)
    fixed = {"prefix": prefix.replace("_", "-")} if prefix else {}

    def read_options(values: Mapping[str, Any]) -> Any:
        given = {name: read(values) for name, read in readers.items()}
        return options_class(**given, **fixed)

    return read_options


def _read_list(name: str, read: Callable[[Any], Any], values: Mapping[str, Any]) -> Any:
    """Call ``read`` with a parameter's texts.

    Add the option's name to an error, because ``read`` does not know the name.
    """
    try:
        return read(values[name])
    except typer.BadParameter as error:
        option = f"--{name.replace('_', '-')}"
        raise typer.BadParameter(error.message, param_hint=f"'{option}'") from error
