"""What the recipe assumes of verl 0.9.1; an upgrade that changes one of these fails here, with a name."""

import asyncio
import inspect
import re
from pathlib import Path

import pytest

from code_a1_recipe.verl_plugin.compat import (
    CPUS_PER_DEVICE,
    CPUS_PER_QUEUE_ACTOR,
    SYNC_MODE,
    TRAINER_NAME,
    VERL_VERSION,
    installed_verl,
    rename_training_metrics,
)

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from verl.trainer.ppo.v1 import trainer_base
from verl.workers.rollout.llm_server import LLMServerClient, LLMServerManager

from code_a1_recipe.verl_plugin import row_queue
from code_a1_recipe.verl_plugin.backends import socket_job
from code_a1_recipe.verl_plugin.client import OneServerClient, PolicyServerManager


def test_the_pinned_version_is_the_same_in_all_places(repository: Path):
    assert installed_verl() == VERL_VERSION
    assert f"verl=={VERL_VERSION}" in (repository / "REQUIRED_VERL.txt").read_text()
    pins = re.findall(r'"verl(?:\[vllm\])?==([\d.]+)"', (repository / "pyproject.toml").read_text())
    assert set(pins) == {VERL_VERSION}


def test_our_trainer_is_registered_under_its_name():
    from code_a1_recipe.training.trainer import CodeA1Trainer

    assert trainer_base.get_trainer_cls(TRAINER_NAME) is CodeA1Trainer


def test_verl_loads_our_plugin_and_knows_a_backend_per_policy():
    import verl  # noqa: F401
    from verl.workers.rollout.base import get_rollout_class
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    for policy in ("code", "test"):
        assert get_rollout_class(f"vllm_{policy}").__name__ == "PolicyServerAdapter"
        assert RolloutReplicaRegistry.get(f"vllm_{policy}").__name__ == "PolicyReplica"


