"""The servers of a policy and their client. A single server needs no load balancer."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import ray
from ray.actor import ActorHandle
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from verl.checkpoint_engine import CheckpointEngineManager
from verl.single_controller.ray import RayResourcePool
from verl.single_controller.ray.base import sort_placement_group_by_node_ip
from verl.utils.device import get_resource_name
from verl.workers.rollout.llm_server import LLMServerClient, LLMServerManager


@ray.remote(num_cpus=0, num_gpus=0.01)
def _place_of_this_task(accelerator: str) -> tuple[str, str]:
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_accelerator_ids()[accelerator][0]


@dataclass(frozen=True)
class WorkerPlace:
    """A stand-in for a worker, which tells verl's servers the worker's node and GPU.

    Servers ask a worker for nothing else before they start. A real worker answers only after it has imported all of
    verl, while a Ray task on the same GPU answers at once.
    """

    gpus: PlacementGroup
    """The GPUs of one node."""
    number: int
    """Index of the worker's GPU in the group."""

    @property
    def __ray_call__(self) -> Self:
        return self

    def remote(self, _question: object) -> "ray.ObjectRef[tuple[str, str]]":
        """Answer the only question that verl asks: on which node and GPU does the worker run?"""
        strategy = PlacementGroupSchedulingStrategy(
            self.gpus,
            placement_group_bundle_index=self.number,
        )
        task = _place_of_this_task.options(scheduling_strategy=strategy)
        return task.remote(get_resource_name())


class PolicyServerManager(LLMServerManager):
    """verl's manager of a policy's servers. A single server gets no load balancer.

    A load balancer is a process that imports all of verl, and each response costs two messages to the balancer. A tiny
    model generates a response in less time than these messages take.
    """

    @classmethod
    def beside_workers(cls, config: Any, pool: RayResourcePool) -> Self:
        """Start the servers of a pool whose workers start at the same time.

        Args:
            config: configuration of verl's server manager.
            pool: the GPUs. Worker r gets GPU r in the order of the nodes' IP addresses, as in verl.
        """
        places = []
        for gpus in sort_placement_group_by_node_ip(pool.pgs):
            places += [WorkerPlace(gpus, number) for number in range(pool.store[0])]
        workers: Any = SimpleNamespace(world_size=len(places), workers=places)
        manager: Self = cls.create(config=config, worker_group=workers)
        return manager

    async def _init_global_load_balancer(self) -> None:
        if len(self.server_handles) > 1:
            await super()._init_global_load_balancer()

    def weight_sync(self, workers: Any) -> CheckpointEngineManager:
        """Make verl's manager that puts the servers to sleep and wakes them with the workers' weights."""
        engine = self.rollout_config.checkpoint_engine
        return CheckpointEngineManager(config=engine, actor_wg=workers, replicas=self.rollout_replicas)

    def client(self, config: Any) -> LLMServerClient:
        """Return a client for episode workers.

        Args:
            config: a configuration with verl's key ``actor_rollout_ref.rollout``.
        """
        if len(self.server_handles) > 1:
            return LLMServerClient(config=config, load_balancer_handle=self.global_load_balancer)
        return OneServerClient(
            config,
            server=self.server_handles[0],
            address=self.server_addresses[0],
        )


class OneServerClient(LLMServerClient):
    """verl's client of a single server, without a load balancer."""

    def __init__(self, config: Any, *, server: ActorHandle[Any], address: str) -> None:
        super().__init__(config=config)
        self._server, self._address = server, address

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, ActorHandle[Any]]:
        return self._address, self._server

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        pass  # only a balancer counts open requests
