"""Exports a trained policy as a plain Hugging Face folder, with verl's merger."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ...algorithm.schedule import POLICY_NAMES
from ...errors import CheckpointError, InputError
from ...files import write_whole
from ...runs.folder import make_writable
from .folder import CHECKPOINTS, TRACKER_NAME, Checkpoint, best_checkpoint, named_checkpoint, saved_steps, step_folder

_ACTOR = "actor"
_ADAPTER = "lora_adapter"
_SHOWN_LINES = 5
_EXACT_MERGER = (
    "import runpy, torch; torch.Tensor.bfloat16 = torch.Tensor.float; "
    "runpy.run_module('verl.model_merger', run_name='__main__')"
)
"""Program that runs verl's merger without rounding. The merger rounds weights by calling ``Tensor.bfloat16``."""


def find_step(source: Path, step: str) -> Checkpoint:
    """Find the checkpoint that a user names.

    Args:
        source: a run folder, its ``checkpoints``, or the folder of one step.
        step: "latest", "best" (by ``checkpoint.keep_best``) or a number. If ``source`` is the folder of one step,
            ``step`` must be "latest".

    Raises:
        CheckpointError: there is no such checkpoint. The error message lists the saved steps.
    """
    if step == "latest":
        return named_checkpoint(source)
    roots = [folder for folder in (source, source / CHECKPOINTS) if (folder / TRACKER_NAME).is_file()]
    if not roots:
        raise CheckpointError(
            f"--step={step} needs a run folder, which {source} is not; leave --step out for the folder of one step"
        )
    root = roots[0]
    if step == "best":
        best = best_checkpoint(root)
        if best is None:
            raise CheckpointError(
                f"{root} has no best checkpoint, for which a run needs checkpoint.keep_best=val/...; name one of the "
                f"steps {saved_steps(root)}"
            )
        step = str(best["step"])
    if not step.isdecimal() or int(step) not in saved_steps(root):
        raise CheckpointError(f"--step must be latest, best or one of {saved_steps(root)}, got {step!r}")
    return Checkpoint(folder=step_folder(root, int(step)), step=int(step))


def check_policy(checkpoint: Checkpoint, policy: str) -> None:
    """Raise InputError if the checkpoint has no policy of this name."""
    if not (checkpoint.folder / policy / _ACTOR).is_dir():
        raise InputError(f"{checkpoint.folder} has no policy {policy!r}; a run with one model has `code` only")


def check_export(checkpoint: Checkpoint, policy: str, output: Path) -> None:
    """Raise InputError if ``export_policy`` would refuse its arguments."""
    check_policy(checkpoint, policy)
    if output.exists():
        raise InputError(f"--output={output} exists; name a new folder, or remove this one")
    try:
        make_writable(output.parent)
    except OSError as error:
        raise InputError(f"--output={output} cannot be written: {error}; name another folder") from error


def export_policy(
    checkpoint: Checkpoint,
    policy: str,
    output: Path,
    *,
    card: bytes = b"",
    in_float32: bool = False,
) -> None:
    """Write weights, configuration and tokenizer of one policy. A LoRA adapter is merged into the weights.

    Args:
        checkpoint: the checkpoint to export.
        policy: "code" or "test".
        output: a folder that does not exist. The folder appears only when all its files are written.
        card: content of the folder's README.md. With b"" the folder gets no README.md.
        in_float32: keep the weights in float32, in which they were trained. Otherwise verl's merger rounds the weights
            to bfloat16.

    Raises:
        InputError: the checkpoint has no such policy, ``output`` exists, or verl's merger fails.
    """
    check_export(checkpoint, policy, output)
    actor = checkpoint.folder / policy / _ACTOR
    partial = output.with_name(output.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    merger = ["-c", _EXACT_MERGER] if in_float32 else ["-m", "verl.model_merger"]
    command = [sys.executable, *merger, "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(actor), "--target_dir", str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last_lines = "\n".join(done.stderr.strip().splitlines()[-_SHOWN_LINES:])
        raise InputError(f"verl's merger failed on {actor}:\n{last_lines}")
    if (partial / _ADAPTER).is_dir():
        _merge_adapter(partial, dtype="float32" if in_float32 else "auto")
    if card:
        write_whole(partial / "README.md", card)
    partial.rename(output)


def _merge_adapter(folder: Path, *, dtype: str) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    merged = PeftModel.from_pretrained(base, folder / _ADAPTER).merge_and_unload()
    merged.save_pretrained(folder)
    shutil.rmtree(folder / _ADAPTER)


def export(
    source: Path,
    output: Path,
    *,
    policy: str,
    step: str,
    card_of: Callable[[Checkpoint, str], bytes],
) -> dict[str, Path]:
    """Write one policy of a run with its card to ``output``, or each of both policies to a folder below ``output``.

    Args:
        source, step: the checkpoint, as for :func:`find_step`.
        output: a folder that does not exist.
        policy: "code", "test" or "both".
        card_of: returns the content of a policy's README.md.

    Returns:
        Each policy's folder by the policy's name.

    Raises:
        CheckpointError, InputError: there is no such checkpoint or policy, or a folder exists. Nothing was written.
    """
    names = POLICY_NAMES if policy == "both" else (policy,)
    checkpoint = find_step(source, step)
    targets = {name: output / name if len(names) > 1 else output for name in names}
    for name, target in targets.items():
        check_export(checkpoint, name, target)
    cards = {name: card_of(checkpoint, name) for name in names}
    for name, target in targets.items():
        export_policy(checkpoint, name, target, card=cards[name])
    return targets
