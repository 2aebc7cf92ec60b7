"""A verl platform for machines without an accelerator (through verl's ``PlatformRegistry``).

This module also replaces one function of verl.
"""

import functools
import os
import types
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import verl.utils.distributed as verl_distributed
from verl.plugin.platform import PlatformBase, PlatformRegistry

from .environment import PLATFORM_NAME

# Number of logical devices that a Ray worker may see. Only placement groups count these devices.
DEVICES_VARIABLE = "CODE_A1_CPU_DEVICES"


def _always(answer: Any) -> Callable[..., Any]:
    """Make a function or method that returns ``answer`` for all arguments."""
    return lambda *args, **kwargs: answer


class _CpuDeviceModule(types.ModuleType):
    """``torch.cpu`` plus the accelerator functions that verl calls on its device module."""

    is_available = _always(False)  # verl asks for an accelerator, and a CPU is none
    get_device_name = _always("CPU")
    mem_get_info = _always((0, 0))
    memory_allocated = memory_reserved = max_memory_allocated = max_memory_reserved = _always(0)
    empty_cache = ipc_collect = reset_peak_memory_stats = _always(None)
    manual_seed = manual_seed_all = _always(None)
    get_rng_state, set_rng_state = staticmethod(torch.get_rng_state), staticmethod(torch.set_rng_state)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)


@PlatformRegistry.register(platform=PLATFORM_NAME)
class CpuPlatform(PlatformBase):
    """verl's platform with ``VERL_PLATFORM=cpu``. verl never detects this platform, so no GPU machine gets it."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = _CpuDeviceModule("code_a1_recipe.verl_plugin.cpu.device")

    is_available = _always(True)
    is_platform_available = _always(False)
    # verl passes the result to Tensor.to(), where an int would mean a CUDA device.
    current_device = _always(torch.device("cpu"))
    get_device_capability = _always((None, None))
    communication_backend_name = _always("gloo")
    visible_devices_envvar = _always("CUDA_VISIBLE_DEVICES")
    nvtx_range = _always(nullcontext())
    # verl's placement groups work with logical GPUs (`ray.init(num_gpus=n)` on a machine without GPUs).
    ray_resource_name = _always("GPU")
    ray_noset_envvars = _always(["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"])
    # A CPU has no CUDA IPC, so weights reach the servers through POSIX shared memory.
    is_ipc_supported = _always(False)
    manual_seed: Any = staticmethod(torch.manual_seed)
    manual_seed_all: Any = manual_seed
    set_device = synchronize = set_allocator_settings = empty_cache = _always(None)
    profiler_start = profiler_stop = cudart = _always(None)

    def device_count(self) -> int:
        return int(os.environ.get(DEVICES_VARIABLE, "1"))


def use_gloo_only() -> None:
    """Let verl's Ray workers open a process group with ``cpu:gloo`` alone.

    ``verl.utils.distributed.initialize_global_process_group_ray`` builds ``cpu:gloo,<device>:<backend>``. With the
    device "cpu", this text names the device "cpu" twice, and torch refuses it. A caller may still give another backend.
    """
    original = verl_distributed.initialize_global_process_group_ray
    verl_distributed.initialize_global_process_group_ray = functools.partial(original, backend="cpu:gloo")
