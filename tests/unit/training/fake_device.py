"""Cards without a card: only what verl and vLLM do on a GPU is made up, and a rule of the memory that is broken raises.

verl's servers, replicas, checkpoint manager, weight update and offloading run as they are, and so do vLLM's rules
for sleeping; the engine's allocator, torch's cache and the loading of weights onto a card are recorded here. Each actor
has an event loop in a thread of its own, as Ray's have.
"""

import asyncio
import threading
from collections import defaultdict
from concurrent.futures import Future
from contextvars import ContextVar
from types import SimpleNamespace

import torch
from verl.workers.engine.fsdp.transformer_impl import FSDPEngine
from verl.workers.engine_workers import ActorRolloutRefWorker
from verl.workers.rollout.replica import RolloutMode
from vllm.v1.engine.core import EngineCore
from vllm.v1.executor.abstract import Executor

from code_a1_recipe.verl_plugin.servers import PolicyHttpServer, PolicyReplica, PolicyServerAdapter

PROCESS = ContextVar("process")
"""The process that the running call is in: a worker or an engine."""


class DeviceError(AssertionError):
    """A card would be out of memory, or an engine would answer with weights that it does not have."""


class Card:
    """What the processes of each policy hold on one GPU."""

    def __init__(self):
        self.engines = {}
        self.workers = defaultdict(set)
        self.cached = set()
        """Policies for whose worker torch keeps memory that it does not use."""

    def awake(self):
        return {f"{engine.name}: {part}" for engine in self.engines.values() for part in engine.parts}


