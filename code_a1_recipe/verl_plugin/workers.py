"""The policies' worker groups on the GPUs of their pools."""

import random
from collections.abc import Mapping
from typing import Any

import ray
from omegaconf import DictConfig, OmegaConf
from verl.single_controller.ray import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    ResourcePoolManager,
    create_colocated_worker_cls,
)
from verl.trainer.ppo.utils import Role
from verl.workers.engine_workers import ActorRolloutRefWorker

from .compat import CPUS_PER_DEVICE

# The range lies above the ports of Ray's workers and below the ports that Linux hands out by itself.
_FIRST_PORT, _LAST_PORT, _TRIED_PORTS = 20_000, 32_000, 200


def make_pools(
    manager: ResourcePoolManager, spec: Mapping[str, list[int]], *, device: str
) -> dict[str, RayResourcePool]:
    """Make pools of GPUs.

    Args:
        manager: verl's manager, which keeps the pools.
        spec: the number of GPUs on each node, for each pool by name.
        device: "cuda" or "cpu".
    """
    manager.resource_pool_spec = dict(spec)
    manager.max_colocate_count = CPUS_PER_DEVICE
    manager.create_resource_pool()
    pools: dict[str, RayResourcePool] = manager.resource_pool_dict
    for name in spec:
        # The placement groups are made before two threads ask for them, since Ray refuses a second group of the same
        # name. With STRICT_PACK each group lies on one node. In a group over several nodes, workers would get wrong
        # local ranks.
        pools[name].get_placement_groups(strategy="STRICT_PACK", device_name=device)
    return pools


def start_workers(config: DictConfig, *, pool: RayResourcePool, with_reference: bool, device: str) -> Any:
    """Start a policy's workers, which wait for ``init_model``.

    Args:
        config: verl's configuration, as the policy sees it.
        pool: the GPUs. Each GPU gets one worker.
        with_reference: each worker also loads a reference model.
        device: "cuda" or "cpu".
    """
    role = str(Role.ActorRolloutRef if with_reference else Role.ActorRollout)
    worker_class = RayClassWithInitArgs(
        cls=ray.remote(ActorRolloutRefWorker),
        config=config.actor_rollout_ref,
        distillation_config=config.get("distillation"),
        role=role,
    )
    group = RayWorkerGroup(
        resource_pool=pool,
        ray_cls_with_init=create_colocated_worker_cls({role: worker_class}),
        device_name=device,
        master_port_range=_rendezvous_ports(),
        **_profiler_arguments(config),
    )
    return group.spawn(prefix_set=[role])[role]


def _rendezvous_ports() -> list[int]:
    """Return a random range of ports for the rendezvous of torch.distributed.

    verl finds a free port in this range and releases the port until the workers listen on it. If the system picked the
    port, an outgoing connection might take it in the meantime. If the range were fixed, two runs might find the same
    port.
    """
    first = random.SystemRandom().randrange(_FIRST_PORT, _LAST_PORT - _TRIED_PORTS)
    return [first, first + _TRIED_PORTS]


def _profiler_arguments(config: DictConfig) -> dict[str, Any]:
    """Return a worker group's arguments for ``global_profiler``, the same as in verl's own trainer."""
    profiler = config.global_profiler
    if profiler.steps is None:
        return {}
    arguments = {"profile_steps": profiler.steps}
    if profiler.tool == "nsys":
        options = profiler.global_tool_config.nsys.worker_nsight_options
        arguments["worker_nsight_options"] = OmegaConf.to_container(options)
    return arguments
