"""What each process of a run takes, and when: a configuration's numbers put into the formulas of ``memory``."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...config.run_config import COLOCATED, RunConfig
from ...verl_plugin.compat import CPUS_PER_DEVICE, CPUS_PER_QUEUE_ACTOR
from ...verl_plugin.cpu.environment import KV_CACHE_GIB, logits_chunk
from ..runners import RUNNERS
from . import memory
from .memory import ADAM, GIB, GRADIENT, MIB, WEIGHT, ModelSize, width

CPUS_PER_EPISODE_WORKER = 1


class State(StrEnum):
    """Of a policy: its servers answer; they get new weights; it trains; its servers sleep while the other trains."""

    SERVING, SYNCING, UPDATING, ASLEEP = "serving", "syncing", "updating", "asleep"


class Place(StrEnum):
    """What is counted; a card of a policy has its name behind it where the policies do not share it."""

    MEMORY, SHARED, DISK, CARD = "memory", "/dev/shm", "disk", "GPU memory"
    CPUS, GPUS = "logical CPUs", "GPUs"


ALWAYS = tuple(State)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One part of what one kind of process takes of one place."""

    process: str
    part: str
    place: str
    amount: int
    """Of one process; bytes, or a number of CPUs or GPUs."""
    count: int
    """Processes of this kind on a node, or on a GPU."""
    policy: str = ""
    states: tuple[str, ...] = ALWAYS
    """Of its policy, in which it is taken."""


def needs_of(config: RunConfig, sizes: Mapping[str, ModelSize], *, gpu_memory: int) -> list[Need]:
    """Everything that a run takes of a node, and of its folder's disk.

    Args:
        sizes: of each policy's model.
        gpu_memory: bytes of a GPU, of which a server takes a share; unused on a CPU.
    """
    found = [*_shared_processes(config), *_logical_devices(config)]
    for name, size in sizes.items():
        policy = _PolicyNeeds(config, name, size)
        found += [*policy.worker(), *policy.server(gpu_memory), *policy.checkpoints()]
    return [one for one in found if one.amount]


def kv_cache(config: RunConfig, name: str, size: ModelSize, *, gpu_memory: int) -> tuple[int, int]:
    """Bytes of a server's KV cache on one device, and of the longest sequence, which must fit into it."""
    rollout = config.policy(name).rollout
    parallel, number = rollout.tensor_model_parallel_size, width(rollout.dtype)
    longest = (rollout.max_model_len or size.positions) * size.kv_bytes(number) // parallel
    if config.trainer.device == "cpu":
        return KV_CACHE_GIB * GIB, longest
    weights = number * size.parameters // parallel
    return max(0, int(rollout.gpu_memory_utilization * gpu_memory) - weights - memory.ENGINE_WORKSPACE), longest


def _shared_processes(config: RunConfig) -> Iterator[Need]:
    sandbox = config.sandbox
    counts = {
        "driver": 1,
        "Ray": 1,
        "queue controller": 1,
        "queue storage": config.transfer_queue.num_storage_units,
        "load balancer": len(config.policy_names),
        "episode worker": config.episode.num_workers,
        "judge": sandbox.num_workers,
        "program": sandbox.num_workers * sandbox.programs_per_worker if sandbox.runner != "fusion" else 0,
    }
    for process, count in counts.items():
        amount = memory.PROCESSES[process]
        yield Need(process=process, part="base", place=Place.MEMORY, amount=amount, count=count)
    # Where no size is set, Ray's store takes what there is.
    store = int(config.ray_kwargs.ray_init.get("object_store_memory") or 0)
    yield Need(process="Ray", part="object store", place=Place.SHARED, amount=store, count=1)


