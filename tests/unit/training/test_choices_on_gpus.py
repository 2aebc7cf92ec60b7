"""What a run chooses on a machine with GPUs: device, attention, environment, pools, and the order of a start."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.cli import train as train_command
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import InputError, SettingsError
from code_a1_recipe.training import preflight, startup
from code_a1_recipe.training.lifecycle import launch
from code_a1_recipe.training.lifecycle.stage_clock import StageClock
from code_a1_recipe.training.plan import machine
from code_a1_recipe.training.plan.machine import Machine
from code_a1_recipe.training.plan.memory import GIB
from code_a1_recipe.training.plan.sizes import engines, kv_memory

PRESET = "qwen2.5-coder-1.5b"


def config_of(preset, *overrides):
    return read_config(preset, ["run_dir=/nowhere/x", *overrides])


@pytest.fixture
def gpus(monkeypatch):
    """Set how much memory each GPU has that torch sees."""

    def see(*sizes):
        properties = [SimpleNamespace(total_memory=size) for size in sizes]
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(sizes))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(sizes))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: properties[number])

    return see


def test_a_run_for_gpus_needs_one_here_or_a_cluster(gpus, monkeypatch):
    gpus()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (words,) = preflight._device(config_of(PRESET))
    assert "trainer.device=cuda, but torch sees no GPU here: " in words
    assert "(CUDA_VISIBLE_DEVICES='')" in words
    assert list(preflight._device(config_of(PRESET, "+ray_kwargs.ray_init.address=auto"))) == []
    assert list(preflight._device(config_of("cpu"))) == []
    gpus(80 * GIB)
    assert list(preflight._device(config_of(PRESET))) == []


def test_the_smallest_gpu_counts(gpus):
    gpus(80 * GIB, 40 * GIB)
    here = machine.Machine.here("/tmp", device="cuda")
    assert (here.num_gpus, here.gpu_memory) == (2, 40 * GIB)
    here = machine.Machine.here("/tmp", device="cpu")
    assert (here.num_gpus, here.gpu_memory) == (0, 0)


@pytest.mark.parametrize("raised", [RuntimeError("The NVIDIA driver on your system is too old\nsecond"), None])
def test_why_there_is_no_gpu_is_in_torchs_words(monkeypatch, raised):
    def init():
        if raised:
            raise raised

    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    expected = "The NVIDIA driver on your system is too old" if raised else "torch found none at its start"
    assert machine.why_no_gpu() == expected


@pytest.mark.parametrize(
    ("sizes", "stamp", "preset"),
    [((80,), "cpu 1", "tiny-1gpu"), ((), None, "cpu"), ((), "cpu 1", "cpu"), ((), "gpu 1", None)],
)
def test_without_a_preset_the_machine_decides(gpus, monkeypatch, tmp_path, sizes, stamp, preset):
    gpus(*sizes)
    monkeypatch.setattr(train_command.sys, "prefix", str(tmp_path))
    if stamp:
        (tmp_path / train_command.SETUP_STAMP).write_text(stamp)
    if preset:
        assert train_command._default_preset() == preset
        return
    with pytest.raises(InputError, match="this environment was set up for GPUs, but torch sees none: "):
        train_command._default_preset()


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setattr(launch, "make_sockets_folder", lambda: "/nowhere/code-a1-1")

    def prepare(preset, *overrides, **variables):
        monkeypatch.setattr(launch.os, "environ", dict(variables))
        return launch.prepare_environment(config_of(preset, *overrides))

    return prepare


@pytest.mark.parametrize(("preset", "is_asked"), [(PRESET, True), (PRESET, False), ("cpu", True)])
def test_kernels_repeat_their_results_on_gpus_where_a_run_is_to(environment, preset, is_asked):
    variables = environment(preset, f"deterministic={is_asked}", "data.seed=7")
    names = ("VERL_FULL_DETERMINISM", "VLLM_BATCH_INVARIANT", "PYTHONHASHSEED")
    expected = ("1", "1", "7") if is_asked and preset != "cpu" else (None, None, None)
    assert tuple(variables.get(name) for name in names) == expected


def test_the_environment_of_a_cpu_is_not_that_of_gpus(environment):
    assert {"VERL_PLATFORM", "OMP_NUM_THREADS", "CODE_A1_TRAINING_THREADS"}.isdisjoint(environment(PRESET))
    assert environment("cpu")["VERL_PLATFORM"] == "cpu"


@pytest.mark.parametrize("preset", ["cpu", PRESET])
def test_ray_starts_no_process_for_each_logical_cpu(environment, preset):
    assert environment(preset)["RAY_prestart_worker_first_driver"] == "0"


def test_sockets_of_vllm_are_in_a_folder_that_the_run_removes_unless_other_nodes_would_need_it(environment):
    folder = launch._VLLM_SOCKETS
    for preset in ("cpu", PRESET):
        assert environment(preset)[folder] == "/nowhere/code-a1-1"
        assert environment(preset, VLLM_RPC_BASE_PATH="/mine")[folder] == "/mine"
    assert folder not in environment(PRESET, "+ray_kwargs.ray_init.address=10.0.0.1:6379")
    assert folder not in environment(PRESET, RAY_ADDRESS="auto")


def test_ray_counts_the_gpus_itself_where_there_are_some():
    assert launch._ray_arguments(config_of("cpu", "trainer.n_gpus_per_node=2"))["num_gpus"] == 2
    assert launch._ray_arguments(config_of(PRESET)).get("num_gpus") is None
    joined = launch._ray_arguments(config_of("cpu", "+ray_kwargs.ray_init.address=auto"))
    assert (joined["address"], "num_gpus" in joined) == ("auto", False)


class Pool:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def get_placement_groups(self, **arguments):
        self.log.append((self.name, arguments))


@pytest.mark.parametrize(
    ("overrides", "expected"), [((), {"colocated": [8]}), (("layout=separate",), {"code": [4], "test": [4]})]
)
def test_pools_never_spread_a_nodes_group_over_nodes(overrides, expected):
    log = []
    manager = SimpleNamespace(create_resource_pool=lambda: None)
    manager.resource_pool_dict = {name: Pool(name, log) for name in expected}
    pools = startup.make_pools(manager, config_of(PRESET, *overrides).pool_spec(), device="cuda")
    assert manager.resource_pool_spec == expected
    assert log == [(name, {"strategy": "STRICT_PACK", "device_name": "cuda"}) for name in expected]
    assert pools == manager.resource_pool_dict


@pytest.mark.parametrize(
    ("preset", "overrides", "at_once"),
    [
        (PRESET, (), False),
        (PRESET, ("+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=9",), True),
        (PRESET, ("layout=separate",), True),
        ("cpu", (), True),
    ],
)
def test_policies_start_at_once_unless_their_servers_measure_one_card(monkeypatch, preset, overrides, at_once):
    log, other = [], threading.Event()

    def start(name, config, *, pool, total_updates):
        log.append(f"{name} begins")
        other.wait(0.5) if name == "code" else other.set()
        log.append(f"{name} has started")
        return SimpleNamespace(endpoint=lambda: f"{name}'s servers")

    monkeypatch.setattr(startup.Policy, "start", start)
    monkeypatch.setattr(startup.JudgePool, "start", lambda settings, seed: "judges")
    pool = SimpleNamespace(connect=lambda **parts: connected.update(parts))
    monkeypatch.setattr(startup.EpisodePool, "start", lambda settings: log.append("episode workers") or pool)
    connected = {}
    monkeypatch.setattr(startup.row_queue, "init", lambda settings: log_of_queue.append(settings))
    monkeypatch.setattr(startup, "make_pools", lambda manager, spec, device: dict.fromkeys(spec))
    log_of_queue, shown = [], []
    _, judges, episodes = startup.start_parts(
        config_of(preset, *overrides), manager=None, total_steps=1, stages=StageClock(shown.append)
    )
    assert (judges, len(log_of_queue)) == ("judges", 1)
    assert episodes is pool
    assert connected == {"endpoints": {"code": "code's servers", "test": "test's servers"}, "judges": "judges"}
    assert log.pop(0) == "episode workers"  # they import what they need meanwhile
    assert len(shown) == 3
    if at_once:
        assert log[:2] == ["code begins", "test begins"]
    else:
        assert log == ["code begins", "code has started", "test begins", "test has started"]


CARD = Machine(cores=16, memory=0, shared_memory=0, disk=0, num_gpus=1, gpu_memory=80 * GIB)


def test_a_servers_kv_cache_is_what_its_weights_and_a_pass_leave():
    config = config_of("qwen2.5-coder-1.5b-1gpu")
    config = config.with_values(engines(config, CARD))
    weights, one_pass = 2 * 1_543_714_304, 16_384 * (4 * 1536 + 3 * 8960) * 2 + 512 * 151_936 * 16
    assert {kv_memory(config, name) for name in ("code", "test")} == {
        int(0.35 * 80 * GIB) - weights - one_pass - 2 * GIB
    }
    given = config.for_policy("test").actor_rollout_ref.rollout.engine_kwargs.vllm  # where verl reads it
    assert given == {"kv_cache_memory_bytes": kv_memory(config, "test"), "distributed_executor_backend": "uni"}


@pytest.mark.parametrize(
    ("preset", "overrides", "num_gpus", "expected"),
    [
        ("cpu", (), 1, None),
        (PRESET, (), 0, None),  # the cards are another machine's
        (PRESET, ("actor_rollout_ref.rollout.gpu_memory_utilization=0.05",), 1, None),  # vLLM says what is missing
        (PRESET, ("+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=9",), 1, 9),
    ],
)
def test_a_kv_cache_is_left_to_vllm_or_the_user(preset, overrides, num_gpus, expected):
    config = config_of(preset, *overrides)
    config = config.with_values(engines(config, replace(CARD, num_gpus=num_gpus)))
    assert kv_memory(config, "code") == expected


@pytest.mark.parametrize(
    ("preset", "overrides", "share"),
    [
        (PRESET, (), 0.4),
        (PRESET, ("layout=separate",), 0.8),
        (PRESET, ("arm=golden",), 0.8),
        ("qwen2.5-coder-1.5b-1gpu", ("arm=self_play",), 0.8),
        ("qwen2.5-coder-0.5b", ("arm=frozen",), 0.25),
        (PRESET, ("arm=frozen", "episode.tester=pkg://code_a1_recipe.errors:CodeA1Error"), 0.8),
        (PRESET, ("arm=static", "actor_rollout_ref.rollout.gpu_memory_utilization=0.6"), 0.6),
    ],
)
def test_a_server_with_a_card_to_itself_takes_more_of_it(preset, overrides, share):
    config = config_of(preset, *overrides)
    for name in config.policy_names:
        assert config.for_policy(name).actor_rollout_ref.rollout.gpu_memory_utilization == share
        assert config.policy(name).rollout.gpu_memory_utilization == share


def test_judges_and_episode_workers_grow_with_the_nodes():
    one, two = (config_of(PRESET, f"trainer.nnodes={number}") for number in (1, 2))
    assert (one.sandbox.num_workers, one.episode.num_workers) == (8, 4)
    assert (two.sandbox.num_workers, two.episode.num_workers) == (16, 8)
    separate = config_of(PRESET, "layout=separate", "pools.code.nnodes=1", "pools.test.nnodes=2")
    assert (separate.sandbox.num_workers, separate.episode.num_workers) == (16, 8)
    assert config_of(PRESET, "trainer.nnodes=2", "sandbox.num_workers=3").sandbox.num_workers == 3
    with pytest.raises(SettingsError, match=r"^trainer.nnodes must be an integer, got 'two'$"):
        config_of(PRESET, "trainer.nnodes=two")
