"""``python tests/gpu_stack/probe.py JOBS.json FACTS.json``: what GPU presets come to, up to the kernels.

A process of its own, since it makes vLLM believe in a card that is not there. It goes the way of a run (environment,
composition, checks, policies, verl's workers and servers) and records what would be started in place of starting it.
Jobs that share a process, by name ``[preset, overrides]``, must agree about ``deterministic``, which vLLM reads once.
"""

import asyncio
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any
from unittest import mock

from stand_ins import plain, use_fake_h100


def main(jobs: str, out: str) -> None:
    from code_a1_recipe.config.compose import read_config
    from code_a1_recipe.training.lifecycle import launch

    configs = {name: read_config(*job) for name, job in json.loads(Path(jobs).read_text()).items()}
    launch.prepare_environment(next(iter(configs.values())))
    use_fake_h100()
    import ray
    import torch

    ray_folder = tempfile.mkdtemp(prefix="ray")  # short: a socket's path may have 107 characters
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, _temp_dir=ray_folder)
    rendezvous = Path(out).with_suffix(".rendezvous")
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=0, world_size=1)
    facts = {}
    for name, config in configs.items():
        with mock.patch.dict(os.environ):
            try:
                facts[name] = run_facts(config)
            except (Exception, SystemExit):  # noqa: BLE001  # the other cases stand; vLLM's parser exits
                facts[name] = {"error": traceback.format_exc()}
    Path(out).write_text(json.dumps(facts))
    torch.distributed.destroy_process_group()
    ray.shutdown()
    shutil.rmtree(ray_folder, ignore_errors=True)


def run_facts(config: Any) -> dict[str, Any]:
    """What each policy of a run is started with, after all that the launcher does before it."""
    from code_a1_recipe.training.lifecycle import launch
    from code_a1_recipe.training.plan.sizes import with_sizes
    from code_a1_recipe.training.preflight import check_run
    from code_a1_recipe.training.resolve import attention

    config = with_sizes(config)
    config = config.with_values(attention(config))
    check_run(config)
    os.environ.update(launch._ray_arguments(config)["runtime_env"]["env_vars"])
    return {name: plain(policy_facts(name, config)) for name in config.policy_names}


def policy_facts(name: str, config: Any) -> dict[str, Any]:
    """What a policy's worker and server are started with, each as verl's own code makes it."""
    from code_a1_recipe.training.policy import Policy

    policy = Policy(name, config, pool=None, total_updates=100)
    worker = started_worker(policy)
    rollout, server = server_facts(policy)
    return {
        "devices": config.num_devices(name),
        "role": worker.role,
        "seeds_each_request": endpoint_of(policy).is_seeded,
        "environment": {key: os.environ.get(key) for key in ("VLLM_BATCH_INVARIANT", "VERL_FULL_DETERMINISM")},
        "trained": {
            role: training_facts(one.config) for role, one in (("actor", worker.actor), ("ref", worker.ref)) if one
        },
        "rollout": {"type": type(rollout).__name__} | fields_of(rollout),
        "checkpoint_engine": {"type": type(rollout.checkpoint_engine).__name__} | fields_of(rollout.checkpoint_engine),
        "adapter": type(worker.rollout).__name__,
        **server,
    }


def fields_of(config: Any) -> dict[str, Any]:
    return {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


class RecordedTraining:
    """In place of verl's TrainingWorker, which would build the model on a card."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def reset(self) -> None:
        pass

    def set_loss_fn(self, loss_fn: Any) -> None:
        assert callable(loss_fn)

    def get_dispatch_collect(self) -> dict[str, Any]:
        return {"dispatch_dp_rank": {"train": 0}, "collect_dp_rank": {"train": True}}


class RecordedGroup:
    """In place of verl's RayWorkerGroup: keeps what its workers would be made of."""

    def __init__(self, *, ray_cls_with_init: Any, **others: Any) -> None:
        (self.role, self.worker), *_ = ray_cls_with_init.items()

    def spawn(self, prefix_set: list[str]) -> dict[str, Any]:
        return {prefix_set[0]: self}

    def init_model(self) -> None:
        pass


def started_worker(policy: Any) -> Any:
    """verl's worker as the policy asks for it, its model configured and not built."""
    from verl.workers.engine_workers import ActorRolloutRefWorker

    import code_a1_recipe.verl_plugin.workers as module

    with mock.patch.multiple(module, RayWorkerGroup=RecordedGroup, create_colocated_worker_cls=lambda classes: classes):
        policy.start_workers()
    ranks = str(policy.settings.num_devices(policy.name))
    ours = {"RANK": "0", "WORLD_SIZE": ranks, "LOCAL_RANK": "0", "RAY_LOCAL_WORLD_SIZE": ranks}
    with mock.patch.dict(os.environ, ours | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}):
        worker = ActorRolloutRefWorker(**policy.workers.worker.kwargs)
        worker.actor_worker_cls = worker.ref_worker_cls = RecordedTraining
        with mock.patch("verl.workers.engine_workers.init_device_mesh"):
            worker.init_model()
    return worker


