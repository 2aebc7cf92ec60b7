"""Start of a run's parts: pools of GPUs, both policies with their servers, judges and episode workers."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from verl.single_controller.ray import RayResourcePool, ResourcePoolManager

from ..config.run_config import COLOCATED, SEPARATE, RunConfig
from ..verl_plugin import row_queue
from ..verl_plugin.compat import CPUS_PER_DEVICE
from .episode_actors import EpisodePool, prepare_workers
from .judge_actors import JudgePool
from .lifecycle.stage_clock import StageClock
from .plan.sizes import kv_memory
from .policy import Policy

Result = TypeVar("Result")


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

    # Nobody asks the queue before the first episode, so its processes may import what they need meanwhile.
    queue = _in_background(row_queue.init, config.for_verl().transfer_queue)
    prepare_workers(config.episode.num_workers)
    starting_judges = _in_background(JudgePool.start, config.sandbox, seed=config.seed)
    # Loading models and engines mostly waits, so all of it happens at once, unless a server measures the free memory of
    # its card while it starts, which another one that starts beside it would falsify.
    on_cpu = config.trainer.device == "cpu"
    if on_cpu or config.layout == SEPARATE or all(kv_memory(config, name) for name in config.policy_names):
        starting = {name: _in_background(start_policy, name) for name in config.policy_names}
        policies = {name: started.result() for name, started in starting.items()}
    else:
        policies = _in_background(lambda: {name: start_policy(name) for name in config.policy_names}).result()
    judges = starting_judges.result()
    queue.result()
    endpoints = {name: policy.endpoint() for name, policy in policies.items()}
    episodes = EpisodePool.start(config, endpoints=endpoints, judges=judges)
    stages.ended("queue, judges and episode workers are ready")
    return policies, judges, episodes


def _in_background(call: Callable[..., Result], *arguments: Any, **named: Any) -> Future[Result]:
    """Call in a thread of its own, which the end of the process does not wait for.

    verl waits for servers without a limit. A pool's threads would keep a process alive whose start was given up.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call(*arguments, **named))
        except BaseException as error:  # noqa: BLE001  # whoever asks for the result gets it
            future.set_exception(error)

    threading.Thread(target=run, name=f"start-{getattr(call, '__name__', 'part')}", daemon=True).start()
    return future
