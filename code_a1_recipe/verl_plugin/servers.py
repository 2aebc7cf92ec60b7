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
"""An abort checks at most this many times, 10 ms apart, whether the admitted requests have reached the engine."""
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
        # The engine's processes start later, inherit the variable, and make the path of their socket from it.
        address = ray.get_runtime_context().gcs_address
        os.environ[_JOB_VARIABLE] = socket_job(os.environ[_JOB_VARIABLE], rollout_config.name, address)
        return rollout_config

    async def generate(
        self,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        request_id: str,
        **others: Any,
    ) -> TokenOutput:
        """Generate as verl does, but ask the engine only for the tokens of the finished response.

        verl reads only these tokens. Making text, or an output for each token, would cost this process more time than
        the engine needs for the token.
        """
        sampling = {**sampling_params, **_FINISHED_TOKENS_ONLY}
        return await super().generate(prompt_ids, sampling, request_id, **others)

    async def abort_all_requests(self, reset_prefix_cache: bool = True, reject_request: bool = False) -> dict[str, Any]:
        """Abort the engine's requests, and then abort as verl does.

        verl alone would wait up to a minute for the output of these requests.
        """
        if self.node_rank == 0:
            self._submission_paused = True
            self._rejecting = reject_request
            self._resume_event.clear()
            for _ in range(_ADMISSION_LOOKS):
                if not self._admitting:  # every admitted request has reached the engine
                    break
                open_requests = list(self.engine.output_processor.request_states)
                await self.engine.abort(open_requests, internal=True)
                await asyncio.sleep(0.01)
        return await super().abort_all_requests(reset_prefix_cache, reject_request)


def note_model_class(path: str) -> None:
    """Let vLLM inspect a model's class and cache the result, while the policies' servers still import their packages.

    vLLM inspects a class in a new process, which imports all of vLLM. Without the cached result, each server would wait
    for a new process.
    """
    config, _ = PretrainedConfig.get_config_dict(path)
    ModelRegistry.models[config["architectures"][0]].inspect_model_cls()


def light_class() -> type:
    """Make a class with the public methods of ``PolicyHttpServer`` that imports vLLM only when an instance is made.

    Ray loads an actor's class in every process that has a handle of the actor. ``PolicyHttpServer`` itself would load
    all of vLLM. Loading vLLM would take seconds and half a gigabyte in each episode worker, although an episode worker
    only calls the server.
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
    # This module already has another class with the name of the new class. Ray therefore pickles the whole new class,
    # not a reference to this module. A process that loads the new class does not import the module.
    return type("PolicyHttpServer", (), {"__init__": start, **methods})


class PolicyReplica(vLLMReplica):
    """verl's replica with server actors whose names begin with the backend name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(light_class())

    def _get_server_name_prefix(self) -> str:
        return f"{self.config.name}_"
