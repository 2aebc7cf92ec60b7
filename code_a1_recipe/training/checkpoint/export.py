"""A trained policy as a plain Hugging Face folder, by verl's own merger."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...algorithm.schedule import POLICY_NAMES
from ...errors import CheckpointError, InputError
from ...files import write_whole
from .folder import CHECKPOINTS, TRACKER_NAME, Checkpoint, best_checkpoint, named_checkpoint, saved_steps, step_folder

_ACTOR = "actor"
_ADAPTER = "lora_adapter"
_SHOWN_LINES = 5
_EXACT_MERGER = (
    "import runpy, torch; torch.Tensor.bfloat16 = torch.Tensor.float; "
    "runpy.run_module('verl.model_merger', run_name='__main__')"
)
"""Program of a process: verl's merger, which rounds every weight by this method."""


def find_step(source: Path, step: str) -> Checkpoint:
    """The checkpoint that a user means.

    Args:
        source: a run folder, its ``checkpoints``, or the folder of one step.
        step: "latest", "best" (by ``checkpoint.keep_best``) or a number; of a step's own folder only "latest".

    Raises:
        CheckpointError: there is none; names those there are.
    """
    root = next((folder for folder in (source, source / CHECKPOINTS) if (folder / TRACKER_NAME).is_file()), None)
    if root is None and step != "latest":
        raise CheckpointError(f"{source} is no run: --step={step} needs a run folder; leave it out for a step's own")
    if root is None or step == "latest":
        return named_checkpoint(source)
    if step == "best":
        best = best_checkpoint(root)
        if best is None:
            raise CheckpointError(
                f"{root} has no best checkpoint: the run did not ask for one (checkpoint.keep_best=val/...); "
                f"steps there: {saved_steps(root)}"
            )
        step = str(best["step"])
    if not step.isdecimal() or int(step) not in saved_steps(root):
        raise CheckpointError(f"--step must be latest, best or one of {saved_steps(root)}, got {step!r}")
    return Checkpoint(folder=step_folder(root, int(step)), step=int(step))


def check_policy(checkpoint: Checkpoint, policy: str) -> None:
    """Raises InputError where the checkpoint has no such policy."""
    if not (checkpoint.folder / policy / _ACTOR).is_dir():
        raise InputError(f"{checkpoint.folder} has no policy {policy!r}; a run with one model has `code` only")


def check_export(checkpoint: Checkpoint, policy: str, output: Path) -> None:
    """Raises InputError where ``export_policy`` would refuse."""
    check_policy(checkpoint, policy)
    if output.exists():
        raise InputError(f"--output={output} exists; name a folder that does not, or remove it")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=output.parent).close()
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
    """Write weights, configuration and tokenizer of one policy; a LoRA adapter is merged into the weights.

    Args:
        policy: "code" or "test".
        in_float32: weights as they were trained; verl's merger rounds them to bfloat16.
        output: a folder that does not exist; it appears when it is whole.
        card: content of its README.md; without one there is none.

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
        told = "\n".join(done.stderr.strip().splitlines()[-_SHOWN_LINES:])
        raise InputError(f"verl's merger failed on {actor}:\n{told}")
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
    """Write one policy of a run with its card, or with "both" each into its own folder below ``output``.

    Args:
        card_of: makes the content of a policy's README.md.

    Returns:
        Policy name -> its folder.

    Raises:
        CheckpointError, InputError: no such checkpoint or policy, or a folder exists; nothing was written.
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
