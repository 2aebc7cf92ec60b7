"""Command line: ``code-a1 [train] [PRESET | path/to.yaml] [key=value ...]`` and the commands of ``COMMANDS``."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .checkpointing import CheckpointError
from .compose import compose_config, preset_names
from .failures import explain
from .interruption import InterruptedRunError
from .launch import configure_logging, how_to_go_on, name_run, train
from .questions import QuestionError
from .run_folder import RunFolder
from .settings import SettingsError

logger = logging.getLogger(__name__)

USAGE_FILE = Path(__file__).parent / "usage.txt"
BROKE_OFF, REFUSED, INTERRUPTED = 1, 2, 130


def default_preset() -> str:
    """`cpu` where torch sees no GPU, else the smallest GPU preset."""
    import torch

    return "qwen2.5-coder-1.5b" if torch.cuda.is_available() else "cpu"


COMMANDS: dict[str, tuple[str, str]] = {
    "score": (".score", "main"),
    "report": (".analysis.report", "main"),
    "experiment": (".analysis.commands", "experiment"),
    "harvest": (".analysis.commands", "harvest_tests"),
    "rollouts": (".analysis.commands", "rollouts"),
    "timeline": (".analysis.timeline", "main"),
    "simulate": (".simulation.command", "main"),
    "export": (".export", "main"),
    "eval": (".evaluation.command", "main"),
    "data": (".data.command", "main"),
    "select": (".uses.select_command", "main"),
    "attack": (".uses.attack_command", "main"),
    "crossplay": (".uses.crossplay_command", "main"),
    "micro": (".micro.__main__", "main"),
}
"""Beside ``train``, which may be left out: module and function. Imported when asked for, since training needs none."""


def words_of(arguments: Sequence[str] | None) -> list[str]:
    """The command line without the program."""
    return list(sys.argv[1:] if arguments is None else arguments)


def _meant_command(words: Sequence[str]) -> str:
    """The command that the first word is nearly, or empty; presets and settings stay what they are."""
    if not words or "=" in words[0] or words[0] in preset_names() or words[0].endswith((".yaml", ".yml")):
        return ""
    return next(iter(difflib.get_close_matches(words[0], COMMANDS, n=1)), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 trained, 1 the run broke off, 2 the configuration was refused, 130 and 143 interrupted."""
    words = words_of(arguments)
    if words and words[0] in COMMANDS:
        configure_logging()
        module, function = COMMANDS[words[0]]
        try:
            return int(getattr(importlib.import_module(module, __package__), function)(words[1:]))
        except BrokenPipeError:  # `... | head`: whoever reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKE_OFF
    if words and words[0] == "train":
        words = words[1:]
    if any(word in ("-h", "--help", "help") for word in words):
        sys.stdout.write(USAGE_FILE.read_text(encoding="utf-8").format(presets=", ".join(preset_names())))
        return 0
    if "--version" in words:
        sys.stdout.write(f"code-a1 {importlib.metadata.version('code-a1-recipe')}\n")
        return 0
    configure_logging()
    if near := _meant_command(words):
        sys.stderr.write(f"error: unknown command {words[0]!r}; did you mean {near!r}? --help lists them\n")
        return REFUSED
    preset = words.pop(0) if words and "=" not in words[0] else default_preset()
    try:
        config = compose_config(preset, words)
        name_run(config, preset)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    try:
        folder = train(config, command=shlex.join(["code-a1", *words_of(arguments)]))
    except (SettingsError, QuestionError, CheckpointError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except InterruptedRunError as error:
        sys.stderr.write(f"\ninterrupted by {error}; {how_to_go_on(config.run_dir)}\n")
        return error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; {how_to_go_on(config.run_dir)}\n")
        return INTERRUPTED
    except Exception as error:
        told = explain(error, run_dir=config.run_dir)
        if told is None:
            raise
        RunFolder(Path(config.run_dir)).note_error(error)
        sys.stderr.write(f"\nerror: {told}\n{how_to_go_on(config.run_dir)}\n")
        return BROKE_OFF
    sys.stdout.write(
        f"\ntrained: {preset}\n"
        f"  config       {folder.resolved_config}\n"
        f"  metrics      {folder.metrics}\n"
        f"  rollouts     {folder.rollouts}\n"
        f"  Mistake Book {folder.mistake_book}\n"
        f"  checkpoints  {folder.checkpoints}\n"
    )
    if folder.tensorboard.exists():
        sys.stdout.write(f"  TensorBoard  tensorboard --logdir {folder.tensorboard}\n")
    _report(folder)
    return 0


def _report(folder: RunFolder) -> None:
    """What changed on held-out questions, and the page; a run without them is not the worse for it."""
    from .analysis.before_after import change_table
    from .analysis.records import RunRecords
    from .analysis.report import write_report

    try:
        sys.stdout.write(f"  report       {write_report(folder.root)}\n")
        table = change_table(RunRecords.open(folder.root))
    except (ValueError, OSError) as error:
        logger.warning("no report: %s", error)
        return
    if table:
        sys.stdout.write(f"\n{table}\n")


if __name__ == "__main__":
    sys.exit(main())
