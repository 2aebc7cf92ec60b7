"""vLLM servers of one policy: verl's own classes with the backend name in actor names and socket paths."""

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

# verl's server reads its half of the socket path from here; its adapter asks Ray for the same job id.
_JOB_VARIABLE = "VERL_RAY_JOB_ID"
_ADMISSION_LOOKS = 1000
"""Ten seconds."""
_FINISHED_TOKENS_ONLY = {
    "output_kind": RequestOutputKind.FINAL_ONLY,
    "detokenize": False,
    "flat_logprobs": True,
}
"""Of vLLM's ``SamplingParams``."""


class PolicyHttpServer(vLLMHttpServer):
    """Server side: tells its engine processes which policy's weights they receive."""

    def _init_config(self, config: Any) -> Any:
        rollout_config = super()._init_config(config)
        # Set before the engine starts; its processes inherit it and build their end of the path from it.
        address = ray.get_runtime_context().gcs_address
        os.environ[_JOB_VARIABLE] = socket_job(os.environ[_JOB_VARIABLE], rollout_config.name, address)
        return rollout_config

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **others: Any
    ) -> TokenOutput:
        """verl's, which reads the tokens of the finished response alone.

        Text, and an output for each token, cost this process more time than its engine needs for the token.
        """
        sampling = {**sampling_params, **_FINISHED_TOKENS_ONLY}
        return await super().generate(prompt_ids, sampling, request_id, **others)

    async def abort_all_requests(self, reset_prefix_cache: bool = True, reject_request: bool = False) -> dict[str, Any]:
        """verl's, which waits up to a minute for a first output of each request: those under way end before it."""
        if self.node_rank == 0:
            self._submission_paused = True
            self._rejecting = reject_request
            self._resume_event.clear()
            for _ in range(_ADMISSION_LOOKS):  # one that was let in may not be at the engine yet
                if not self._admitting:
                    break
                await self.engine.abort(list(self.engine.output_processor.request_states), internal=True)
                await asyncio.sleep(0.01)
        return await super().abort_all_requests(reset_prefix_cache, reject_request)


def note_model_class(path: str) -> None:
    """Have vLLM look at a model's class, and keep what it finds in its cache, while its servers still import.

    It does so in a process that imports it anew, and each server of a machine's first run would wait for one.
    """
    config, _ = PretrainedConfig.get_config_dict(path)
    ModelRegistry.models[config["architectures"][0]].inspect_model_cls()


def light_class() -> type:
    """A class with the public methods of ``PolicyHttpServer`` that imports it where an instance is made.

    Ray loads an actor's class wherever a handle of it arrives, and that one comes with all of vLLM: seconds and half a
    gigabyte for each episode worker, which only calls.
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
    # Not the very class of that name in this module, so it is pickled as a whole.
    return type("PolicyHttpServer", (), {"__init__": start, **methods})


class PolicyReplica(vLLMReplica):
    """One replica; its server actors carry the backend name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(light_class())

    def _get_server_name_prefix(self) -> str:
        return f"{self.config.name}_"
