"""Command line: ``code-a1 [train] [PRESET | path/to.yaml] [key=value ...]`` and ``code-a1 score INPUT ...``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from .checkpointing import CheckpointError
from .compose import compose_config, preset_names
from .errors import OutageError
from .launch import configure_logging, name_run, train
from .questions import QuestionError
from .settings import SettingsError

logger = logging.getLogger(__name__)

USAGE_FILE = Path(__file__).parent / "usage.txt"
BROKE_OFF, REFUSED, INTERRUPTED = 1, 2, 130


def default_preset() -> str:
    """`cpu` where torch sees no GPU, else the smallest GPU preset."""
    import torch

    return "qwen2.5-coder-1.5b" if torch.cuda.is_available() else "cpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 trained, 1 the run broke off, 2 the configuration was refused, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] == "score":
        from .score import main as score  # here: training needs none of it

        configure_logging()
        return score(words[1:])
    if words and words[0] == "train":
        words = words[1:]
    if any(word in ("-h", "--help", "help") for word in words):
        sys.stdout.write(USAGE_FILE.read_text(encoding="utf-8").format(presets=", ".join(preset_names())))
        return 0
    configure_logging()
    preset = words.pop(0) if words and "=" not in words[0] else default_preset()
    try:
        config = compose_config(preset, words)
        name_run(config, preset)
    except SettingsError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    try:
        folder = train(config)
    except (SettingsError, QuestionError, CheckpointError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except OutageError as error:
        sys.stderr.write(f"\nerror: {error}\n{_how_to_go_on(config.run_dir)}\n")
        return BROKE_OFF
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; {_how_to_go_on(config.run_dir)}\n")
        return INTERRUPTED
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
    return 0


def _how_to_go_on(run_dir: str) -> str:
    again = f"repeat the command with run_dir={run_dir}"
    return f"what was written is in {run_dir}. To go on from its newest checkpoint, {again}"


if __name__ == "__main__":
    sys.exit(main())
