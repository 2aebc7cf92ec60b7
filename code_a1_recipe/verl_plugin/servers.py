"""The vLLM servers of one policy: verl's classes with the backend name in the names of actors and sockets."""

import asyncio
import inspect
import os
from collections.abc import Callable
from typing import Any

import ray
from transformers import PretrainedConfig
from verl.workers.rollout.replica import TokenOutput
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer, vLLMReplica
from vllm.model_executor.models.registry import ModelRegistry
from vllm.sampling_params import RequestOutputKind

from .backends import socket_job

# verl's server makes the socket's path from this variable. verl's adapter at the other end asks Ray for the job id.
_JOB_VARIABLE = "VERL_RAY_JOB_ID"
_ADMISSION_LOOKS = 1000
"""Number of looks, 10 ms apart, until requests that were let in must have reached the engine."""
_FINISHED_TOKENS_ONLY = {
    "output_kind": RequestOutputKind.FINAL_ONLY,
    "detokenize": False,
    "flat_logprobs": True,
}
"""Values of vLLM's ``SamplingParams``."""


class PolicyHttpServer(vLLMHttpServer):
    """verl's server, whose engine processes receive the weights of one policy."""

    def _init_config(self, config: Any) -> Any:
        rollout_config = super()._init_config(config)
        # The engine's processes start later. They inherit the variable and make their end of the path from it.
        address = ray.get_runtime_context().gcs_address
        os.environ[_JOB_VARIABLE] = socket_job(os.environ[_JOB_VARIABLE], rollout_config.name, address)
        return rollout_config

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **others: Any
    ) -> TokenOutput:
        """Generate as verl does, which reads nothing but the tokens of the finished response.

        So no text is made, and no output for each token. Both would cost this process more time than the engine needs
        for the token.
        """
        sampling = {**sampling_params, **_FINISHED_TOKENS_ONLY}
        return await super().generate(prompt_ids, sampling, request_id, **others)

    async def abort_all_requests(self, reset_prefix_cache: bool = True, reject_request: bool = False) -> dict[str, Any]:
        """Abort as verl does, but abort the engine's requests before it. verl waits up to a minute for their output."""
        if self.node_rank == 0:
            self._submission_paused = True
            self._rejecting = reject_request
            self._resume_event.clear()
            for _ in range(_ADMISSION_LOOKS):  # a request that was let in may not have reached the engine yet
                if not self._admitting:
                    break
                await self.engine.abort(list(self.engine.output_processor.request_states), internal=True)
                await asyncio.sleep(0.01)
        return await super().abort_all_requests(reset_prefix_cache, reject_request)


def note_model_class(path: str) -> None:
    """Let vLLM inspect a model's class and cache the result, while its servers still import their packages.

    vLLM inspects a class in a new process, which imports all of vLLM. Without the cache each server would wait for such
    a process.
    """
    config, _ = PretrainedConfig.get_config_dict(path)
    ModelRegistry.models[config["architectures"][0]].inspect_model_cls()


def light_class() -> type:
    """Make a class with the public methods of ``PolicyHttpServer`` that imports it only when an instance is made.

    Ray loads an actor's class in every process that gets a handle of it. ``PolicyHttpServer`` would bring all of vLLM:
    seconds and half a gigabyte in each episode worker, which only calls the server.
    """

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        from .servers import PolicyHttpServer

        self.server = PolicyHttpServer(*args, **kwargs)

    def forwarded(name: str) -> Callable[..., Any]:
        async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = getattr(self.server, name)(*args, **kwargs)
            return await result if hasattr(result, "__await__") else result

        return call

    methods = {
        name: forwarded(name)
        for name, _ in inspect.getmembers(PolicyHttpServer, inspect.isfunction)
        if not name.startswith("_")
    }
    # It is not the class of that name in this module, so Ray pickles it as a whole and does not import this module.
    return type("PolicyHttpServer", (), {"__init__": start, **methods})


class PolicyReplica(vLLMReplica):
    """verl's replica. The names of its server actors begin with the backend name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(light_class())

    def _get_server_name_prefix(self) -> str:
        return f"{self.config.name}_"
