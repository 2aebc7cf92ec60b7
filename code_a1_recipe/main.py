"""Command line: ``code-a1 [train] [PRESET | path/to.yaml] [key=value ...]``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from .checkpointing import CheckpointError
from .compose import compose_config, preset_names
from .launch import configure_logging, name_run, train
from .questions import QuestionError
from .settings import SettingsError

logger = logging.getLogger(__name__)

USAGE = """usage: bash run_codea1.sh [PRESET | path/to.yaml] [key=value ...]
       bash run_codea1.sh setup [--cpu | --gpu]

Trains a Code LLM and a Test LLM against each other on verl's V1 trainer.
Without arguments: the preset `cpu` on a machine without an NVIDIA GPU, else `qwen2.5-coder-1.5b`.

presets: {presets}

the keys that matter most (any key of verl's configuration works; see code_a1_recipe/config/code_a1.yaml):
  policies.code.model.path=...      Code LLM: a Hugging Face folder or model id
  policies.test.model.path=...      Test LLM; policies.<code|test>.* overrides actor_rollout_ref.* for one of them
  data.train_files=...              questions: parquet, JSONL (.gz) or JSON
  data.val_files=...                held-out questions
  data.train_batch_size=...         questions a step (Q)
  episode.num_candidates=...        programs per question (C)
  episode.num_suites=...            suites per program (S)
  rewards.alpha=...                 weight of validity against difficulty in the Test LLM's reward
  trainer.total_training_steps=...  steps
  run_dir=...                       where everything is written (default outputs/<preset>-<time>)
"""


def default_preset() -> str:
    """`cpu` where torch sees no GPU, else the smallest GPU preset."""
    import torch

    return "qwen2.5-coder-1.5b" if torch.cuda.is_available() else "cpu"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 trained, 1 the run broke off, 2 the configuration was refused."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] == "train":
        words = words[1:]
    if any(word in ("-h", "--help", "help") for word in words):
        sys.stdout.write(USAGE.format(presets=", ".join(preset_names())))
        return 0
    configure_logging()
    preset = words.pop(0) if words and "=" not in words[0] else default_preset()
    try:
        config = compose_config(preset, words)
        name_run(config, preset)
        folder = train(config)
    except (SettingsError, QuestionError, CheckpointError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(
        f"\ntrained: {preset}\n"
        f"  config       {folder.resolved_config}\n"
        f"  metrics      {folder.metrics}\n"
        f"  rollouts     {folder.rollouts}\n"
        f"  Mistake Book {folder.mistake_book}\n"
        f"  checkpoints  {folder.checkpoints}\n"
        f"  TensorBoard  tensorboard --logdir {folder.tensorboard}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
