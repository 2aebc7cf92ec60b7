"""Command-line options that several commands share. A command's options are the fields of a frozen dataclass, each an
``Annotated`` type with Typer's words for it; ``cli.declared`` makes the command's parameters of them. A third part, of
an option that is repeated, is the function that makes one value of its texts; it may raise typer.BadParameter."""

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from sandbox import LOCAL_TIERS, OPTIONAL_FEATURES

from ..data.formats import ADAPTERS
from ..data.reader import COLUMNS
from .cores import usable_cores

NUM_CORES = usable_cores()


def assignments(texts: list[str]) -> dict[str, str]:
    """Several ``key=value`` as a dictionary; neither part is empty."""
    pairs = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not (key and separator and value):
            raise typer.BadParameter(f"must be key=value, got {text!r}")
        pairs[key] = value
    return pairs


def _columns(texts: list[str]) -> dict[str, str]:
    pairs = assignments(texts)
    if unknown := sorted(set(pairs) - set(COLUMNS)):
        raise typer.BadParameter(f"unknown native column {unknown[0]!r}; known: {', '.join(COLUMNS)}")
    return pairs


def one_of(known: Collection[object]) -> Callable[[Any], Any]:
    """A check that a value, or each of a list of values, is one of ``known``."""

    def check(value: object) -> object:
        for one in value if isinstance(value, list) else [value]:
            if one not in known:
                named = ", ".join(str(name) for name in known if name != "")
                raise typer.BadParameter(f"must be one of {named}, got {one!r}")
        return value

    return check


def within(low: float, high: float = math.inf, *, ends: str = "[]") -> Callable[[Any], Any]:
    """A check that a number lies between ``low`` and ``high``; a round bracket leaves the end out: ``(]``."""

    def check(value: float | None) -> float | None:
        if value is None:
            return value
        above = value >= low if ends[0] == "[" else value > low
        if not (above and (value <= high if ends[1] == "]" else value < high)):
            raise typer.BadParameter(f"must be in {ends[0]}{low:g}, {high:g}{ends[1]}, got {value!r}")
        return value

    return check


def _json_lines(path: Path) -> Path:
    """A file named after another format would be refused by whoever reads it next."""
    if path.suffix in (".parquet", ".csv"):
        raise typer.BadParameter(f"is written as JSON lines; name it {path.with_suffix('.jsonl')}, got {path}")
    return path


Adapter = Annotated[str, Option(callback=one_of(("auto", *ADAPTERS)), help="how to read the columns")]
Columns = Annotated[
    Mapping[str, str],
    Option(metavar="NAME=COLUMN", help="a native column and the file's; repeatable"),
    _columns,
]
Workers = Annotated[int, Option(min=1, help="judge processes", show_default="the cores")]
Seed = Annotated[int, Option(help="of sampling")]
Limit = Annotated[int | None, Option(min=1, help="only the first so many problems")]
Overwrite = Annotated[bool, Option(help="replace existing outputs")]
Tier = Annotated[int, Option(callback=one_of(LOCAL_TIERS), help="confinement tier of programs")]
AllowMissing = Annotated[
    tuple[str, ...],
    Option(callback=one_of(OPTIONAL_FEATURES), metavar="NAME", help="a protection this kernel lacks"),
]
JudgeOnly = Annotated[bool, Option(help="judge stored responses; no model is started")]
ResumedFile = Annotated[Path, Option(callback=_json_lines, help="JSON lines; a repeated command resumes")]
ResumedFolder = Annotated[Path, Option(help="folder of responses, verdicts and tables; a repeated command resumes")]
