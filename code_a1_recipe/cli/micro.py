"""``code-a1 micro``: the shipped questions and tiny models: made and shown; `code-a1 eval` measures them."""

import dataclasses
import logging
from pathlib import Path
from typing import Annotated

import typer

from ..jobs.options import one_of
from ..micro_world.settings import VARIANTS, MicroSettings
from ..micro_world.world import WORLDS

DEFAULT_SEED = MicroSettings().seed
Seed = Annotated[int, typer.Option(help="of the questions (and models)")]
CacheDir = Annotated[Path | None, typer.Option(help="default: $CODE_A1_CACHE or ~/.cache/code-a1")]
World = Annotated[str, typer.Option(callback=one_of(sorted(WORLDS)), help=f"reach of the inputs: {', '.join(WORLDS)}")]
group = typer.Typer(help="The synthetic task suite: its questions and tiny models.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(group, name="micro", rich_help_panel="Data")


@group.command()
def make(
    seed: Seed = DEFAULT_SEED,
    cache_dir: CacheDir = None,
    world: World = "narrow",
    variant: Annotated[
        str,
        typer.Option(
            callback=one_of(("", *sorted(VARIANTS))),
            help=f"other models in place of the base's: {', '.join(sorted(VARIANTS))}",
        ),
    ] = "",
) -> None:
    """Make the questions and both models, or say where they are."""
    from ..micro_world.assets import ensure_assets

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    assets = ensure_assets(cache_dir, settings=MicroSettings(seed=seed, world=world, variant=variant))
    for field in dataclasses.fields(assets):
        typer.echo(f"{field.name}: {getattr(assets, field.name)}")


@group.command()
def show(
    seed: Seed = DEFAULT_SEED,
    world: World = "narrow",
    hard: Annotated[bool, typer.Option("--hard", help="of the harder split")] = False,
    num: Annotated[int, typer.Option(min=1, max=100, help="questions to print")] = 5,
) -> None:
    """Print questions, their typical mistakes and what detects them."""
    split = MicroSettings(seed=seed, world=world).split()
    typer.echo("\n\n".join(question.describe() for question in (split.hard if hard else split.heldout)[:num]))
