"""A policy on GPUs, without one: the role of its workers, how its servers are asked, and what an update hands back."""

import math
from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CodeA1Error, OutageError
from code_a1_recipe.training import policy as policy_module
from code_a1_recipe.training.policy import Policy
from code_a1_recipe.verl_plugin import phases as phases_module, workers as workers_module
from code_a1_recipe.verl_plugin.trajectories import StoredRows

ONE_CARD = ("trainer.n_gpus_per_node=1", "data.train_batch_size=128")


def policy_of(name, *overrides, preset="qwen2.5-coder-1.5b"):
    config = read_config(preset, ["run_dir=/nowhere/x", *overrides])
    return Policy(name, config, pool=None, total_updates=4)


@pytest.mark.parametrize(
    ("overrides", "role"),
    [
        ((), "actor_rollout_ref"),
        (("policies.test.model.lora_rank=16",), "actor_rollout"),  # the base is the reference
        (("arm=frozen",), "actor_rollout"),  # it never learns
    ],
)
def test_a_reference_is_loaded_only_for_a_policy_that_needs_one(monkeypatch, overrides, role):
    workers = SimpleNamespace(init_model=lambda: None)
    group = SimpleNamespace(spawn=lambda prefix_set: dict.fromkeys(prefix_set, workers))
    monkeypatch.setattr(workers_module, "create_colocated_worker_cls", list)
    roles = []

    def worker_group(*, ray_cls_with_init, **named):
        roles.extend(ray_cls_with_init)
        return group

    monkeypatch.setattr(workers_module, "RayWorkerGroup", worker_group)
    policy_of("test", *overrides).start_workers()
    assert roles == [role]


def endpoint_of(policy, num_servers):
    addresses = [f"host:{rank}" for rank in range(num_servers)]
    policy.llm_server_manager = SimpleNamespace(get_addresses=lambda: addresses, client=lambda config: None)
    return policy.endpoint()


def test_several_servers_get_as_many_more_requests():
    one, two = (endpoint_of(policy_of("code", *ONE_CARD), number) for number in (1, 2))
    assert one.max_calls * 2 == two.max_calls


@pytest.mark.parametrize(
    ("preset", "overrides", "is_seeded"),
    [("qwen2.5-coder-1.5b", (), False), ("qwen2.5-coder-1.5b", ("deterministic=true",), True), ("cpu", (), True)],
)
def test_requests_have_seeds_where_servers_can_repeat_them(preset, overrides, is_seeded):
    assert endpoint_of(policy_of("code", *overrides, preset=preset), 1).is_seeded is is_seeded


@pytest.mark.parametrize(("preset", "num_asked"), [("qwen2.5-coder-1.5b", 2), ("cpu", 0)])
def test_each_gpus_cache_is_emptied_for_the_other_policy(monkeypatch, preset, num_asked):
    asked = []
    call = SimpleNamespace(remote=asked.append)
    policy = policy_of("code", preset=preset)
    policy.workers = SimpleNamespace(workers=[SimpleNamespace(__ray_call__=call)] * 2)
    monkeypatch.setattr(policy_module.ray, "get", list)
    policy._empty_caches()
    assert asked == [policy_module._empty_cache] * num_asked


@pytest.mark.parametrize(("limit", "stops"), [("0.1", True), ("0.3", False), ("null", False)])
def test_what_servers_with_other_weights_wrote_ends_the_run(monkeypatch, limit, stops):
    """Before the policy learns from it."""
    policy, ran = policy_of("test", f"episode.max_log_probs_diff={limit}", preset="cpu"), []
    policy.phases = phases = phases_module.UpdatePhases(
        policy.config, name="test", workers=None, tokenizer=None, has_adapter=False, num_gpus=1
    )

    def phase(name):
        def run(batch, metrics):
            ran.append(name)
            if name == "_compute_old_log_prob":
                metrics["training/rollout_log_probs_diff_worst"] = 0.2
            return batch

        return run

    for name in ("balance_batch", "compute_old_log_prob", "compute_ref_log_prob", "compute_advantage", "update_actor"):
        monkeypatch.setattr(phases, f"_{name}", phase(f"_{name}"))
    monkeypatch.setattr(phases, "_compute_metrics", lambda *arguments, **named: None)
    monkeypatch.setattr(phases_module, "clear_rows", lambda **rows: None)
    rows = StoredRows(keys=("q_0_0",), tags=({},))
    if not stops:
        assert policy.update(rows, step=3, epoch=0)["rollout_log_probs_diff_worst"] == 0.2
        assert ran[-1] == "_update_actor"
        return
    with pytest.raises(OutageError, match=r"step 3: test/rollout_log_probs_diff_worst is 0.2, above episode.max_log_"):
        policy.update(rows, step=3, epoch=0)
    assert ran[-1] == "_compute_old_log_prob"


def test_a_run_ends_where_its_gradient_stays_no_number():
    policy, metrics = policy_of("code", preset="cpu"), {}
    for norm, left_out in ((math.nan, 1), (math.inf, 2), (0.5, 0), *[(math.nan, n) for n in (1, 2, 3, 4)]):
        metrics = {"actor/grad_norm": norm}
        policy._check_gradient(metrics, step=1)
        assert metrics["actor/updates_left_out"] == left_out
    with pytest.raises(CodeA1Error, match=r"step 9: the gradient of the code policy was no number 5 steps in a row"):
        policy._check_gradient(metrics, step=9)
