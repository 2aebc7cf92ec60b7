"""Start of a run's parts: pools of GPUs, both policies with their servers, judges and episode workers."""

import time
from functools import partial

from verl.single_controller.ray import RayResourcePool, ResourcePoolManager

from ..config.run_config import COLOCATED, RunConfig
from ..verl_plugin import row_queue
from ..verl_plugin.compat import CPUS_PER_DEVICE
from .episode_actors import EpisodePool
from .judge_actors import JudgePool
from .lifecycle.stage_clock import StageClock
from .lifecycle.time_limit import in_background
from .plan.sizes import kv_memory
from .policy import Policy


def _note_model_class(path: str) -> None:
    # By the door through which the servers' threads import vLLM at this moment.
    from ..verl_plugin.servers import note_model_class

    note_model_class(path)


def make_pools(manager: ResourcePoolManager, config: RunConfig) -> dict[str, RayResourcePool]:
    """The GPUs of each policy: the same pool twice, or two."""
    names = config.policy_names
    manager.resource_pool_spec = spec = config.pool_spec()
    manager.max_colocate_count = CPUS_PER_DEVICE
    manager.create_resource_pool()
    pools = manager.resource_pool_dict
    for name in spec:
        # Made once, before two threads ask for it: Ray refuses a second group of the same name. A group that spans
        # nodes would give its workers wrong local ranks.
        pools[name].get_placement_groups(strategy="STRICT_PACK", device_name=config.trainer.device)
    return {name: pools[name if name in spec else COLOCATED] for name in names}


def start_parts(
    config: RunConfig, *, manager: ResourcePoolManager, total_steps: int, stages: StageClock
) -> tuple[dict[str, Policy], JudgePool, EpisodePool]:
    """Start the queue, both policies (by name), the judges, and the episode workers, at once where that works.

    Args:
        manager: verl's; it gets the pools of GPUs.
        total_steps: of the run; a learning-rate schedule counts the updates of its policy.
        stages: shows a line for each policy that has started.
    """
    pools = make_pools(manager, config)

    def start_policy(name: str) -> Policy:
        began = time.monotonic()
        every = config.schedule.every(name)
        updates = max(1, total_steps // every) if every else 1
        policy = Policy.start(
            name,
            config,
            pool=pools[name],
            total_updates=updates,
        )
        stages.ended(f"{name} policy: {config.policy(name).model.path}", since=began)
        return policy

    # Nobody asks the queue before the first episode, so its processes may import what they need meanwhile.
    queue = in_background(partial(row_queue.init, config.for_verl().transfer_queue), name="start-queue")
    episodes = EpisodePool.start(config)
    for path in {config.policy(name).model.path for name in config.policy_names}:
        # What goes wrong here goes wrong again where a server tells of it.
        in_background(partial(_note_model_class, path), name="note-model-class")
    starting_judges = in_background(partial(JudgePool.start, config.sandbox, seed=config.seed), name="start-judges")
    # Loading models and engines mostly waits, so all of it happens at once, unless a server measures the free memory of
    # its card while it starts, which another one that starts beside it would falsify.
    is_measured = config.trainer.device == "cuda" and not all(kv_memory(config, name) for name in config.policy_names)
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