def test_a_server_is_asked_for_the_tokens_of_finished_responses_alone(monkeypatch):
    """vLLM takes these keys, and the caller's own are as they were."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    from code_a1_recipe.verl_plugin import servers

    async def generate(self, prompt_ids, sampling_params, request_id, *, priority):
        return SamplingParams(**sampling_params), prompt_ids, request_id, priority

    monkeypatch.setattr(servers.vLLMHttpServer, "generate", generate)
    given = {"temperature": 0.5}
    server = object.__new__(servers.PolicyHttpServer)
    sampling, *others = asyncio.run(server.generate([1, 2], given, "r", priority=3))
    assert (sampling.output_kind, sampling.detokenize) == (RequestOutputKind.FINAL_ONLY, False)
    assert (sampling.temperature, given, others) == (0.5, {"temperature": 0.5}, [[1, 2], "r", 3])


def test_verl_still_tests_for_the_literal_sync_mode():
    assert f'trainer_mode == "{SYNC_MODE}"' in inspect.getsource(trainer_base)


PHASES = """
_balance_batch _compute_old_log_prob _compute_ref_log_prob _compute_advantage _update_actor _compute_metrics
_init_dataloader _init_dump_executor _init_resource_pool_mgr
"""


@pytest.mark.parametrize("phase", PHASES.split())
def test_the_phases_we_call_are_verls(phase):
    assert callable(getattr(trainer_base.PPOTrainer, phase))


@pytest.mark.parametrize(
    "hook", ["self.step(", "self._save_checkpoint()", "self.on_step_end()", "self._validate()", "_compute_metrics("]
)
def test_verls_loop_asks_for_what_we_override(hook):
    assert hook in inspect.getsource(trainer_base.PPOTrainer.fit)


def test_verls_start_is_the_two_parts_that_the_launcher_calls():
    calls = re.findall(r"self\.(\w+)\(", inspect.getsource(trainer_base.PPOTrainer.init))
    assert calls == ["_setup", "on_init_end"]


def test_both_ends_of_the_weight_socket_are_named_by_job_and_rank():
    from verl.workers.rollout.vllm_rollout import utils, vllm_async_server, vllm_rollout

    pattern = "ipc:///tmp/rl-colocate-zmq-{job_id}-replica-"
    assert pattern in inspect.getsource(vllm_rollout.ServerAdapter.__init__)
    assert pattern in inspect.getsource(utils.vLLMColocateWorkerExtension._get_zmq_handle)
    assert '"VERL_RAY_JOB_ID"' in inspect.getsource(vllm_async_server.vLLMHttpServer.__init__)


def test_the_weight_socket_belongs_to_one_policy_of_one_run_on_the_machine():
    names = {
        socket_job("01000000", backend, address)
        for backend in ("vllm_code", "vllm_test")
        for address in ("127.0.0.1:52365", "127.0.0.1:61002")
    }
    assert len(names) == 4
    # A socket's path may have 107 characters.
    longest = max(f"/tmp/rl-colocate-zmq-{name}-replica-999-rank-999.sock" for name in names)
    assert len(longest) < 107


def test_metric_names_lose_the_training_group_and_what_is_not_a_policys():
    metrics = {"training/rollout_probs_diff_mean": 1e-7, "actor/lr": 1.0, "training/global_step": 3, "timing_s/gen": 0}
    assert rename_training_metrics(metrics) == {"rollout_probs_diff_mean": 1e-7, "actor/lr": 1.0}


def test_the_client_asks_the_balancer_where_we_answer_for_it():
    assert list(inspect.signature(LLMServerClient._acquire_server).parameters) == ["self", "request_id", "extra"]
    assert list(inspect.signature(LLMServerClient._release_server).parameters) == ["self", "server_id", "request_id"]
    source = inspect.getsource(LLMServerClient.generate)
    assert "await self._acquire_server(" in source
    assert "self._release_server(" in source


@pytest.mark.parametrize(("servers", "has_balancer"), [(["one"], False), (["one", "two"], True)])
def test_a_single_server_is_asked_without_a_load_balancer(monkeypatch, servers, has_balancer):
    async def start_balancer(manager):
        manager.global_load_balancer = "a balancer"

    monkeypatch.setattr(LLMServerManager, "_init_global_load_balancer", start_balancer)
    manager = PolicyServerManager.__new__(PolicyServerManager)
    manager.server_handles, manager.server_addresses = servers, [f"{name}:80" for name in servers]
    asyncio.run(manager._init_global_load_balancer())
    client = manager.client(config=None)
    assert hasattr(manager, "global_load_balancer") is has_balancer
    assert isinstance(client, OneServerClient) is not has_balancer
    if not has_balancer:
        assert asyncio.run(client._acquire_server("a session", prompt_ids=[1])) == ("one:80", "one")


def test_the_queue_asks_ray_for_the_cpus_that_a_plan_counts():
    from transfer_queue.controller import TransferQueueController
    from transfer_queue.storage.simple_storage import SimpleStorageUnit

    for actor in (TransferQueueController, SimpleStorageUnit):
        assert actor._default_options["num_cpus"] == CPUS_PER_QUEUE_ACTOR


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("init", ["conf"]),
        ("close", []),
        ("put_rows", ["keys", "partition_id", "fields"]),
        ("put_rows", ["keys", "partition_id", "tags"]),
        ("put_rows_async", ["keys", "partition_id", "fields", "tags"]),
        ("get_fields", ["keys", "partition_id", "select_fields"]),
        ("clear_rows", ["keys", "partition_id"]),
        ("KVBatchMeta", ["keys", "partition_id", "tags"]),
    ],
)
def test_the_queue_takes_the_arguments_that_we_give(function, arguments):
    inspect.signature(getattr(row_queue, function)).bind(**dict.fromkeys(arguments))


def test_verls_loop_removes_the_batch_of_a_step_from_the_queue_that_we_use():
    assert "tq.kv_clear(keys=batch.keys, partition_id=batch.partition_id)" in inspect.getsource(trainer_base)
    assert trainer_base.KVBatchMeta is row_queue.KVBatchMeta
    assert trainer_base.tq.kv_clear is row_queue.clear_rows


def test_a_pool_sets_aside_the_cpus_that_a_plan_counts():
    from verl.single_controller.ray import ResourcePoolManager, base as ray_base

    assert ResourcePoolManager(resource_pool_spec={}, mapping={}).max_colocate_count == CPUS_PER_DEVICE
    assert '{"CPU": self.max_colocate_count}' in inspect.getsource(ray_base.RayResourcePool)
