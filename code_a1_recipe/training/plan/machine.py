"""The room that a machine has, measured here or given by the user."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ...jobs.cores import usable_cores
from .memory import GIB, LABEL_LOSS

# Files with a container's memory limit, in versions 2 and 1 of cgroups. Without a limit the first file holds "max".
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_SHARED = "/dev/shm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node of a run. Sizes are in bytes."""

    cores: int
    memory: int
    shared_memory: int
    """Size of /dev/shm."""
    disk: int
    """Free room on the disk for checkpoints. The room of the run's own earlier checkpoints counts as free."""
    num_gpus: int
    gpu_memory: int
    """Size of the smallest GPU."""

    @classmethod
    def here(cls, folder: str, *, device: str) -> Self:
        """Measure this machine, within a container's limits of memory and CPUs.

        Args:
            folder: the folder of the run's checkpoints; it need not exist.
            device: "cuda" or "cpu". With "cpu" no GPUs are looked for.
        """
        limits = [path.read_text().strip() for path in _LIMITS if path.is_file()]
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        saved = sum(path.stat().st_size for path in Path(folder).glob("global_step_*/**/*") if path.is_file())
        gpus = _gpus() if device == "cuda" else []
        return cls(
            cores=usable_cores(),
            memory=min([memory, *(int(limit) for limit in limits if limit.isdecimal())]),
            shared_memory=shutil.disk_usage(_SHARED).total,
            disk=shutil.disk_usage(existing_part(Path(folder))).free + saved,
            num_gpus=len(gpus),
            gpu_memory=min(gpus, default=0),
        )

    def with_given(
        self, *, gpus: int | None, gpu_memory: float | None, cores: int | None, memory: float | None
    ) -> Self:
        """Return a machine with the user's numbers instead of the measured ones.

        Args:
            gpus: number of GPUs.
            gpu_memory: size of a GPU in GiB, as its label says.
            cores: number of CPU cores.
            memory: size of the memory in GiB. /dev/shm is assumed to be half as large.
        """
        given = {
            "num_gpus": gpus,
            "cores": cores,
            "gpu_memory": gpu_memory and (gpu_memory - LABEL_LOSS) * GIB,
            "memory": memory and memory * GIB,
            "shared_memory": memory and memory * GIB / 2,  # Linux's default
        }
        return replace(self, **{name: int(value) for name, value in given.items() if value is not None})


def existing_part(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def why_no_gpu() -> str:
    """Return torch's reason for seeing no GPU, and the value of ``CUDA_VISIBLE_DEVICES`` if it is set."""
    import torch

    reason = "torch found none at its start"
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    return reason if hidden is None else f"{reason} (CUDA_VISIBLE_DEVICES={hidden!r})"


def _gpus() -> list[int]:
    """Return the memory of each GPU that torch sees, in bytes."""
    import torch

    if not torch.cuda.is_available():
        return []
    numbers = range(torch.cuda.device_count())
    return [int(torch.cuda.get_device_properties(number).total_memory) for number in numbers]
