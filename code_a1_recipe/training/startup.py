"""Starts the parts of a run: pools of GPUs, both policies with their servers, judges and episode workers."""

import time
from functools import partial
from typing import Any

from ..config.run_config import COLOCATED, RunConfig
from ..verl_plugin import row_queue
from ..verl_plugin.workers import make_pools
from .episode_pool import EpisodePool
from .judge_worker import JudgePool
from .lifecycle.stage_clock import StageClock
from .lifecycle.time_limit import in_background
from .plan.sizes import kv_memory
from .policy import Policy


def _note_model_class(path: str) -> None:
    # The servers' threads import vLLM through ``verl_plugin.servers`` at the same moment. An import in another way
    # could find vLLM half imported.
    from ..verl_plugin.servers import note_model_class

    note_model_class(path)


def start_parts(
    config: RunConfig, *, manager: Any, total_steps: int, stages: StageClock
) -> tuple[dict[str, Policy], JudgePool, EpisodePool]:
    """Start the queue, both policies, the judges and the episode workers, as far as possible at the same time.

    Args:
        manager: verl's ``ResourcePoolManager``, to which the pools of GPUs are added.
        total_steps: number of steps of the run. The length of each learning-rate schedule depends on this number.
        stages: shows a line for each policy that has started.

    Returns:
        The policies by name, the judges, and the episode workers.
    """
    spec = config.pool_spec()
    pools = make_pools(manager, spec, device=config.trainer.device)

    def start_policy(name: str) -> Policy:
        began = time.monotonic()
        every = config.schedule.every(name)
        # verl refuses an empty learning-rate schedule, even for a policy that never updates.
        updates = max(1, total_steps // every) if every else 1
        policy = Policy.start(
            name,
            config,
            pool=pools[name if name in spec else COLOCATED],
            total_updates=updates,
        )
        stages.ended(f"{name} policy: {config.policy(name).model.path}", since=began)
        return policy

    # Nothing uses the queue before the first episode, so the processes of the queue start in the background.
    queue = in_background(partial(row_queue.init, config.for_verl().transfer_queue), name="start-queue")
    episodes = EpisodePool.start(config)
    for path in {config.policy(name).model.path for name in config.policy_names}:
        # An error here is ignored, because the server will meet and report the same error.
        in_background(partial(_note_model_class, path), name="note-model-class")
    starting_judges = in_background(partial(JudgePool.start, config.sandbox, seed=config.seed), name="start-judges")
    # Both policies start at the same time, because loading is mostly waiting. But a server may measure the free memory
    # of its card while it starts. A second start on that card would falsify the measurement.
    has_fixed_memory = all(kv_memory(config, name) for name in config.policy_names)
    is_measured = config.trainer.device == "cuda" and not has_fixed_memory
    in_turn = is_measured and config.layout == COLOCATED
    starting = {}
    for name in config.policy_names:
        starting[name] = in_background(partial(start_policy, name), name=f"start-{name}")
        if in_turn:
            starting[name].result()
    policies = {name: started.result() for name, started in starting.items()}
    judges = starting_judges.result()
    queue.result()
    endpoints = {name: policy.endpoint() for name, policy in policies.items()}
    episodes.connect(endpoints=endpoints, judges=judges)
    stages.ended("queue, judges and episode workers are ready")
    return policies, judges, episodes
