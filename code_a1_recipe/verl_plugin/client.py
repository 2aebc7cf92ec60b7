"""A client for a policy with a single server: with nothing to balance, it is asked directly."""

from typing import Any

from ray.actor import ActorHandle
from verl.workers.rollout.llm_server import LLMServerClient


class OneServerClient(LLMServerClient):
    """verl's client without its two messages to the load balancer around each response.

    They cost more than a tiny model's whole response; between several servers they are worth it.
    """

    _only: tuple[str, ActorHandle[Any]] | None = None

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, ActorHandle[Any]]:
        if self._only is None:
            self._only = await super()._acquire_server(request_id, **extra)
        return self._only

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        """The balancer goes on counting the first request, which changes nothing with one server."""