def _logical_devices(config: RunConfig) -> Iterator[Need]:
    """What Ray must count: it starts an actor or a group where so many are free, and waits for them for ever."""
    sandbox, runner, pools = config.sandbox, RUNNERS[config.sandbox.runner], config.pool_spec()
    judge = runner.cpus_per_judge(sandbox) + runner.cpus_of_programs(sandbox, max(map(len, pools.values())))
    for process, amount, count in (
        ("pool of devices", CPUS_PER_DEVICE, sum(sum(gpus) for gpus in pools.values())),
        ("queue controller", CPUS_PER_QUEUE_ACTOR, 1),
        ("queue storage", CPUS_PER_QUEUE_ACTOR, config.transfer_queue.num_storage_units),
        ("judge", judge, sandbox.num_workers),
        ("episode worker", CPUS_PER_EPISODE_WORKER, config.episode.num_workers),
    ):
        yield Need(process=process, part="share", place=Place.CPUS, amount=amount, count=count)
    if config.trainer.device == "cuda":
        gpus = sum(max(gpus) for gpus in pools.values())
        yield Need(process="pool of devices", part="share", place=Place.GPUS, amount=1, count=gpus)


class _PolicyNeeds:
    """What the processes of one policy take."""

    def __init__(self, config: RunConfig, name: str, size: ModelSize) -> None:
        self.config, self.name, self.size = config, name, size
        self.model, self.actor = config.policy(name).model, config.policy(name).actor
        self.rollout, self.reference = config.policy(name).rollout, config.policy(name).ref
        self.on_gpu = config.trainer.device == "cuda"
        self.card = Place.CARD if config.layout == COLOCATED else f"{Place.CARD} of the {name} policy"
        pools = config.pool_spec()
        self.per_node = max(pools.get(name) or pools[COLOCATED])
        self.adapter = size.adapter(self.model.rank_of_lora)
        self.trained = self.adapter or size.parameters
        self.fixed = memory.GPU_PROCESSES if self.on_gpu else memory.PROCESSES

    def _need(self, process: str, part: str, amount: int, place: str, *states: str, count: int = 1) -> Need:
        many = self.per_node if place in (Place.MEMORY, Place.SHARED) else count
        process, held = f"{self.name} {process}", states or ALWAYS
        return Need(process=process, part=part, place=place, amount=amount, count=many, policy=self.name, states=held)

    def tokens_of_a_pass(self) -> int:
        """Most tokens of one forward and backward pass: the budget, or all that a mini-batch has for a device.

        On a CPU with packed rows a whole group, whose prompt is there once, where that is more than the budget.
        """
        actor, rollout = self.actor, self.rollout
        longest = rollout.prompt_length + rollout.response_length
        if not actor.use_dynamic_bsz:
            return (actor.ppo_micro_batch_size_per_gpu or 1) * longest
        rows = max(1, actor.ppo_mini_batch_size * rollout.n // self.config.num_devices(self.name))
        tokens = min(actor.ppo_max_token_len_per_gpu or longest, rows * longest)
        shares_prompts = self.model.use_fused_kernels and not self.on_gpu
        return max(tokens, rollout.prompt_length + rollout.n * rollout.response_length) if shares_prompts else tokens

    def tokens_of_logits(self) -> int | None:
        """Tokens whose logits exist at once; None: those of a whole pass."""
        if not self.model.use_fused_kernels:
            return None
        return memory.FUSED_CHUNK if self.on_gpu else logits_chunk(self.size.vocabulary)

    def worker(self) -> Iterator[Need]:
        """One training process: its share of weights, optimizer and gradients, and what a pass takes."""
        size, sharding, ranks = self.size, self.actor.fsdp_config, self.config.num_devices(self.name)
        number = width((sharding.mixed_precision or {}).get("param_dtype", "bf16"))
        in_memory = not self.on_gpu or sharding.offload_policy
        yield self._need("worker", "base", self.fixed["worker"], Place.MEMORY)
        for part, amount, is_offloaded, states in (
            (
                "weights",
                WEIGHT * (size.parameters + self.adapter) // ranks,
                sharding.param_offload,
                (State.UPDATING, State.SYNCING),
            ),
            ("optimizer", ADAM * self.trained // ranks, sharding.optimizer_offload, (State.UPDATING,)),
        ):
            if in_memory or is_offloaded:
                yield self._need("worker", part, amount, Place.MEMORY)
            if not in_memory:
                yield self._need("worker", part, amount, self.card, *(states if is_offloaded else ()))
        gradients = GRADIENT * self.trained // ranks
        yield self._need("worker", "gradients", gradients, Place.MEMORY if in_memory else self.card, State.UPDATING)
        if self.actor.use_kl_loss and not self.adapter:  # with LoRA the reference is the model without its adapter
            reference = width(self.reference.fsdp_config.model_dtype) * size.parameters // ranks
            yield self._need("worker", "reference", reference, Place.MEMORY)
        tokens, chunk = self.tokens_of_a_pass(), self.tokens_of_logits()
        home, checkpointing = self.card if self.on_gpu else Place.MEMORY, self.model.enable_gradient_checkpointing
        activations = memory.activation_bytes(size, tokens=tokens, width=number, checkpointing=checkpointing)
        yield self._need("worker", "activations", activations, home, State.UPDATING)
        logits = memory.logit_bytes(size, tokens=tokens, width=number, chunk=chunk)
        yield self._need("worker", "logits", logits, home, State.UPDATING)
        bucket = int(self.rollout.checkpoint_engine["update_weights_bucket_megabytes"]) * MIB
        if not self.on_gpu:  # a shared segment, which is memory too
            yield self._need("worker", "sync bucket", bucket, Place.MEMORY, State.SYNCING)
            yield self._need("worker", "sync bucket", bucket, Place.SHARED, State.SYNCING)
            return
        yield self._need("worker", "base", memory.CUDA_CONTEXT, self.card)
        yield self._need("worker", "base", memory.gathered_bytes(size, number), self.card, State.UPDATING)
        yield self._need("worker", "sync bucket", bucket + WEIGHT * size.largest_weight, self.card, State.SYNCING)

    def server(self, gpu_memory: int) -> Iterator[Need]:
        """A vLLM server with its engine; on GPUs the part of it that each has."""
        size, rollout = self.size, self.rollout
        weights = width(rollout.dtype) * size.parameters // rollout.tensor_model_parallel_size
        cache, _ = kv_cache(self.config, self.name, size, gpu_memory=gpu_memory)
        yield self._need("server", "base", self.fixed["server"], Place.MEMORY)
        if not self.on_gpu:
            tokens, sequences = rollout.max_num_batched_tokens, rollout.max_num_seqs
            workspace = memory.engine_workspace(size, tokens=tokens, sequences=sequences, width=width(rollout.dtype))
            for part, amount in (("weights", weights), ("KV cache", cache), ("activations", workspace)):
                yield self._need("server", part, amount, Place.MEMORY)
            return
        sleeps = rollout.free_cache_engine
        awake = (State.SERVING,) if sleeps else ALWAYS
        yield self._need("server", "base", memory.CUDA_CONTEXT, self.card)
        yield self._need("server", "weights", weights, self.card, *awake, *([State.SYNCING] if sleeps else []))
        yield self._need("server", "KV cache", cache, self.card, *awake)
        yield self._need("server", "activations", memory.ENGINE_WORKSPACE, self.card, *awake)
        if sleeps:
            yield self._need("server", "base", memory.ASLEEP, self.card, State.SYNCING, State.UPDATING, State.ASLEEP)

    def checkpoints(self) -> Iterator[Need]:
        """Weights and optimizer of those that are kept, of the best, and of one that is being written."""
        trainer, kept = self.config.trainer, self.config.trainer.max_actor_ckpt_to_keep
        if kept is None:
            kept = (trainer.total_training_steps or 1) // max(1, trainer.save_freq)
        if trainer.save_freq <= 0:  # a run that is interrupted saves all the same
            kept = 0
        count = kept + 1 + (self.config.checkpoint.keep_best is not None)
        weights = WEIGHT * (self.size.parameters + self.adapter)
        yield self._need("checkpoint", "weights", weights, Place.DISK, count=count)
        yield self._need("checkpoint", "optimizer", ADAM * self.trained, Place.DISK, count=count)
