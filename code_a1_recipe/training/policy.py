"""One policy: its worker group, vLLM servers, weight sync, tokenizer, and verl's update phases.

``Policy`` is itself a verl V1 trainer without a loop of its own. The update phases (log-probabilities, group-relative
advantage, actor update, metrics) are verl's methods, called here on this policy's rows; used twice, for "code" and
"test", they never see each other's configuration.
"""

import logging
import math
import random
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, Self

import ray
from omegaconf import OmegaConf
from ray.exceptions import RayError
from verl import DataProto
from verl.checkpoint_engine import CheckpointEngineManager
from verl.single_controller.ray import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    create_colocated_worker_cls,
)
from verl.trainer.ppo.utils import Role
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.trainer.ppo.v1.utils import MetricsAggregator
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.debug import marked_timer
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.utils.seqlen_balancing import log_seqlen_unbalance
from verl.workers.engine_workers import ActorRolloutRefWorker

from ..algorithm.sampling import SamplingParameters
from ..config.run_config import RunConfig
from ..errors import CodeA1Error, OutageError
from ..runs.metrics import check_served_weights
from ..verl_plugin.client import PolicyServerManager
from ..verl_plugin.compat import SYNC_MODE, rename_training_metrics
from ..verl_plugin.row_queue import KVBatchMeta, clear_rows, get_fields, put_rows
from .batch_parts import balanced_parts, deal, group_parts
from .episode_actors import PolicyEndpoint
from .lifecycle.time_limit import in_background, within
from .reporting import profiler_arguments
from .trajectories import StoredRows, is_lesson

logger = logging.getLogger(__name__)

_PER_TOKEN = "timing_per_token_ms/"
# Above the ports of Ray's workers, below those that Linux hands out by itself.
_FIRST_PORT, _LAST_PORT, _TRIED_PORTS = 20_000, 32_000, 200
_ABANDON_SECONDS = 20.0
_MOST_LEFT_OUT = 5
_QUEUED = 2
"""Responses asked for of a server at a time, as a multiple of those that it works on at once: an abort or a new weight
does not wait behind a thousand others."""


def _rendezvous_ports() -> list[int]:
    """A random range for torch.distributed's rendezvous.

    verl looks for a free port and lets go of it until the workers listen. One that the system had picked may by then
    belong to any outgoing connection, the first of a fixed range to another run that looked at the same time.
    """
    first = random.SystemRandom().randrange(_FIRST_PORT, _LAST_PORT - _TRIED_PORTS)
    return [first, first + _TRIED_PORTS]


def _groups(batch: KVBatchMeta) -> list[str]:
    return [key.partition("_")[0] for key in batch.keys]  # verl's keys begin with the uid


def _fillers(batch: KVBatchMeta) -> set[int]:
    """Places of the rows that verl has filled the step up with."""
    tagged = enumerate(zip(batch.keys, batch.tags, strict=True))
    return {place for place, (key, tag) in tagged if tag.get("is_padding") and not is_lesson(key)}


def _empty_cache(_: Any) -> None:
    import torch

    torch.cuda.empty_cache()


