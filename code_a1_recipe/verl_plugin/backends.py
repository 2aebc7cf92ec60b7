"""A vLLM backend name for each policy, so that one verl job can have two groups of servers.

verl derives the names of its server actors and of the socket for weights from the backend name, the replica rank and
the Ray job. Two groups of servers with the backend "vllm" would collide. Each policy therefore has its own backend
name, which is registered with verl. Both ends of the socket use the backend name.
"""

import hashlib
from typing import Any

from ..algorithm.schedule import POLICY_NAMES

_ADAPTER = "code_a1_recipe.verl_plugin.server_adapter.PolicyServerAdapter"


def backend_name(policy: str) -> str:
    """Return the name of a policy's rollout backend (``rollout.name``). The name has only letters and underscores."""
    return f"vllm_{policy}"


def socket_job(job_id: str, backend: str, gcs_address: str) -> str:
    """Return the part of the weight socket's path that names the job. The part differs for each run on a machine.

    Ray's job id is unique only within a Ray cluster, so two runs with their own clusters have the same id. If two runs
    shared a socket, they would wait for each other for ever or load each other's weights.
    """
    cluster = hashlib.sha256(gcs_address.encode()).hexdigest()[:8]
    return f"{job_id}-{cluster}-{backend}"


def _load_replica_class() -> type[Any]:
    from .servers import PolicyReplica

    return PolicyReplica


def register_policy_backends() -> None:
    """Register ``vllm_code`` and ``vllm_test`` with verl. A second call changes nothing.

    verl is imported inside this function, because the import of verl loads the plug-in, which calls the function. An
    import at the top of this module would find verl half imported.
    """
    from verl.workers.rollout import base as rollout_base
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    for policy in POLICY_NAMES:
        rollout_base._ROLLOUT_REGISTRY[(backend_name(policy), "async")] = _ADAPTER
        RolloutReplicaRegistry.register(backend_name(policy), _load_replica_class)
