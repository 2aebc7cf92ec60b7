"""One vLLM backend name per policy, so that two groups of servers live in one verl job.

verl derives the names of its server actors and of the weight-transfer socket from the backend name, the replica rank
and the Ray job. Two groups with the backend "vllm" would collide on both. A backend name per policy, registered in
verl's registries, keeps them apart; the name enters both ends of the socket.
"""

import hashlib
from typing import Any

from ..algorithm.schedule import POLICY_NAMES

_ADAPTER = "code_a1_recipe.verl_plugin.server_adapter.PolicyServerAdapter"


def backend_name(policy: str) -> str:
    """Rollout backend of a policy, the value of its ``rollout.name``; letters and underscores only."""
    return f"vllm_{policy}"


def socket_job(job_id: str, backend: str, gcs_address: str) -> str:
    """The job part of the weight socket's path, the same on both ends and on no others of this machine.

    A job's id is unique in its Ray cluster only. Two runs that each start a cluster of their own have the same one: on
    one socket they would wait for one another for ever, or load each other's weights.
    """
    cluster = hashlib.sha256(gcs_address.encode()).hexdigest()[:8]
    return f"{job_id}-{cluster}-{backend}"


def _load_replica_class() -> type[Any]:
    from .servers import PolicyReplica

    return PolicyReplica


def register_policy_backends() -> None:
    """Register ``vllm_code`` and ``vllm_test`` with verl; calling it twice changes nothing.

    verl is imported here and not above: verl's own import calls this function through the plugin, and a module that
    waits for verl at that moment would be half initialised.
    """
    from verl.workers.rollout import base as rollout_base
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    for policy in POLICY_NAMES:
        rollout_base._ROLLOUT_REGISTRY[(backend_name(policy), "async")] = _ADAPTER
        RolloutReplicaRegistry.register(backend_name(policy), _load_replica_class)
