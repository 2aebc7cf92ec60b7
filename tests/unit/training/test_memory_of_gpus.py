"""Two policies and their servers on the same cards, without a card: who sleeps, wakes, trains and holds memory when."""

import math
import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.algorithm.curriculum import Curriculum
from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import OutageError
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.training import startup, trainer as trainer_module
from code_a1_recipe.training.checkpoint.keeper import TrainState
from code_a1_recipe.training.lifecycle.signals import InterruptedRunError, SignalHandler
from code_a1_recipe.training.policy import OneServerClient, Policy
from code_a1_recipe.training.trajectories import StoredRows

from . import fake_device

QUESTIONS = [Question(id=f"q{number}", prompt="p", reference="def f(x): return x") for number in range(2)]
SHARDING = "actor_rollout_ref.actor.fsdp_config"
RESIDENT = (f"{SHARDING}.param_offload=false", f"{SHARDING}.optimizer_offload=false")
ONE_CARD = ("trainer.n_gpus_per_node=1", "data.train_batch_size=128")
TWO_CARDS = ("trainer.n_gpus_per_node=2", "data.train_batch_size=128")
APART = (
    "layout=separate",
    *(f"pools.{name}.n_gpus_per_node=2" for name in ("code", "test")),
    "data.train_batch_size=128",
)


