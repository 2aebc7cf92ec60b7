"""Commands whose parameters are the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from code_a1_recipe.cli.declared import with_options
from code_a1_recipe.jobs import options as shared
from code_a1_recipe.tools.evaluate.models.options import ModelOptions


@dataclass(frozen=True, kw_only=True)
class Base:
    files: Annotated[Sequence[Path], typer.Argument()]
    columns: shared.Columns = field(default_factory=dict)
    note: str = "not on the command line"


@dataclass(frozen=True, kw_only=True)
class Options(Base):
    size: Annotated[int, typer.Option(min=1)] = 3
    names: Annotated[tuple[str, ...], typer.Option()] = ()
    overwrite: Annotated[bool, typer.Option()] = False
    coverage: Annotated[bool, typer.Option()] = True
    model: ModelOptions = field(default_factory=ModelOptions)
    test_model: ModelOptions = field(default_factory=ModelOptions)


@pytest.fixture
def call():
    """``call(words) -> (options or None, output)``."""

    def run(words):
        seen = []
        app = typer.Typer()

        def command(options: Options) -> None:
            """Text of the help."""
            seen.append(options)

        app.command()(with_options(command))
        result = CliRunner().invoke(app, words)
        return (seen[0] if seen else None), result.output

    # The class stands in this module, where `get_type_hints` finds it.
    return run


def test_what_is_not_given_has_the_default_of_the_dataclass(call):
    options, _ = call("a.jsonl")
    assert options == Options(files=(Path("a.jsonl"),), model=ModelOptions(), test_model=ModelOptions(prefix="test-"))


def test_every_kind_of_option_reaches_its_field(call):
    options, _ = call(
        "a b --size 5 --names a --names b --overwrite --no-coverage --columns prompt=text --model m "
        "--engine tensor_parallel_size=2 --test-model t --test-temperature 0.5"
    )
    assert options == Options(
        files=(Path("a"), Path("b")),
        size=5,
        names=("a", "b"),
        overwrite=True,
        coverage=False,
        columns={"prompt": "text"},
        model=ModelOptions(model="m", engine={"tensor_parallel_size": 2}),
        test_model=ModelOptions(model="t", temperature=0.5, prefix="test-"),
    )


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("", "Missing argument"),
        ("a --size 0", "greater than or equal to 1"),
        ("a --columns prompt", "Invalid value for '--columns': must be key=value"),
        ("a --test-engine x", "Invalid value for '--test-engine': must be key=value"),
        ("a --columns what=text", "unknown native column 'what'"),
        ("a --note x", "No such option"),
        ("a --no-overwrite", "No such option"),
        ("a --test-top-p 0", "must be in (0, 1]"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused(call, words, rule):
    options, output = call(words)
    assert options is None
    assert rule in output
