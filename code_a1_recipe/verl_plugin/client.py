"""Servers of a policy and the client that asks them: a single server is asked directly, without a load balancer."""

from typing import Any

from ray.actor import ActorHandle
from verl.workers.rollout.llm_server import LLMServerClient, LLMServerManager


class PolicyServerManager(LLMServerManager):
    """verl's servers of a policy, with a load balancer only where there is something to balance.

    The balancer is a process that imports all of verl, and two messages around each response: more than a tiny model
    needs for the whole response.
    """

    async def _init_global_load_balancer(self) -> None:
        if len(self.server_handles) > 1:
            await super()._init_global_load_balancer()

    def client(self, config: Any) -> LLMServerClient:
        """Return a client for episode workers.

        Args:
            config: has verl's key ``actor_rollout_ref.rollout``.
        """
        if len(self.server_handles) > 1:
            return LLMServerClient(config=config, load_balancer_handle=self.global_load_balancer)
        return OneServerClient(config, server=self.server_handles[0], address=self.server_addresses[0])


class OneServerClient(LLMServerClient):
    """verl's client of a single server, which it asks without a balancer's word."""

    def __init__(self, config: Any, *, server: ActorHandle[Any], address: str) -> None:
        super().__init__(config=config)
        self._server, self._address = server, address

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, ActorHandle[Any]]:
        return self._address, self._server

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        pass  # nobody counts