class Episodes:
    """Asks every server for a response, and has rows for both policies."""

    def __init__(self, device, policies):
        self.device, self.policies, self.versions = device, policies, []

    def run(self, tasks, *, validate, while_waiting):
        self.device.log.append("episodes")
        asked = [
            server.generate.remote(prompt_ids=[1], sampling_params={"logprobs": True}, request_id=f"{name} {number}")
            for name, policy in self.policies.items()
            for number, server in enumerate(policy.llm_server_manager.server_handles)
        ]
        if self.device.is_held:
            for _ in asked:
                assert self.device.held.acquire(timeout=10)
            self.asked = asked
            self.while_held()
        else:
            self.versions.append({output.extra_fields["global_steps"] for output in fake_device.get(asked)})
        while_waiting()
        for task in tasks:
            rows = {name: StoredRows(keys=(f"{task.index}_{name}",), tags=({},)) for name in self.policies}
            yield trainer_module.EpisodeReport(
                index=task.index, question_id=task.question.id, grpo_rows=rows, book_update=None, code_rewards=(),
                accumulator={}, busy={"generate": (), "judge": ()}, records=b"", outage="",
            )  # fmt: skip

    def close(self):
        self.device.log.append("episodes end")


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a run on cards without a card, as the trainer does up to its first step."""
    devices = []
    monkeypatch.setattr(trainer_module, "step_marker", lambda step: f"marker {step}")
    monkeypatch.setattr(startup.JudgePool, "start", lambda settings, seed: None)

    def make(*overrides, resumed=False):
        config = read_config("qwen2.5-coder-1.5b", [f"run_dir={tmp_path}", "mistake_book.enabled=false", *overrides])
        device = fake_device.Device(config)
        devices.append(device)
        fake_device.install(device, monkeypatch)
        pools = {name: SimpleNamespace(world_size=config.num_devices(name)) for name in config.policy_names}
        policies, _ = startup.start_policies_and_judges(config, pools=pools, total_steps=4, log=lambda line: None)
        if resumed:
            for name, policy in policies.items():
                policy.load(tmp_path / name)
        trainer = object.__new__(trainer_module.CodeA1Trainer)
        trainer.config, trainer.settings, trainer.policies = config.for_verl(), config, policies
        trainer.run_folder, trainer.book = RunFolder(tmp_path), MistakeBook()
        trainer.episodes = Episodes(device, policies)
        trainer.finished = TrainState(step=0, data=None)
        trainer.signals = SignalHandler(leave_within_seconds=math.inf, show=device.log.append)
        trainer.train_dataloader_it = iter([{"question": QUESTIONS}] * 2)
        trainer.train_dataloader = SimpleNamespace(state_dict=lambda: "order")
        trainer.curriculum = Curriculum(config.curriculum, QUESTIONS, seed=1)
        trainer.global_steps, trainer.steps_per_epoch, trainer.curr_step_profile = 0, 2, False
        trainer._has_stepped, trainer.timing_raw = False, {}
        trainer.on_init_end()
        return trainer, device

    yield make
    for device in devices:
        device.end()


def step(trainer, device, number):
    """What happens to the cards in one step, with the weights for the next."""
    device.log.clear()
    trainer.global_steps = number
    trainer.step({}, {})
    trainer.on_step_end()
    return list(device.log)


def of_policy(name, *, cards=1):
    """What a policy's cards do, in this order: servers sleep, verl's update, rows, the new weights."""
    ranks = range(cards)
    return {
        "asleep": [f"{name}{rank} server sleeps at level 2" for rank in ranks],
        "update": [f"{name}{rank} {what}" for what in ("infers", "infers the reference", "trains") for rank in ranks],
        "sync": [
            f"{name}{rank} server {what}" for what in ("wakes weights", "gets weights: all", "wakes kv_cache")
            for rank in ranks
        ],
    }  # fmt: skip


def test_on_one_card_all_servers_sleep_before_an_update_and_wake_one_after_the_other(start):
    trainer, device = start(*ONE_CARD)
    code, test = of_policy("code"), of_policy("test")
    assert device.log == [
        "code0 server starts", *code["asleep"], "test0 server starts", *test["asleep"], *code["sync"], *test["sync"],
    ]  # fmt: skip
    assert step(trainer, device, 1) == [
        "episodes", *code["asleep"], *test["asleep"],
        *code["update"], "code rows removed", *test["update"], "test rows removed",
        *code["sync"], *test["sync"],
    ]  # fmt: skip
    step(trainer, device, 2)
    assert trainer.episodes.versions == [{0}, {1}]  # the servers say whose weights they answer with


@pytest.mark.parametrize(
    ("overrides", "sharding"),
    [
        (ONE_CARD, ()), (ONE_CARD, RESIDENT), (ONE_CARD, RESIDENT[:1]), (ONE_CARD, RESIDENT[1:]),
        (TWO_CARDS, ()), (TWO_CARDS, RESIDENT), (APART, ()), (APART, RESIDENT),
    ],
)  # fmt: skip
def test_no_card_is_asked_for_what_another_process_holds(start, overrides, sharding):
    trainer, device = start(*overrides, *sharding)
    for number in (1, 2):
        log = step(trainer, device, number)
        for name in ("code", "test"):
            expected = of_policy(name, cards=len(device.cards[name]))
            for part in expected.values():
                assert sorted(line for line in log if line in part) == sorted(part)
        last_asleep = max(place for place, line in enumerate(log) if "sleeps" in line)
        first_awake = min(place for place, line in enumerate(log) if "wakes" in line)
        trained = [place for place, line in enumerate(log) if line.endswith("trains")]
        assert last_asleep < min(trained) < max(trained) < first_awake
    parts = {"model", "optimizer"} - ({"model"} if RESIDENT[0] not in sharding else set())
    left = parts - ({"optimizer"} if RESIDENT[1] not in sharding else set())
    for name, cards in device.cards.items():
        assert all(card.workers[name] == left and not card.cached for card in cards)


def test_policies_with_cards_of_their_own_train_at_the_same_time(start, monkeypatch):
    trainer, device = start(*APART)
    together = threading.Barrier(2)
    update = Policy._update_actor

    def meet(policy, batch, metrics):
        together.wait(10)
        return update(policy, batch, metrics)

    monkeypatch.setattr(Policy, "_update_actor", meet)
    log = step(trainer, device, 1)
    assert sum(line.endswith("trains") for line in log) == 4


def test_an_adapter_sends_the_base_once_and_leaves_it_in_the_servers_care(start):
    trainer, device = start(*ONE_CARD, "policies.test.model.lora_rank=16")
    assert "test0 server sleeps at level 1" in device.log
    assert device.roles == {"code": "actor_rollout_ref", "test": "actor_rollout"}  # the base is the reference
    assert [line for line in device.log if line.startswith("test0 server gets")] == [
        "test0 server gets weights: base", "test0 server gets weights: adapter",
    ]  # fmt: skip
    log = step(trainer, device, 1)
    assert [line for line in log if line.startswith("test0 server gets")] == ["test0 server gets weights: adapter"]
    assert log.count("test0 infers") == 2
    step(trainer, device, 2)


def test_a_policy_that_never_learns_builds_no_reference_and_never_comes_onto_the_card(start):
    trainer, device = start(*ONE_CARD, "arm=frozen")
    assert device.roles == {"code": "actor_rollout_ref", "test": "actor_rollout"}
    log = step(trainer, device, 1)
    assert not {"test0 infers", "test0 infers the reference", "test0 trains"} & set(log)
    assert "test rows removed" in log
    assert device.cards["test"][0].workers["test"] == set()
    step(trainer, device, 2)


def test_a_signal_aborts_what_servers_work_on_and_frees_the_cards_before_saving(start, tmp_path, monkeypatch):
    trainer, device = start(*TWO_CARDS)
    step(trainer, device, 1)

    def save():
        for name, policy in trainer.policies.items():
            policy.save(tmp_path / name, step=1)
        return tmp_path

    monkeypatch.setattr(trainer, "_save_finished", save)
    device.is_held = True
    trainer.episodes.while_held = lambda: setattr(trainer.signals, "signal_number", 15)
    device.log.clear()
    trainer.global_steps = 2
    with pytest.raises(InterruptedRunError, match="SIGTERM: step 1 is saved"):
        trainer.step({}, {})
    outputs = fake_device.get(trainer.episodes.asked)
    assert [output.stop_reason for output in outputs] == ["aborted"] * 4
    asleep = [f"{name}{rank} server sleeps at level 2" for name in ("code", "test") for rank in range(2)]
    assert sorted(device.log[2:6]) == sorted(asleep)
    assert sorted(device.log[6:]) == sorted(f"{name}{rank} saves" for name in ("code", "test") for rank in range(2))
    late = trainer.policies["code"].llm_server_manager.server_handles[0]
    refused = late.generate.remote(prompt_ids=[1], sampling_params={"logprobs": True}, request_id="late")
    assert fake_device.get(refused).stop_reason == "aborted"  # and not asked of an engine that sleeps


def test_a_run_that_resumes_hands_back_what_loading_took_before_a_server_wakes(start):
    trainer, device = start(*ONE_CARD, resumed=True)
    assert [line for line in device.log if line.endswith("loads")] == ["code0 loads", "test0 loads"]
    step(trainer, device, 1)


def test_a_server_that_is_lost_while_weights_come_lets_the_step_be_saved(start, monkeypatch):
    trainer, device = start(*ONE_CARD)
    monkeypatch.setattr(trainer, "_save_and_tell", lambda: device.log.append("saved") or "saved")
    monkeypatch.setattr(trainer.run_folder, "show", lambda line: None)
    device.log.clear()
    never = threading.Event()
    monkeypatch.setattr(trainer.policies["code"].checkpoint_manager, "update_weights", lambda step: never.wait())
    object.__setattr__(trainer.settings.episode, "generation_timeout_seconds", 0.2)
    with pytest.raises(OutageError, match="a server of the code policy did not answer within"):
        trainer.on_step_end()
    never.set()
    assert device.log == ["saved"]  # and the other policy's servers were left asleep


def test_several_servers_are_balanced_and_one_is_asked_directly(start):
    trainer, _ = start(*TWO_CARDS)
    two = trainer.policies["code"].endpoint()
    assert type(two.client) is not OneServerClient
    one = start(*ONE_CARD)[0].policies["code"].endpoint()
    assert type(one.client) is OneServerClient
    assert (one.is_seeded, one.max_calls * 2) == (False, two.max_calls)
    assert start(*ONE_CARD, "deterministic=true")[0].policies["code"].endpoint().is_seeded
    processes = trainer.policies["code"].processes()
    assert {"code policy's worker 1", "code policy's server 1"} <= set(processes)
