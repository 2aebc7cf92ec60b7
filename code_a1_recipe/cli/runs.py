"""Commands on finished and running runs: report, export."""

from pathlib import Path
from typing import Annotated

import typer

from ..jobs.options import one_of


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(rich_help_panel="Runs")(watch)
    app.command(rich_help_panel="Runs")(report)
    app.command(rich_help_panel="Runs")(export)


def watch(
    run: Annotated[Path, typer.Argument(help="run folder")],
    once: Annotated[bool, typer.Option(help="print the first page once; so it is where stdout is no terminal")] = False,
) -> None:
    """Follow a run in the terminal: curves, episodes, what broke what, rates and time. Writes nothing."""
    from ..analysis.watch import watch as follow

    follow(run, once=once)


def report(
    run: Annotated[Path, typer.Argument(help="run folder: what was given as run_dir")],
    serve: Annotated[bool, typer.Option(help="show the page at an address of this machine instead")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="with --serve; 0: any free one")] = 0,
) -> None:
    """Write one self-contained page with curves and sample episodes, also while a run is going on.

    With --serve nothing is written; the page follows the run until Ctrl-C.
    """
    from ..analysis.report import write_report
    from ..analysis.report_server import serve as serve_report

    if serve:
        serve_report(run, port=port, tell=typer.echo)
        return
    typer.echo(f"report: {write_report(run)}")


def export(
    source: Annotated[Path, typer.Argument(help="a run folder, or the folder of one step in its checkpoints")],
    output: Annotated[Path, typer.Option(help="folder to write; with --policy both its code/ and test/")],
    policy: Annotated[str, typer.Option(callback=one_of(("code", "test", "both")), help="code, test or both")] = "code",
    step: Annotated[str, typer.Option(help="latest, best, or a step that was saved")] = "latest",
) -> None:
    """Write a trained policy as a plain Hugging Face folder, which transformers and vLLM load as it is.

    Its README.md is a model card: what it was trained from and on, its held-out figures, versions and command.
    `hf upload org/name FOLDER` uploads the folder as it stands.
    """
    from ..analysis.model_card import model_card
    from ..training.checkpoint.export import export as export_policies

    written = export_policies(source, output, policy=policy, step=step, card_of=model_card)
    for name, place in written.items():
        typer.echo(f"{name} policy: {place}")
