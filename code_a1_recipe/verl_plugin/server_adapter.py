"""The training workers' end of the socket through which a policy's weights reach the policy's servers.

This module is separate from ``servers.py``, because training workers import it. ``servers.py`` would load all of vLLM's
HTTP server in each worker.
"""

from typing import Any

import ray
from verl.workers.rollout.vllm_rollout.vllm_rollout import ServerAdapter

from .backends import socket_job


class PolicyServerAdapter(ServerAdapter):
    """verl's adapter in a training worker, which sends weights to the servers of the worker's own policy."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        context = ray.get_runtime_context()
        job_id = context.get_job_id()
        policys_job = socket_job(job_id, self.config.name, context.gcs_address)
        self.zmq_handle = self.zmq_handle.replace(job_id, policys_job, 1)
