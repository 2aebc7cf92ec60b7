"""Start of a run's parts: pools of GPUs, both policies with their servers, and the judges, at once where that works."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from verl.single_controller.ray import RayResourcePool, ResourcePoolManager

from ..config.run_config import COLOCATED, RunConfig
from ..verl_plugin.compat import CPUS_PER_DEVICE
from .judge_actors import JudgePool
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


def start_policies_and_judges(
    config: RunConfig, *, pools: Mapping[str, RayResourcePool], total_steps: int, log: Callable[[str], None]
) -> tuple[dict[str, Policy], JudgePool]:
    """Both policies by name, and the judges.

    Args:
        total_steps: of the run; a learning-rate schedule counts the updates of its policy.
        log: gets a line for each policy that has started.
    """

    def start_policy(name: str) -> Policy:
        every = {"code": config.schedule.code_every, "test": config.schedule.test_every}[name]
        updates = max(1, total_steps // every) if every else 1
        policy = Policy.start(name, config, pool=pools[name], total_updates=updates)
        log(f"{name} policy: {config.policy(name).model.path}")
        return policy

    # Loading models and engines mostly waits, so on a CPU all of it happens at once. On a GPU a server measures the
    # free memory while it starts, which another one that starts beside it would falsify.
    starters = ThreadPoolExecutor(max_workers=None if config.trainer.device == "cpu" else 1)
    try:
        judges = starters.submit(JudgePool.start, config.sandbox, seed=config.seed)
        policies = {name: starters.submit(start_policy, name) for name in config.policy_names}
        return {name: started.result() for name, started in policies.items()}, judges.result()
    finally:  # whoever interrupts a start does not wait for its end
        starters.shutdown(wait=False, cancel_futures=True)