class Policy(PPOTrainerSync):
    """A policy inside :class:`~code_a1_recipe.training.trainer.CodeA1Trainer`.

    Args:
        name: "code" or "test"; also the TransferQueue partition and the prefix of its metrics.
        config: of the run; verl's part of it as this policy sees it becomes ``self.config``.
        pool: the GPUs this policy's workers and servers live on.
        total_updates: actor updates in the whole run, the horizon of the learning-rate schedule.
    """

    def __init__(self, name: str, config: RunConfig, *, pool: RayResourcePool, total_updates: int) -> None:
        for_verl = config.for_policy(name)
        for_verl.actor_rollout_ref.actor.optim.total_training_steps = total_updates
        turns = 1 + (config.episode.repair_turns if name == "code" else 0)
        # Room for all repair turns: repairs add no optimizer step, and where few programs failed a step may take fewer.
        for_verl.actor_rollout_ref.actor.ppo_mini_batch_size *= turns
        super().__init__(for_verl)
        self.settings = config
        self.name = name
        self.pool = pool
        self.global_steps = 0
        self._left_out = 0

    def _build_replay_buffer(self) -> None:
        """Episodes are awaited, not sampled from a buffer; verl's other branches follow its own sync trainer."""
        self.trainer_mode = SYNC_MODE

    @property
    def is_trained(self) -> bool:
        """``schedule`` has updates of this policy."""
        return bool(getattr(self.settings.schedule, f"{self.name}_every"))

    @classmethod
    def start(cls, name: str, config: RunConfig, *, pool: RayResourcePool, total_updates: int) -> Self:
        """Load the model into its workers and start its servers; they sleep until the first weight sync."""
        policy = cls(name, config, pool=pool, total_updates=total_updates)
        policy._init_model_config()
        policy._start_workers()
        # A server asks its workers where they are before it starts, and needs nothing else of them: a worker that is
        # there answers it, and loads its model beside it.
        servers = in_background(policy._start_servers, name=f"start-{name}-servers")
        ray.get([worker.__ray_call__.remote(lambda self: None) for worker in policy.actor_rollout_wg.workers])
        policy.actor_rollout_wg.init_model()
        servers.result()
        policy.sleep()
        logger.info("policy=%s model=%s servers=%s", name, config.policy(name).model.path, policy.addresses)
        return policy

    def _init_model_config(self) -> None:
        model = omega_conf_to_dataclass(self.config.actor_rollout_ref.model)
        self.tokenizer, self.processor = model.tokenizer, model.processor
        self.tokenizer_path = str(model.local_tokenizer_path)

    def _start_workers(self) -> None:
        model = self.config.actor_rollout_ref.model
        rank = self.settings.policy(self.name).model.rank_of_lora
        self.ref_in_actor = rank > 0 or model.get("lora_adapter_path") is not None
        separate_ref = self.use_reference_policy and not self.ref_in_actor and self.is_trained
        role = str(Role.ActorRolloutRef if separate_ref else Role.ActorRollout)
        worker_class = RayClassWithInitArgs(
            cls=ray.remote(ActorRolloutRefWorker),
            config=self.config.actor_rollout_ref,
            distillation_config=self.config.get("distillation"),
            role=role,
        )
        group = RayWorkerGroup(
            resource_pool=self.pool,
            ray_cls_with_init=create_colocated_worker_cls({role: worker_class}),
            device_name=self.settings.trainer.device,
            master_port_range=_rendezvous_ports(),
            **profiler_arguments(self.config),
        )
        self.actor_rollout_wg = group.spawn(prefix_set=[role])[role]
        self.ref_policy_wg = self.actor_rollout_wg

    def _start_servers(self) -> None:
        self.llm_server_manager = PolicyServerManager.create(
            config=self.config, worker_group=self.actor_rollout_wg, rollout_resource_pool=self.pool
        )
        engine_config = omega_conf_to_dataclass(self.config.actor_rollout_ref.rollout.checkpoint_engine)
        self.checkpoint_manager = CheckpointEngineManager(
            config=engine_config, actor_wg=self.actor_rollout_wg, replicas=self.llm_server_manager.get_replicas()
        )

    @property
    def addresses(self) -> list[str]:
        """OpenAI-compatible HTTP addresses of the servers."""
        return list(self.llm_server_manager.get_addresses())

    def processes(self) -> dict[str, Any]:
        """Handles of the workers and servers, by what a user would call them."""
        workers = {f"worker {rank}": worker for rank, worker in enumerate(self.actor_rollout_wg.workers)}
        servers = {f"server {rank}": one for rank, one in enumerate(self.llm_server_manager.server_handles)}
        return {f"{self.name} policy's {name}": handle for name, handle in (workers | servers).items()}

    def endpoint(self) -> PolicyEndpoint:
        """What an episode worker needs to sample from this policy."""
        rollout = self.config.actor_rollout_ref.rollout
        # The client reads the rollout block alone. Small constructor arguments travel inside Ray's actor specification,
        # without which a dead worker could not be started again.
        plain_rollout = OmegaConf.to_container(rollout, resolve=True)
        client_config = OmegaConf.create({"actor_rollout_ref": {"rollout": plain_rollout}})
        return PolicyEndpoint(
            client=self.llm_server_manager.client(client_config),
            tokenizer_path=self.tokenizer_path,
            model=self.settings.policy(self.name).model,
            chat_arguments=self.settings.data.apply_chat_template_kwargs,
            is_seeded=self.settings.deterministic or self.settings.trainer.device == "cpu",
            max_calls=max(1, _QUEUED * rollout.max_num_seqs * len(self.addresses) // self.settings.episode.num_workers),
            training=SamplingParameters.of_rollout(rollout),
            validation=SamplingParameters.of_rollout(rollout, validation=True),
        )

    def sleep(self) -> None:
        """Free the servers' memory for training; they keep no weights.

        Raises:
            OutageError: a server does not answer.
        """
        self._ask_servers(self.checkpoint_manager.sleep_replicas)

    def abandon(self) -> None:
        """End every response under way, whose askers are gone, and free the servers' memory for what is to be saved.

        A server that is gone too, or does not answer within ``_ABANDON_SECONDS``, is passed over: the weights are the
        workers'.
        """

        def give_up() -> None:
            self.checkpoint_manager.abort_replicas(reject_request=True)
            self.checkpoint_manager.sleep_replicas()

        try:
            self._ask_servers(give_up, seconds=_ABANDON_SECONDS)
        except (RayError, OutageError) as error:
            logger.warning("policy=%s: its servers do not answer: %s", self.name, error)

    def sync_weights(self, step: int) -> None:
        """Wake the servers with the trainer's current weights, labelled ``step``.

        Raises:
            OutageError: a server does not answer.
        """
        self._ask_servers(lambda: self.checkpoint_manager.update_weights(step))

    def _ask_servers(self, call: Callable[[], object], *, seconds: float | None = None) -> None:
        """Call verl's manager, which waits for its servers without a limit of its own.

        Args:
            seconds: the limit, ``episode.generation_timeout_seconds`` unless given.
        """
        limit = self.settings.episode.generation_timeout_seconds if seconds is None else seconds
        if not within(limit, call, name=f"servers-{self.name}"):
            hint = "it hangs, or the limit is too low" if seconds is None else "it hangs"
            key = "episode.generation_timeout_seconds=" if seconds is None else ""
            raise OutageError(f"a server of the {self.name} policy did not answer within {key}{limit:g} s: {hint}")

    def update(self, rows: StoredRows, *, step: int, epoch: int) -> dict[str, float]:
        """One verl GRPO update on the stored rows, which are removed from the queue.

        Phases and their order are verl's (``PPOTrainer._step_once``): balance, old log-probs, reference log-probs,
        advantage, actor update.

        Returns:
            verl's metrics of the update under verl's names, ``timing_s/...`` included.

        Raises:
            OutageError: the servers sampled from other weights than those that are trained.
        """
        self.global_steps = step
        metrics: dict[str, float] = {}
        timing: dict[str, float] = {}
        batch = KVBatchMeta(partition_id=self.name, keys=list(rows.keys), tags=[dict(tag) for tag in rows.tags])
        batch.extra_info["temperature"] = self.settings.policy(self.name).rollout.temperature
        with marked_timer("step", timing):
            batch = self._balance_batch(batch, metrics=metrics)
            with marked_timer("old_log_prob", timing):
                batch = self._compute_old_log_prob(batch, metrics=metrics)
            # Before anything is learned from what other weights wrote; the run then ends at its newest checkpoint.
            known = {f"{self.name}/{key}": value for key, value in rename_training_metrics(metrics).items()}
            check_served_weights(known, limit=self.settings.episode.max_probs_diff, step=step)
            if self.use_reference_policy:
                with marked_timer("ref", timing):
                    batch = self._compute_ref_log_prob(batch, metrics=metrics)
            with marked_timer("adv", timing):
                batch = self._compute_advantage(batch, metrics=metrics)
            with marked_timer("update_actor", timing):
                batch = self._update_actor(batch, metrics=metrics)
        self._check_gradient(metrics, step=step)
        # verl reads the rollout's share of the step from this timer; here episodes serve both policies.
        timing["gen"] = 0.0
        self._compute_metrics(batch, metrics, timing, global_steps=step, epoch=epoch)
        clear_rows(keys=batch.keys, partition_id=batch.partition_id)
        self._empty_caches()
        return rename_training_metrics(metrics)

    def _check_gradient(self, metrics: dict[str, float], *, step: int) -> None:
        """Count the updates in a row that verl left out because their gradient was no number."""
        is_number = math.isfinite(metrics.get("actor/grad_norm", 0.0))
        self._left_out = 0 if is_number else self._left_out + 1
        if self._left_out >= _MOST_LEFT_OUT:
            raise CodeA1Error(
                f"step {step}: the gradient of the {self.name} policy was no number {self._left_out} steps in a row "
                "and nothing was learned; resume from an earlier step with a lower learning rate"
            )
        metrics["actor/updates_left_out"] = float(self._left_out)

    def _empty_caches(self) -> None:
        """Hand back what torch keeps on the GPUs: the other policy uses them next, and vLLM does not see it."""
        if self.settings.trainer.device == "cuda":
            ray.get([worker.__ray_call__.remote(_empty_cache) for worker in self.actor_rollout_wg.workers])

    def _balance_batch(self, batch: KVBatchMeta, metrics: dict[str, Any], **options: Any) -> KVBatchMeta:
        batch = super()._balance_batch(batch, metrics, **options)
        blocks = self.config.actor_rollout_ref
        mini_batch = blocks.actor.ppo_mini_batch_size * blocks.rollout.n
        ranks, steps = self._ranks(), max(1, len(batch) // mini_batch)
        if ranks * steps > 1:
            tokens = [tag["seq_len"] for tag in batch.tags]
            dealt = deal(_groups(batch), tokens, fillers=_fillers(batch), ranks=ranks, steps=steps)
            metrics.update(log_seqlen_unbalance(tokens, dealt, prefix="global_seqlen"))
            batch.reorder(list(chain(*dealt)))
        return batch

    def _ranks(self) -> int:
        return 1 + max(self.actor_rollout_wg._dispatch_info["actor"])

    def _compute_old_log_prob(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        batch = self._in_parts(super()._compute_old_log_prob, batch, metrics)
        sampled = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding")]
        if not (lessons := [key for key in batch.keys if is_lesson(key)]):
            return batch
        # No server sampled a lesson: the trainer's probabilities stand for the server's, and both are compared on the
        # other rows alone.
        rows = get_fields(keys=lessons, partition_id=self.name, select_fields=["old_log_probs"])
        rows["rollout_log_probs"] = rows.pop("old_log_probs")
        put_rows(keys=lessons, partition_id=self.name, fields=rows)
        if sampled:
            fields = ["rollout_log_probs", "old_log_probs", "response_mask", "responses"]
            rows = get_fields(keys=sampled, partition_id=self.name, select_fields=fields)
            metrics.update(calculate_debug_metrics(DataProto(batch=rows.to_padded_tensor())))
        return batch

    def _compute_ref_log_prob(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        return self._in_parts(super()._compute_ref_log_prob, batch, metrics)

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        parts = group_parts(_groups(batch), fillers=_fillers(batch))
        return self._in_parts(super()._compute_advantage, batch, metrics, parts=parts)

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], timing_raw: dict[str, float], global_steps: int, epoch: int
    ) -> None:
        def compute(part: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
            metrics.update({key: value for key, value in known.items() if key == "actor/grad_norm"})
            if all(tag.get("is_padding") for tag in part.tags):  # lessons alone; verl's figures need one row
                for tag in part.tags:
                    tag.pop("is_padding")
            compute_all(part, metrics, timing_raw, global_steps=global_steps, epoch=epoch)
            return part

        known, compute_all = dict(metrics), super()._compute_metrics
        self._in_parts(compute, batch, metrics)
        # Seconds are of the whole phase, whatever the number of parts that verl divided them by tokens in.
        metrics.update({f"timing_s/{name}": seconds for name, seconds in timing_raw.items()})
        tokens, step = metrics["perf/total_num_tokens"], timing_raw["step"]
        metrics["perf/time_per_step"] = step
        metrics["perf/throughput"] = tokens / (step * self._get_n_gpus_for_throughput())
        for name in [name for name in metrics if name.startswith(_PER_TOKEN)]:
            metrics[name] = 1000.0 * timing_raw[name.removeprefix(_PER_TOKEN)] / tokens

    def _in_parts(
        self,
        phase: Callable[..., KVBatchMeta],
        batch: KVBatchMeta,
        metrics: dict[str, Any],
        *,
        parts: list[list[int]] | None = None,
    ) -> KVBatchMeta:
        """Run one of verl's phases part by part: each brings its rows' tensors into this process.

        A step of one part is verl's phase as it is. Of several, metrics are put together as verl does for the
        mini-batches of a step.
        """
        parts = parts if parts is not None else balanced_parts(len(batch), ranks=self._ranks())
        if len(parts) == 1:
            return phase(batch, metrics=metrics)
        together = MetricsAggregator()
        for places in parts:
            of_part: dict[str, Any] = {}
            part = batch.select_keys([batch.keys[place] for place in places])
            num_real = len(places) - len(_fillers(part))
            phase(part, metrics=of_part)
            if num_real:  # the mean of none would be nan
                together.add_step_metrics(of_part, sample_count=num_real)
        metrics.update(together.get_aggregated_metrics())
        batch.extra_info.update(part.extra_info)
        return batch

    def discard(self, rows: StoredRows) -> None:
        """Remove rows of a step in which this policy does not update."""
        if rows.keys:
            clear_rows(keys=list(rows.keys), partition_id=self.name)

    def save(self, folder: Path, *, step: int) -> None:
        """Weights, optimizer, scheduler and random state of every rank, in verl's own format."""
        self.actor_rollout_wg.save_checkpoint(str(folder / "actor"), None, step, max_ckpt_to_keep=None)

    def load(self, folder: Path) -> None:
        self.actor_rollout_wg.load_checkpoint(local_path=str(folder / "actor"), del_local_after_load=False)
        self._empty_caches()

    def _get_n_gpus_for_throughput(self) -> int:
        return int(self.pool.world_size)
