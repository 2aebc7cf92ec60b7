"""Commands on finished and running runs: watch, report, export."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ..jobs.options import listed_in


def watch(
    run: Annotated[Path, Argument(help="run folder")],
    once: Annotated[bool, Option("--once", help="print once instead of following the run")] = False,
) -> None:
    """Follow a run in the terminal until it ends: curves, rates, time and the newest step's programs."""
    from ..tools.report.watch import watch as follow

    follow(run, once=once)


def report(run: Annotated[Path, Argument(help="run folder, as given by run_dir")]) -> None:
    """Write a self-contained page with curves and sample episodes. The run may still be going on."""
    from ..tools.report.report import write_report

    typer.echo(f"report: {write_report(run)}")


def export(
    source: Annotated[Path, Argument(help="a run folder, or the folder of one step in its checkpoints")],
    output: Annotated[Path, Option(help="folder to write; --policy both writes its subfolders code/ and test/")],
    policy: Annotated[str, Option(callback=listed_in(("code", "test", "both")), help="code, test or both")] = "code",
    step: Annotated[str, Option(help="latest, best, or a saved step")] = "latest",
) -> None:
    """Write a trained policy as a plain Hugging Face folder, which transformers and vLLM can load.

    The folder's README.md is a model card: base model, training data, held-out figures, versions and command.
    `hf upload org/name FOLDER` uploads the folder with the card.
    """
    from ..tools.report.model_card import model_card
    from ..training.checkpoint.export import export as export_policies

    written = export_policies(
        source,
        output,
        policy=policy,
        step=step,
        card_of=model_card,
    )
    for name, folder in written.items():
        typer.echo(f"{name} policy: {folder}")
