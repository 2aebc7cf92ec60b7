"""The minimum of memory, disk and devices that each process of a run takes, and when the process takes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...algorithm.settings import FUSION
from ...config.run_config import COLOCATED, RunConfig
from ...verl_plugin.compat import CPUS_PER_DEVICE, CPUS_PER_QUEUE_ACTOR
from ...verl_plugin.cpu.environment import KV_CACHE_GIB, logits_chunk
from ..runners import cpus_per_judge
from .memory import (
    ADAM,
    GIB,
    GRADIENT,
    MIB,
    PROCESSES,
    WEIGHT,
    ModelSize,
    activation_bytes,
    logit_bytes,
    width,
)

CPUS_PER_EPISODE_WORKER = 1
ALWAYS, EPISODES, UPDATES = "always", "episodes", "updates"


class Place(StrEnum):
    """Kinds of room. If each policy has its own cards, the name of a place is ``CARD`` and the policy's name."""

    MEMORY = "memory"
    SHARED = "/dev/shm"
    DISK = "disk"
    CARD = "GPU memory"
    CPUS = "logical CPUs"
    GPUS = "GPUs"


@dataclass(frozen=True)
class Need:
    """Room in one place that each process of a kind takes for one purpose, which ``part`` names."""

    process: str
    part: str
    place: str
    amount: int
    """Room for one process: bytes, or a number of CPUs or GPUs."""
    count: int
    """Number of processes of this kind on a node, or on a GPU."""
    when: str = ALWAYS
    """When the room is taken: ``ALWAYS``, ``EPISODES``, ``UPDATES`` (updates of any policy), or a policy's name (its
    updates)."""

    def is_taken(self, updating: tuple[str, ...]) -> bool:
        """Whether the room is taken while the policies ``updating`` train. If ``updating`` is empty, episodes run."""
        moments = (*updating, UPDATES) if updating else (EPISODES,)
        return self.when in (ALWAYS, *moments)


def needs_of(config: RunConfig, sizes: Mapping[str, ModelSize], *, gpu_memory: int) -> list[Need]:
    """List all room that a run takes on one node, and on the disk of the run folder.

    Args:
        config: the run's.
        sizes: the size of each policy's model.
        gpu_memory: bytes of a GPU, of which a server takes a share; unused on a CPU.
    """
    needs = list(_shared_processes(config))
    for name, size in sizes.items():
        policy = _PolicyNeeds(config, name, size)
        needs += [*policy.worker(), *policy.one_pass(), *policy.server(gpu_memory), policy.checkpoints()]
    return [need for need in needs if need.amount * need.count]


def _shared_processes(config: RunConfig) -> Iterator[Need]:
    """Yield the needs of processes that belong to no policy, and the CPUs and GPUs that Ray counts.

    Ray counts CPUs and GPUs, and starts an actor only when enough are free. Otherwise Ray waits for ever.
    """
    sandbox = config.sandbox
    pools = config.pool_spec().values()
    programs = 0 if sandbox.runner == FUSION else sandbox.num_workers * sandbox.programs_per_worker
    balancers = 0
    for name in config.policy_names:
        # A policy with one server has no load balancer.
        balancers += config.num_devices(name) > config.policy(name).rollout.tensor_model_parallel_size
    processes = {
        "driver": (1, 0),
        "Ray": (1, 0),
        "queue controller": (1, CPUS_PER_QUEUE_ACTOR),
        "queue storage": (config.transfer_queue.num_storage_units, CPUS_PER_QUEUE_ACTOR),
        "load balancer": (balancers, 0),
        "episode worker": (config.episode.num_workers, CPUS_PER_EPISODE_WORKER),
        "judge": (sandbox.num_workers, cpus_per_judge(sandbox)),
        "program": (programs, 0),
    }
    for process, (count, cpus) in processes.items():
        yield Need(process, "base", Place.MEMORY, PROCESSES[process], count)
        yield Need(process, "CPUs", Place.CPUS, cpus, count)
    yield Need("pool of devices", "CPUs", Place.CPUS, CPUS_PER_DEVICE, sum(map(sum, pools)))
    if config.trainer.device == "cuda":
        yield Need("pool of devices", "GPUs", Place.GPUS, 1, sum(map(max, pools)))
    # If the configuration sets no size, Ray fits its object store to the machine, so the store counts as 0.
    store = int(config.ray_kwargs.ray_init.get("object_store_memory") or 0)
    yield Need("Ray", "object store", Place.SHARED, store, 1)
    if config.trainer.device == "cpu":
        # New weights reach the servers through a segment of shared memory. The policies send their weights in turn.
        engines = [config.policy(name).rollout.checkpoint_engine for name in config.policy_names]
        bucket = max(int(engine["update_weights_bucket_megabytes"]) for engine in engines)
        yield Need("worker", "sync bucket", Place.SHARED, bucket * MIB, 1)


