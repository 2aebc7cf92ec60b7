"""Options that several commands share, and their checks."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from sandbox import LOCAL_TIERS, OPTIONAL_FEATURES

from ..data.formats import ADAPTERS
from ..data.reader import COLUMNS
from ..evaluation.models.options import ModelOptions

NUM_CORES = os.cpu_count() or 1


def assignment(text: str) -> tuple[str, str]:
    """``key=value`` as a pair; neither part is empty."""
    key, separator, value = text.partition("=")
    if not (key and separator and value):
        raise typer.BadParameter(f"must be key=value, got {text!r}")
    return key, value


def assignments(texts: list[str]) -> dict[str, str]:
    """Several ``key=value`` as a dictionary."""
    return dict(map(assignment, texts))


def columns(texts: list[str]) -> dict[str, str]:
    """``NAME=COLUMN``: a native column of questions -> the file's column."""
    found = assignments(texts)
    if unknown := sorted(set(found) - set(COLUMNS)):
        raise typer.BadParameter(f"unknown native column {unknown[0]!r}; known: {', '.join(COLUMNS)}")
    return found


def numbers(texts: list[str]) -> dict[str, int | float]:
    """``KEY=NUMBER`` as a dictionary."""
    try:
        return {key: int(value) if value.isdecimal() else float(value) for key, value in assignments(texts).items()}
    except ValueError as error:
        raise typer.BadParameter(f"must be KEY=NUMBER: {error}") from error


def one_of(known: tuple[object, ...]):  # type: ignore[no-untyped-def]  # a callback as Typer wants it
    """A check that a value, or each of a list of values, is one of ``known``."""

    def check(value: object) -> object:
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one not in known:
                raise typer.BadParameter(f"must be one of {', '.join(map(str, known))}, got {one!r}")
        return value

    return check


def within(low: float, high: float = math.inf, *, ends: str = "[]"):  # type: ignore[no-untyped-def]  # as above
    """A check that a number lies between ``low`` and ``high``; a round bracket leaves the end out: ``(]``."""

    def check(value: float | None) -> float | None:
        if value is None:
            return value
        above = value >= low if ends[0] == "[" else value > low
        if not (above and (value <= high if ends[1] == "]" else value < high)):
            raise typer.BadParameter(f"must be in {ends[0]}{low:g}, {high:g}{ends[1]}, got {value!r}")
        return value

    return check


Output = Annotated[Path, typer.Option(help="folder of responses, verdicts and tables; a repeated command resumes")]
Workers = Annotated[int, typer.Option(min=1, help="judge processes", show_default="the cores")]
Seed = Annotated[int, typer.Option(help="of sampling")]
Limit = Annotated[int | None, typer.Option(min=1, help="only the first so many problems")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace existing outputs")]
Columns = Annotated[list[str], typer.Option(metavar="NAME=COLUMN", help="a native column and the file's; repeatable")]
Tier = Annotated[int | None, typer.Option(callback=one_of((None, *LOCAL_TIERS)), help="confinement tier of programs")]
AllowMissing = Annotated[
    list[str],
    typer.Option(callback=one_of(tuple(OPTIONAL_FEATURES)), metavar="NAME", help="a protection this kernel lacks"),
]

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="problems; any file that training reads")]
Adapter = Annotated[str, typer.Option(callback=one_of(("auto", *ADAPTERS)), help="how to read the columns")]
SampleOnly = Annotated[bool, typer.Option("--sample-only", help="store responses and stop, for instance on a GPU node")]
JudgeOnly = Annotated[bool, typer.Option("--judge-only", help="judge stored responses; no model is started")]

_AS_VALIDATED = "of a run as it validated"
_MODEL_PANEL = "The model: where it is and how it samples"


Model = Annotated[
    str | None,
    typer.Option(
        help="a Hugging Face folder or hub id (runs in vLLM here), a run folder, or a step of its checkpoints",
        rich_help_panel=_MODEL_PANEL,
    ),
]
Step = Annotated[str, typer.Option(help="of a run folder: latest, best, or a saved step", rich_help_panel=_MODEL_PANEL)]
Endpoint = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="OpenAI-compatible server instead, such as http://localhost:8000/v1; its key in OPENAI_API_KEY",
        rich_help_panel=_MODEL_PANEL,
    ),
]
EndpointModel = Annotated[
    str | None, typer.Option(metavar="NAME", help="the model's name there", rich_help_panel=_MODEL_PANEL)
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0, max=2, help="0 is greedy", show_default=f"0.7, {_AS_VALIDATED}", rich_help_panel=_MODEL_PANEL),
]
TopP = Annotated[
    float | None,
    typer.Option(callback=within(0, 1, ends="(]"), show_default=f"0.95, {_AS_VALIDATED}", rich_help_panel=_MODEL_PANEL),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=1, help="of a response", show_default="4096, of a run its own", rich_help_panel=_MODEL_PANEL),
]
MaxPromptTokens = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="longer prompts are not asked",
        show_default="8192, of a run its own",
        rich_help_panel=_MODEL_PANEL,
    ),
]
Engine = Annotated[
    list[str],
    typer.Option(
        metavar="KEY=VALUE",
        help="argument of vLLM's engine, such as tensor_parallel_size=2 or dtype=bfloat16; repeatable",
        rich_help_panel=_MODEL_PANEL,
    ),
]


def engine_arguments(texts: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` with values as YAML reads them."""
    import yaml

    found = assignments(texts)
    if odd := next((key for key in found if not key.isidentifier()), None):
        raise typer.BadParameter(f"--engine must be KEY=VALUE, got {odd!r} as a key")
    return {key: yaml.safe_load(value) for key, value in found.items()}


def take_model(given: dict[str, Any], *, prefix: str = "") -> ModelOptions:
    """The options of one model, taken out of a command's; ``prefix`` is "test_" of ``test_model``."""
    names = [field.name for field in dataclasses.fields(ModelOptions) if field.name != "prefix"]
    values = {name: given.pop(f"{prefix}{name}") for name in names}
    return ModelOptions(**{**values, "engine": engine_arguments(values["engine"])}, prefix=prefix.replace("_", "-"))


def with_model(given: dict[str, Any]) -> dict[str, Any]:
    """A command's options with its model as one value, and its columns as a dictionary."""
    given = dict(given)
    return {"model": take_model(given), "columns": columns(given.pop("columns")), **given}