def training_facts(config: Any) -> dict[str, Any]:
    """Types and values of what verl's TrainingWorker gets."""
    parts = {
        "model": config.model_config, "engine": config.engine_config, "optimizer": config.optimizer_config,
        "checkpoint": config.checkpoint_config,
    }  # fmt: skip
    found = {name: {"type": type(part).__name__} | fields_of(part) for name, part in parts.items() if part is not None}
    found["model"] = {
        key: found["model"][key] for key in ("type", "lora_rank", "override_config", "use_remove_padding")
    }
    return found


def endpoint_of(policy: Any) -> Any:
    policy.llm_server_manager = mock.Mock(get_addresses=lambda: ["127.0.0.1:1"] * 2)
    return policy.endpoint()


def server_facts(policy: Any) -> tuple[Any, dict[str, Any]]:
    """Arguments that verl's server gives vLLM, and the engine's configuration on the card that is not there."""
    from verl.workers.rollout.replica import RolloutMode
    from verl.workers.rollout.vllm_rollout import vllm_async_server
    from vllm.engine.arg_utils import AsyncEngineArgs

    from code_a1_recipe.verl_plugin.servers import PolicyHttpServer, PolicyReplica

    view = policy.config.actor_rollout_ref
    replica = PolicyReplica(replica_rank=0, config=view.rollout, model_config=view.model)
    given: list[dict[str, Any]] = []
    parsed: list[Any] = []

    def record(arguments: dict[str, Any]) -> list[str]:
        given.append(arguments)
        # vLLM's parser ends the process at an unknown one; the test names it.
        return command_line({key: value for key, value in arguments.items() if key in known})

    async def keep(server: Any, arguments: Any) -> None:
        parsed.append(arguments)

    command_line = vllm_async_server.build_cli_args_from_config
    known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    with (
        mock.patch.object(vllm_async_server, "build_cli_args_from_config", record),
        mock.patch.object(PolicyHttpServer, "run_server", keep),
        mock.patch.dict(os.environ),  # a server has a process of its own
    ):
        server = PolicyHttpServer(
            config=replica.config, model_config=replica.model_config, rollout_mode=RolloutMode.HYBRID, workers=[],
            replica_rank=0, node_rank=0, gpus_per_node=replica.gpus_per_replica_node, nnodes=replica.nnodes,
            cuda_visible_devices="0",
        )  # fmt: skip
        asyncio.run(server.launch_server())
        engine_arguments = AsyncEngineArgs.from_cli_args(parsed[0])
        engine = engine_facts(engine_arguments.create_engine_config())
    arguments = {
        key: {"given": value, "known": key in known, "parsed": getattr(engine_arguments, key, None)}
        for key, value in given[0].items()
    }
    return server.config, {"arguments": plain(arguments), "engine": engine}


def engine_facts(config: Any) -> dict[str, Any]:
    """What of vLLM's configuration decides how a run behaves."""
    model, scheduler, parallel = config.model_config, config.scheduler_config, config.parallel_config
    return plain({
        "architecture": model.architecture,
        "dtype": str(model.dtype),
        "max_model_len": model.max_model_len,
        "seed": model.seed,
        "sleep_mode": model.enable_sleep_mode,
        "logprobs_mode": model.logprobs_mode,
        "enforce_eager": model.enforce_eager,
        "chunked_prefill": scheduler.enable_chunked_prefill,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "async_scheduling": scheduler.async_scheduling,
        "scheduling_policy": scheduler.policy,
        "prefix_caching": config.cache_config.enable_prefix_caching,
        "gpu_memory_utilization": config.cache_config.gpu_memory_utilization,
        "tensor_parallel_size": parallel.tensor_parallel_size,
        "executor": parallel.distributed_executor_backend,
        "worker": parallel.worker_cls,
        "worker_extension": parallel.worker_extension_cls,
        "load_format": config.load_config.load_format,
        "lora_rank": config.lora_config.max_lora_rank if config.lora_config else 0,
        "cudagraph_mode": str(config.compilation_config.cudagraph_mode),
        **kernel_facts(config),
    })  # fmt: skip


def kernel_facts(config: Any) -> dict[str, str]:
    """Which attention and which sampler an engine chooses for this model on this card."""
    from vllm.config import set_current_vllm_config
    from vllm.v1.attention.selector import get_attn_backend
    from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler

    model = config.model_config
    with set_current_vllm_config(config):
        attention = get_attn_backend(model.get_head_size(), model.dtype, config.cache_config.cache_dtype)
        sampler = TopKTopPSampler(model.logprobs_mode)
    return {"attention": attention.get_name(), "sampler": sampler.forward.__name__}


if __name__ == "__main__":
    main(*sys.argv[1:])
