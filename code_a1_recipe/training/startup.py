"""Start of a run's parts: pools of GPUs, both policies with their servers, judges and episode workers."""

from concurrent.futures import ThreadPoolExecutor

from verl.single_controller.ray import RayResourcePool, ResourcePoolManager

from ..config.run_config import COLOCATED, RunConfig
from ..verl_plugin import row_queue
from ..verl_plugin.compat import CPUS_PER_DEVICE
from .episode_actors import EpisodePool
from .judge_actors import JudgePool
from .lifecycle.stage_clock import StageClock
from .policy import Policy


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
        began = stages.now()
        every = {"code": config.schedule.code_every, "test": config.schedule.test_every}[name]
        updates = max(1, total_steps // every) if every else 1
        policy = Policy.start(name, config, pool=pools[name], total_updates=updates)
        stages.ended(f"{name} policy: {config.policy(name).model.path}", since=began)
        return policy

    # Loading models and engines mostly waits, so on a CPU all of it happens at once. On a GPU a server measures the
    # free memory while it starts, which another one that starts beside it would falsify.
    at_once = len(config.policy_names) if config.trainer.device == "cpu" else 1
    with_policies, beside_them = ThreadPoolExecutor(at_once), ThreadPoolExecutor()
    try:
        # Nobody asks the queue before the first episode, so its processes may import what they need meanwhile.
        queue = beside_them.submit(row_queue.init, config.for_verl().transfer_queue)
        starting_judges = beside_them.submit(JudgePool.start, config.sandbox, seed=config.seed)
        starting = {name: with_policies.submit(start_policy, name) for name in config.policy_names}
        policies = {name: started.result() for name, started in starting.items()}
        judges = starting_judges.result()
        queue.result()
    finally:  # whoever interrupts a start does not wait for its end
        for starters in (with_policies, beside_them):
            starters.shutdown(wait=False, cancel_futures=True)
    endpoints = {name: policy.endpoint() for name, policy in policies.items()}
    episodes = EpisodePool.start(config, endpoints=endpoints, judges=judges)
    stages.ended("queue, judges and episode workers are ready")
    return policies, judges, episodes