class Actor:
    """A handle of Ray's on an object of this process."""

    def __init__(self, target):
        self._target, self._loop = target, asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __getattr__(self, name):
        return SimpleNamespace(remote=lambda *given, **named: self._start(name, given, named))

    def _start(self, name, given, named):
        async def call():
            PROCESS.set(self._target)
            if name == "__ray_call__":
                return given[0](self._target, *given[1:])
            result = getattr(self._target, name)(*given, **named)
            return await result if asyncio.iscoroutine(result) else result

        return Reference(asyncio.run_coroutine_threadsafe(call(), self._loop))

    def end(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


class Reference:
    def __init__(self, future: Future):
        self.future = future

    def __await__(self):
        return asyncio.wrap_future(self.future).__await__()


def get(references, **limits):
    """``ray.get``."""
    if isinstance(references, Reference):
        return references.future.result(30)
    return [one.future.result(30) for one in references]


class EngineProcess:
    """vLLM's engine core and executor, whose rules for sleeping are vLLM's own; its memory is a set of parts."""

    sleep, wake_up, resume_scheduler = EngineCore.sleep, EngineCore.wake_up, EngineCore.resume_scheduler

    def __init__(self, device, policy, rank):
        self.device, self.policy, self.card = device, policy, device.cards[policy][rank]
        self.name = f"{policy}{rank} server"
        self.parts, self.weights = {"weights", "kv_cache"}, None
        self.scheduler = SimpleNamespace(set_pause_state=lambda state: None)
        self.model_executor = SimpleNamespace(is_sleeping=False, sleeping_tags=set(), collective_rpc=self.call)
        for name_of_call in ("sleep", "wake_up"):
            setattr(self.model_executor, name_of_call, getattr(Executor, name_of_call).__get__(self.model_executor))
        if others := self.card.awake():
            raise DeviceError(f"{self.name} starts and measures the free memory beside {others}")
        self.card.engines[policy] = self
        device.log.append(f"{self.name} starts")

    def pause_scheduler(self, mode, clear_cache):
        return None

    def call(self, method, kwargs):
        getattr(self, f"do_{method}")(**kwargs)

    def do_sleep(self, level):
        self.parts.clear()
        self.weights = self.weights if level == 1 else None  # level 1 keeps them in the host's memory
        self.device.log.append(f"{self.name} sleeps at level {level}")

    def do_wake_up(self, tags):
        for tag in tags:
            if self.card.cached:
                raise DeviceError(f"{self.name} wakes {tag} while torch keeps memory of {self.card.cached}")
            if tag == "kv_cache" and "weights" not in self.parts:
                raise DeviceError(f"{self.name} wakes its KV cache before its weights")
            self.device.check_offloaded(self.card, but=self.policy if tag == "weights" else "")
            self.parts.add(tag)
            self.device.log.append(f"{self.name} wakes {tag}")


class Engine:
    """vLLM's asynchronous client of the engine process."""

    def __init__(self, device, policy, rank):
        self.core, self.device = EngineProcess(device, policy, rank), device
        self.output_processor = SimpleNamespace(request_states={})
        self.loras = []

    async def sleep(self, level):
        if self.output_processor.request_states:
            raise DeviceError(f"{self.core.name} sleeps while it works on {list(self.output_processor.request_states)}")
        self.core.sleep(level)

    async def wake_up(self, tags):
        self.core.wake_up(tags)

    async def nothing(self, *given, **named):
        """What changes no memory."""

    reset_prefix_cache = reset_encoder_cache = reset_mm_cache = wait_for_requests_to_drain = nothing

    async def list_loras(self):
        return self.loras

    async def abort(self, request_ids, internal):
        for one in request_ids:
            self.output_processor.request_states.pop(one).set()

    async def pause_generation(self, *, wait_for_inflight_requests, clear_cache):
        await self.abort(list(self.output_processor.request_states), internal=True)

    async def collective_rpc(self, method, timeout, args, kwargs):
        assert method == "update_weights_from_ipc"
        if "weights" not in self.core.parts:
            raise DeviceError(f"{self.core.name} gets weights before it has room for them")
        kind = "all" if kwargs["peft_config"] is None else "adapter" if kwargs["base_sync_done"] else "base"
        self.core.weights = kind
        self.device.log.append(f"{self.core.name} gets weights: {kind}")

    async def generate(self, *, prompt, sampling_params, request_id, lora_request, priority):
        if self.core.parts != {"weights", "kv_cache"} or self.core.weights is None:
            raise DeviceError(f"{self.core.name} is asked while it has {self.core.parts}, {self.core.weights} weights")
        if self.device.is_held:  # until it is aborted
            ended = self.output_processor.request_states[request_id] = asyncio.Event()
            self.device.held.release()
            await ended.wait()  # in vLLM's queue, without a first token
            yield SimpleNamespace(outputs=[])
            return
        token = SimpleNamespace(token_ids=[1], logprobs=[{1: SimpleNamespace(logprob=0.0)}], finish_reason="stop")
        yield SimpleNamespace(outputs=[token], prompt_logprobs=None)


class Worker:
    """verl's worker of one rank with verl's FSDP engine; a pass over rows is a note of what it needs."""

    update_weights = ActorRolloutRefWorker.update_weights

    def __init__(self, device, policy, rank, config, barrier):
        self.device, self.policy, self.rank, self.barrier = device, policy, rank, barrier
        self.card, self.name = device.cards[policy][rank], f"{policy}{rank}"
        self.config, sharding = config, config.actor.fsdp_config
        self.layered_summon = self.peft_merge = self.base_sync_done = False
        engine = self.engine = FSDPEngine.__new__(FSDPEngine)
        engine.module, engine.optimizer, engine.mode = torch.nn.Linear(1, 1), object(), None
        if config.model.lora_rank:
            engine.module.peft_config = {"default": SimpleNamespace(to_dict=dict)}
        engine.engine_config = SimpleNamespace(forward_only=False, fsdp_size=1)
        engine.model_config = SimpleNamespace(lora={}, hf_config=SimpleNamespace(model_type="qwen2"))
        engine._is_offload_param, engine._is_offload_optimizer = sharding.param_offload, sharding.optimizer_offload
        engine._uses_fsdp2_cpu_offload_policy = engine._qat_enabled = False
        engine.ulysses_parallel_group, engine.optimizer_zero_grad = None, lambda: None
        engine.checkpoint_manager = SimpleNamespace(
            save_checkpoint=lambda **named: self.note("saves"), load_checkpoint=lambda **named: self.note("loads")
        )
        self.actor = SimpleNamespace(engine=engine)

    def init_model(self):
        sharding = self.config.actor.fsdp_config
        model, optimizer = sharding.param_offload, sharding.optimizer_offload
        self.engine.to(device="cuda")
        self.engine.to(device="cpu", model=model, optimizer=optimizer, grad=model)
        self.card.cached.discard(self.policy)  # verl empties it when the worker has started

    def note(self, what):
        self.device.log.append(f"{self.name} {what}")

    def compute(self, what):
        """A pass on the card, after which torch keeps memory that it no longer uses."""
        if awake := self.card.awake():
            raise DeviceError(f"{self.name} {what} beside {awake}")
        if others := self.card.cached - {self.policy}:
            raise DeviceError(f"{self.name} {what} while torch keeps memory of {others}")
        self.device.check_offloaded(self.card, but=self.policy)
        needed = {"model", "optimizer"} if what == "trains" else {"model"}
        if not needed <= self.card.workers[self.policy]:
            raise DeviceError(f"{self.name} {what} without {needed - self.card.workers[self.policy]}")
        self.card.cached.add(self.policy)
        self.note(what)

    def infer(self):
        with self.engine.eval_mode():
            self.compute("infers")

    def train(self):
        with self.engine.train_mode():
            self.compute("trains")

    def infer_reference(self):
        self.note("infers the reference")  # verl keeps its weights in the host's memory

    def save_checkpoint(self, *given, **named):
        FSDPEngine.save_checkpoint(self.engine, *given, **named)

    def load_checkpoint(self, *, local_path, del_local_after_load):
        FSDPEngine.load_checkpoint(self.engine, local_path)


class WorkerGroup:
    """``RayWorkerGroup`` of one policy; each call goes to all ranks."""

    def __init__(self, device, policy, config):
        ranks = len(device.cards[policy])
        barrier = threading.Barrier(ranks)
        self.targets = [Worker(device, policy, rank, config, barrier) for rank in range(ranks)]
        self.workers = [device.actor(target) for target in self.targets]
        self.world_size, self._dispatch_info = ranks, {"actor": list(range(ranks))}

    def _of_all(self, name, *given, **named):
        return [getattr(worker, name).remote(*given, **named) for worker in self.workers]

    def update_weights(self, **named):
        return self._of_all("update_weights", **named)

    def __getattr__(self, name):
        return lambda *given, **named: get(self._of_all(name, *given, **named))


class Device:
    """All cards of a machine, for both policies together or for each its own.

    Args:
        config: of a run; sizes, layout, offloading and LoRA are taken from it.
    """

    def __init__(self, config):
        self.config, self.log = config, []
        self.is_offloaded = {}
        for name in config.policy_names:
            sharding = config.policy(name).actor.fsdp_config
            self.is_offloaded[name] = {"model": sharding.param_offload, "optimizer": sharding.optimizer_offload}
        self.is_held, self.held = False, threading.Semaphore(0)
        self.actors, self.roles = [], {}
        shared = [Card() for _ in range(config.num_devices(config.policy_names[0]))]
        own = config.layout == "separate"
        self.cards = {
            name: [Card() for _ in range(config.num_devices(name))] if own else shared for name in config.policy_names
        }

    def actor(self, target):
        self.actors.append(Actor(target))
        return self.actors[-1]

    def end(self):
        for one in self.actors:
            one.end()

    def check_offloaded(self, card, *, but):
        """Weights and optimizers of all other policies are in the host's memory, where that is asked for."""
        for name, parts in card.workers.items():
            if name != but and any(self.is_offloaded[name][part] for part in parts):
                raise DeviceError(f"a card is used while the {name} policy has {parts} there")

    def servers(self, config, worker_group, **named):
        """``LLMServerManager.create``: a replica with one server for each rank, whose engines are awake."""
        rollout, replicas = config.actor_rollout_ref.rollout, []
        policy = rollout.name.removeprefix("vllm_")
        for rank, worker in enumerate(worker_group.targets):
            replica = PolicyReplica(rank, rollout, config.actor_rollout_ref.model, gpus_per_node=1)
            server = self._server(replica.config, config, Engine(self, policy, rank))
            replica.servers = [self.actor(server)]
            adapter = PolicyServerAdapter.__new__(PolicyServerAdapter)
            adapter.config, adapter.server_handle, adapter.sleep_level = replica.config, replica.servers[0], 2
            adapter._has_server, adapter.zmq_handle, adapter.use_shm = True, "", False
            adapter.replica_rank, adapter.rollout_rank = rank, 0
            worker.rollout = adapter
            replicas.append(replica)
        handles = [replica.servers[0] for replica in replicas]
        return SimpleNamespace(
            get_replicas=lambda: replicas,
            get_addresses=lambda: [f"{policy}:{rank}" for rank in range(len(replicas))],
            server_handles=handles,
            global_load_balancer=None,
        )

    def _server(self, rollout, config, engine):
        """verl's server as it is once its engine has started."""
        server = PolicyHttpServer.__new__(PolicyHttpServer)
        rank = config.actor_rollout_ref.model.lora_rank
        server.model_config = SimpleNamespace(lora_rank=rank, lora={}, processor=None)
        server.config, server.engine, server.rollout_mode, server.node_rank = rollout, engine, RolloutMode.HYBRID, 0
        server.config.max_model_len = server.config.max_model_len or 64
        server._disaggregation_role, server.replica_rank, server.global_steps = "null", 0, None
        server._submission_paused = server._rejecting = False
        server._admitting, server._resume_event = 0, asyncio.Event()
        return server


def install(device, monkeypatch):
    """Put the cards in the place of CUDA in verl, vLLM and the recipe."""
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
    from verl.workers import engine_workers
    from verl.workers.engine import base as engine_base
    from verl.workers.engine.fsdp import transformer_impl
    from verl.workers.rollout.vllm_rollout import vllm_rollout

    from code_a1_recipe.training import policy as policy_module

    def put(part):
        def load(*given):
            worker = PROCESS.get()
            worker.card.workers[worker.policy].add(part)

        return load

    def take(part):
        def offload(*given):
            worker = PROCESS.get()
            worker.card.workers[worker.policy].discard(part)
            # verl empties torch's cache behind the model, and not behind the optimizer.
            getattr(worker.card.cached, {"model": "discard", "optimizer": "add"}[part])(worker.policy)

        return offload

    def empty_cache():
        process = PROCESS.get()
        process.card.cached.discard(process.policy)

    def nothing(*given, **named):
        return None

    class Sender:
        def __init__(self, **named):
            pass

        async def async_send_weights(self, weights):
            assert [tensor for _, tensor in weights]

    for name, part in (("model", "model"), ("optimizer", "optimizer")):
        device_of_load = "model_to_gpu" if name == "model" else name
        device_of_offload = "model_to_cpu" if name == "model" else name
        monkeypatch.setattr(transformer_impl, f"load_fsdp_{device_of_load}", put(part))
        monkeypatch.setattr(transformer_impl, f"offload_fsdp_{device_of_offload}", take(part))
    for module in (transformer_impl, engine_base):
        monkeypatch.setattr(module, "get_device_name", lambda: "cuda")
    monkeypatch.setattr(transformer_impl, "get_device_id", lambda: "cpu")
    monkeypatch.setattr(transformer_impl, "fsdp_version", lambda module: 2)
    monkeypatch.setattr(transformer_impl, "collect_lora_params", lambda **named: {"lora": torch.zeros(1)})
    monkeypatch.setattr(transformer_impl, "replace_lora_wrapper", lambda name, config: name)
    memory = SimpleNamespace(empty_cache=empty_cache, synchronize=nothing)
    monkeypatch.setattr(engine_workers, "get_torch_device", lambda: memory)
    monkeypatch.setattr(engine_workers, "set_expandable_segments", nothing)
    for module in (engine_workers, transformer_impl):
        monkeypatch.setattr(module, "log_gpu_memory_usage", nothing)
    monkeypatch.setattr(torch.cuda, "empty_cache", empty_cache)
    monkeypatch.setattr(torch.distributed, "barrier", lambda: PROCESS.get().barrier.wait(10))
    monkeypatch.setattr(vllm_rollout, "BucketedWeightSender", Sender)
    monkeypatch.setattr("ray.get", get)

    def worker_group(*, ray_cls_with_init, **named):
        config = ray_cls_with_init["config"]
        policy = config.rollout.name.removeprefix("vllm_")
        device.roles[policy] = ray_cls_with_init["role"]
        return SimpleNamespace(
            spawn=lambda prefix_set: {role: WorkerGroup(device, policy, config) for role in prefix_set}
        )

    monkeypatch.setattr(
        policy_module, "create_colocated_worker_cls", lambda classes: next(iter(classes.values())).kwargs
    )
    monkeypatch.setattr(policy_module, "RayWorkerGroup", worker_group)
    monkeypatch.setattr(policy_module.LLMServerManager, "create", device.servers)
    monkeypatch.setattr(
        policy_module.Policy, "_init_model_config", lambda policy: setattr(policy, "tokenizer_path", "")
    )
    monkeypatch.setattr(
        policy_module, "clear_rows", lambda *, keys, partition_id: device.log.append(f"{partition_id} rows removed")
    )

    # verl's phases, each with the calls of its workers and without the rows.
    def phase(name):
        def run(policy, batch, metrics):
            if name:
                in_actor = name == "infer_reference" and policy.ref_in_actor  # the base, without its adapter
                getattr(policy.actor_rollout_wg, "infer" if in_actor else name)()
            return batch

        return run

    phases = {"old_log_prob": "infer", "ref_log_prob": "infer_reference", "advantage": ""}
    for name, call in phases.items():
        monkeypatch.setattr(PPOTrainer, f"_compute_{name}", phase(call))
    monkeypatch.setattr(PPOTrainer, "_balance_batch", phase(""))
    monkeypatch.setattr(PPOTrainer, "_update_actor", phase("train"))
    monkeypatch.setattr(policy_module.Policy, "_compute_metrics", nothing)
