"""A verl platform for machines without an accelerator (verl's own extension point, ``PlatformRegistry``), and the one
function of verl that a CPU run replaces."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import verl.utils.distributed as verl_distributed
from verl.plugin.platform import PlatformBase, PlatformRegistry

from .environment import PLATFORM_NAME

# Logical devices a Ray worker may see; placement groups count them, nothing else does.
DEVICES_VARIABLE = "CODE_A1_CPU_DEVICES"

_RETURN_ZERO = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
_RETURN_NONE = (
    "empty_cache",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
)


class _CpuDeviceModule(types.ModuleType):
    """``torch.cpu`` plus the accelerator functions that verl calls on its device module."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


def _device_module() -> types.ModuleType:
    module = _CpuDeviceModule("code_a1_recipe.verl_plugin.cpu.device")
    for name in _RETURN_ZERO:
        setattr(module, name, lambda *args, **kwargs: 0)
    for name in _RETURN_NONE:
        setattr(module, name, lambda *args, **kwargs: None)
    # verl reads "is an accelerator there"; a CPU is none.
    module.is_available = lambda: False
    module.mem_get_info = lambda *args, **kwargs: (0, 0)
    module.get_rng_state = torch.get_rng_state
    module.set_rng_state = torch.set_rng_state
    module.current_device = lambda: PLATFORM_NAME
    module.get_device_name = lambda *args: "CPU"
    return module


@PlatformRegistry.register(platform=PLATFORM_NAME)
class CpuPlatform(PlatformBase):
    """Chosen by ``VERL_PLATFORM=cpu``, never detected: a GPU machine must not land here by accident."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = _device_module()

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return False

    def current_device(self) -> torch.device:
        # verl hands this to Tensor.to(); an int would mean a CUDA device.
        return torch.device("cpu")

    def device_count(self) -> int:
        return int(os.environ.get(DEVICES_VARIABLE, "1"))

    def set_device(self, device_index: int) -> None:
        return

    def synchronize(self, device_index: int | None = None) -> None:
        return

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        return

    def empty_cache(self) -> None:
        return

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        return

    def profiler_stop(self) -> None:
        return

    def ray_resource_name(self) -> str:
        # Logical GPUs (`ray.init(num_gpus=n)` on a machine without one) keep verl's placement groups working.
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        # No CUDA IPC: weights travel to the servers through POSIX shared memory.
        return False

    def cudart(self) -> None:
        return


def use_gloo_only() -> None:
    """Let verl's Ray workers open a process group with ``cpu:gloo`` alone.

    ``verl.utils.distributed.initialize_global_process_group_ray`` builds ``cpu:gloo,<device>:<backend>``; with the
    device "cpu" that names one device twice, which torch refuses. An explicit backend of the caller is kept.
    """
    original = verl_distributed.initialize_global_process_group_ray
    if getattr(original, "code_a1_gloo_only", False):
        return

    @functools.wraps(original)
    def initialize(timeout_second: float | None = None, backend: str | None = None) -> Any:
        return original(timeout_second=timeout_second, backend=backend or "cpu:gloo")

    initialize.code_a1_gloo_only = True
    verl_distributed.initialize_global_process_group_ray = initialize
