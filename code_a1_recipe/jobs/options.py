"""Command-line options that several commands share.

The options of a command are the fields of a frozen dataclass. ``cli.declared`` makes a parameter of each field whose
type is ``Annotated`` with a Typer ``Option`` or ``Argument``. For a repeatable option, the annotation may also have a
function that converts the list of texts to the field's value. The converting function may raise typer.BadParameter.
"""

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
    """Convert texts ``key=value`` to a dictionary. Key and value must not be empty."""
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


def listed_in(known: Collection[object]) -> Callable[[Any], Any]:
    """Make a function that checks whether a value, or each value of a list, is in ``known``."""

    def check(given: object) -> object:
        values = given if isinstance(given, list) else [given]
        for value in values:
            if value not in known:
                named = ", ".join(filter(None, map(str, known)))
                raise typer.BadParameter(f"must be one of {named}, got {value!r}")
        return given

    return check


def in_range(high: float = math.inf, *, ends: str) -> Callable[[Any], Any]:
    """Make a function that checks whether a number lies between 0 and ``high``.

    Args:
        high: upper end.
        ends: brackets of the interval. A round bracket excludes its end, such as 0 in "(0, 1]".
    """
    opening, closing = ends[0], ends[1]

    def check(value: float | None) -> float | None:
        if value is None:
            return value
        is_above = value > 0 or (value == 0 and opening == "[")
        is_below = value < high or (value == high and closing == "]")
        if not (is_above and is_below):  # a comparison with NaN is False, so NaN is refused too
            raise typer.BadParameter(f"must be in {opening}0, {high:g}{closing}, got {value!r}")
        return value

    return check


def _json_lines(path: Path) -> Path:
    """Refuse a file name with the ending of another format, because readers take the format from the ending."""
    if path.suffix in (".parquet", ".csv"):
        raise typer.BadParameter(f"is written as JSON lines; name it {path.with_suffix('.jsonl')}, got {path}")
    return path


Adapter = Annotated[
    str,
    Option(callback=listed_in(("auto", *ADAPTERS)), help="format of the files' columns; auto detects it"),
]
Columns = Annotated[
    Mapping[str, str],
    Option(metavar="NAME=COLUMN", help="a native column and its name in the file; repeatable"),
    _columns,
]
Workers = Annotated[int, Option(min=1, help="number of judge processes", show_default="number of cores")]
Seed = Annotated[int, Option(help="seed of the sampling")]
Overwrite = Annotated[bool, Option(help="replace existing outputs")]
Tier = Annotated[int, Option(callback=listed_in(LOCAL_TIERS), help="confinement tier of programs")]
AllowMissing = Annotated[
    tuple[str, ...],
    Option(callback=listed_in(OPTIONAL_FEATURES), metavar="NAME", help="protection that the kernel may lack"),
]
ResumedFile = Annotated[
    Path,
    Option(callback=_json_lines, help="file of JSON lines to write; a repeated command resumes from it"),
]