class _PolicyNeeds:
    """Needs of the processes of one policy."""

    def __init__(self, config: RunConfig, name: str, size: ModelSize) -> None:
        self.config = config
        self.name = name
        self.size = size
        self.policy = config.policy(name)
        self.on_gpu = config.trainer.device == "cuda"
        self.card = Place.CARD if config.layout == COLOCATED else f"{Place.CARD} of the {name} policy"
        pools = config.pool_spec()
        self.per_node = max(pools.get(name) or pools[COLOCATED])
        # The LoRA adapter itself is not counted. The adapter is small compared with the model, and the plan is a lower
        # bound.
        self.has_adapter = self.policy.model.lora_rank > 0

    def _need(self, process: str, part: str, amount: int, *, on_card: bool, when: str = ALWAYS) -> Need:
        place, count = (self.card, 1) if on_card else (Place.MEMORY, self.per_node)
        return Need(f"{self.name} {process}", part, place, amount, count, when)

    def worker(self) -> Iterator[Need]:
        """Yield the needs of a training process: imports, and its share of weights, optimizer, gradients, reference."""
        policy = self.policy
        sharding = policy.actor.fsdp_config
        on_card = self.on_gpu and not sharding.offload_policy
        weights = self.size.parameters // self.config.num_devices(self.name)
        trained = 0 if self.has_adapter else weights
        yield self._need("worker", "base", PROCESSES["worker"], on_card=False)
        for part, amount, is_offloaded in (
            ("weights", WEIGHT * weights, sharding.param_offload),
            ("optimizer", ADAM * trained, sharding.optimizer_offload),
        ):
            if is_offloaded or not on_card:
                yield self._need("worker", part, amount, on_card=False)
            if on_card:
                when = self.name if is_offloaded else ALWAYS
                yield self._need("worker", part, amount, on_card=True, when=when)
        yield self._need(
            "worker",
            "gradients",
            GRADIENT * trained,
            on_card=on_card,
            when=self.name,
        )
        # With LoRA the reference is the trained model without the adapter, so it takes no further room.
        if policy.actor.use_kl_loss and not self.has_adapter:
            reference = width(policy.ref.fsdp_config.model_dtype) * weights
            yield self._need("worker", "reference", reference, on_card=False)

    def one_pass(self) -> Iterator[Need]:
        """Yield the needs of one forward and backward pass of the training process."""
        actor, model, rollout = self.policy.actor, self.policy.model, self.policy.rollout
        longest = rollout.prompt_length + rollout.response_length
        if actor.use_dynamic_bsz:  # a pass fills the token budget, or is a device's whole part of a mini-batch
            rows = max(1, actor.ppo_mini_batch_size * rollout.n // self.config.num_devices(self.name))
            tokens = min(actor.ppo_max_token_len_per_gpu or longest, rows * longest)
        else:
            tokens = longest * (actor.ppo_micro_batch_size_per_gpu or 1)
        precision = actor.fsdp_config.mixed_precision or {}
        bytes_each = width(precision.get("param_dtype", "bf16"))
        activations = activation_bytes(
            self.size,
            tokens=tokens,
            width=bytes_each,
            checkpointing=model.enable_gradient_checkpointing,
        )
        chunk = None
        if model.use_fused_kernels:
            chunk = logits_chunk(self.size.vocabulary, on_card=self.on_gpu)
        logits = logit_bytes(self.size, tokens=tokens, width=bytes_each, chunk=chunk)
        yield self._need("worker", "activations", activations, on_card=self.on_gpu, when=self.name)
        yield self._need("worker", "logits", logits, on_card=self.on_gpu, when=self.name)

    def server(self, gpu_memory: int) -> Iterator[Need]:
        """Yield the needs of a vLLM server with its engine, which takes a fixed share of a GPU."""
        rollout = self.policy.rollout
        weights = width(rollout.dtype) * self.size.parameters
        sleeps = self.on_gpu and rollout.free_cache_engine
        amount = weights + KV_CACHE_GIB * GIB
        if self.on_gpu:
            amount = int(rollout.gpu_memory_utilization * gpu_memory)
        yield self._need("server", "base", PROCESSES["server"], on_card=False)
        yield self._need(
            "server",
            "weights and KV cache",
            amount,
            on_card=self.on_gpu,
            when=EPISODES if sleeps else ALWAYS,
        )
        if sleeps and self.has_adapter:
            # A sync sends only the adapter, so a sleeping engine keeps the model's weights in memory (sleep level 1).
            asleep = weights // rollout.tensor_model_parallel_size
            yield self._need("server", "weights asleep", asleep, on_card=False, when=UPDATES)

    def checkpoints(self) -> Need:
        """Return the disk room for the kept checkpoints, the best checkpoint, and the one that is being written."""
        trainer = self.config.trainer
        kept = trainer.max_actor_ckpt_to_keep
        if trainer.save_freq <= 0:  # such a run saves only once, when it is interrupted
            kept = 0
        elif kept is None:
            kept = (trainer.total_training_steps or 1) // trainer.save_freq
        count = kept + 1 + (self.config.checkpoint.keep_best is not None)
        bytes_each = WEIGHT if self.has_adapter else WEIGHT + ADAM
        amount = bytes_each * self.size.parameters
        return Need(f"{self.name} checkpoint", "weights and optimizer", Place.DISK, amount, count)
