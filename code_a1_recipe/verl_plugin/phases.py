"""verl's update phases (of PPO, with GRPO's advantage) on the rows of one policy."""

from collections.abc import Callable
from itertools import chain
from typing import Any

from omegaconf import DictConfig
from verl import DataProto
from verl.trainer.ppo.v1.utils import MetricsAggregator
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.utils.seqlen_balancing import log_seqlen_unbalance

from ..errors import CodeA1Error
from . import own_log_probs
from .batch_parts import balanced_parts, deal, group_parts
from .loop import Metrics, SyncTrainer, marked_timer
from .row_queue import KVBatchMeta, clear_rows, get_fields, put_rows
from .trajectories import StoredRows, is_lesson

_PER_TOKEN = "timing_per_token_ms/"


def _groups(batch: KVBatchMeta) -> list[str]:
    return [key.partition("_")[0] for key in batch.keys]  # verl's keys begin with the uid


def _fillers(batch: KVBatchMeta) -> set[int]:
    """Return the indices of the filler rows, which verl has added to the batch."""
    rows = enumerate(zip(batch.keys, batch.tags, strict=True))
    # Lessons have the same tag.
    return {row for row, (key, tag) in rows if tag.get("is_padding") and not is_lesson(key)}


class UpdatePhases(SyncTrainer):
    """verl's V1 trainer without its loop: the phases of one update, on the rows and workers of one policy.

    Each policy has its own phases, so they see neither rows nor configuration of the other policy.

    Args:
        config: verl's part of the configuration, as this policy sees it.
        name: name of the policy, and of the queue's partition with its rows.
        workers: verl's worker group, which also computes the reference log-probabilities.
        tokenizer: the policy's tokenizer.
        has_adapter: the policy trains a LoRA adapter, and the reference is the model without the adapter.
        num_gpus: number of GPUs, by which throughput is divided.
    """

    _takes_own_log_probs = False
    """Whether the current update takes the log-probabilities of its own pass as the old log-probabilities."""

    def __init__(
        self,
        config: DictConfig,
        *,
        name: str,
        workers: Any,
        tokenizer: Any,
        has_adapter: bool,
        num_gpus: int,
    ) -> None:
        super().__init__(config)
        self.name, self.tokenizer = name, tokenizer
        self.actor_rollout_wg = self.ref_policy_wg = workers
        self.ref_in_actor = has_adapter
        self._num_gpus = num_gpus

    def _get_n_gpus_for_throughput(self) -> int:
        return self._num_gpus

    def update(
        self,
        rows: StoredRows,
        *,
        step: int,
        epoch: int,
        check: Callable[[dict[str, float]], None],
    ) -> dict[str, float]:
        """Make one GRPO update on the stored rows, and remove them from the queue.

        The phases have verl's order (``PPOTrainer._step_once``): balance, old log-probs, reference log-probs,
        advantage, actor update.

        Args:
            rows: the stored rows.
            step: number of the step.
            epoch: number of the epoch.
            check: is called with the metrics as soon as they compare log-probabilities of servers and trainer. If
                ``check`` raises an error, the update ends.

        Returns:
            verl's metrics of the update under verl's names, ``timing_s/...`` included.
        """
        self.global_steps = step
        metrics: dict[str, float] = {}
        timing: dict[str, float] = {}
        batch = KVBatchMeta(partition_id=self.name, keys=list(rows.keys), tags=list(rows.tags))
        batch.extra_info["temperature"] = self.config.actor_rollout_ref.rollout.temperature
        with marked_timer("step", timing):
            batch = self._balance_batch(batch, metrics=metrics)
            with marked_timer("old_log_prob", timing):
                batch = self._compute_old_log_prob(batch, metrics=metrics)
            check(metrics)
            if self.use_reference_policy:
                with marked_timer("ref", timing):
                    batch = self._compute_ref_log_prob(batch, metrics=metrics)
            with marked_timer("adv", timing):
                batch = self._compute_advantage(batch, metrics=metrics)
            with marked_timer("update_actor", timing):
                batch = self._update_actor(batch, metrics=metrics)
        if self._takes_own_log_probs:  # before the update, no metrics compared log-probabilities
            check(metrics)
        # verl reads the time of generation from this timer. The time is 0 for each policy, since an episode serves both
        # policies.
        timing["gen"] = 0.0
        self._compute_metrics(batch, metrics, timing, global_steps=step, epoch=epoch)
        clear_rows(keys=batch.keys, partition_id=batch.partition_id)
        return metrics

    def _balance_batch(self, batch: KVBatchMeta, metrics: Metrics, **options: Any) -> KVBatchMeta:
        batch = super()._balance_batch(batch, metrics, **options)
        blocks = self.config.actor_rollout_ref
        mini_batch = blocks.actor.ppo_mini_batch_size * blocks.rollout.n
        ranks = self._ranks()
        steps = max(1, len(batch) // mini_batch)
        if ranks * steps > 1:
            tokens = [tag["seq_len"] for tag in batch.tags]
            dealt = deal(
                _groups(batch),
                tokens,
                fillers=_fillers(batch),
                ranks=ranks,
                steps=steps,
            )
            metrics.update(log_seqlen_unbalance(tokens, dealt, prefix="global_seqlen"))
            batch.reorder(list(chain(*dealt)))
        return batch

    def _ranks(self) -> int:
        """Return the number of data-parallel ranks."""
        return 1 + max(self.actor_rollout_wg._dispatch_info["actor"])

    def _may_take_own_log_probs(self, batch: KVBatchMeta) -> bool:
        """Whether the update's own pass can give the old log-probabilities, because nothing reads them earlier."""
        blocks, algorithm = self.config.actor_rollout_ref, self.config.algorithm
        mini_batch = blocks.actor.ppo_mini_batch_size * blocks.rollout.n
        is_one_step = len(batch) == mini_batch and blocks.actor.ppo_epochs == 1
        correction = algorithm.rollout_correction
        readers = (
            algorithm.use_kl_in_reward,
            correction.bypass_mode,
            correction.rollout_is,
            correction.rollout_rs,
        )
        has_lessons = any(map(is_lesson, batch.keys))  # lessons need the trainer's log-probabilities
        return is_one_step and not any(readers) and not has_lessons

    def _compute_old_log_prob(self, batch: KVBatchMeta, metrics: Metrics) -> KVBatchMeta:
        self._takes_own_log_probs = self._may_take_own_log_probs(batch)
        if self._takes_own_log_probs:
            # verl needs the column ``old_log_probs``. The update replaces the copied values.
            self._copy_log_probs(batch.keys, "rollout", "old")
            return batch
        batch = self._in_parts(super()._compute_old_log_prob, batch, metrics)
        lessons = [key for key in batch.keys if is_lesson(key)]
        if not lessons:
            return batch
        # No server sampled the lessons, so lessons get the trainer's probabilities as the server's. The metrics below
        # compare trainer and servers on the sampled rows only.
        self._copy_log_probs(lessons, "old", "rollout")
        sampled = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding")]
        if sampled:
            fields = ["rollout_log_probs", "old_log_probs", "response_mask", "responses"]
            rows = get_fields(keys=sampled, partition_id=self.name, select_fields=fields)
            metrics.update(calculate_debug_metrics(DataProto(batch=rows.to_padded_tensor())))
        return batch

    def _copy_log_probs(self, keys: list[str], source: str, target: str) -> None:
        column = f"{source}_log_probs"
        rows = get_fields(keys=keys, partition_id=self.name, select_fields=[column])
        rows[f"{target}_log_probs"] = rows.pop(column)
        put_rows(keys=keys, partition_id=self.name, fields=rows)

    def _compute_ref_log_prob(self, batch: KVBatchMeta, metrics: Metrics) -> KVBatchMeta:
        return self._in_parts(super()._compute_ref_log_prob, batch, metrics)

    def _compute_advantage(self, batch: KVBatchMeta, metrics: Metrics) -> KVBatchMeta:
        parts = group_parts(_groups(batch), fillers=_fillers(batch))
        batch = self._in_parts(super()._compute_advantage, batch, metrics, parts=parts)
        if self._takes_own_log_probs:
            # These metrics are useless: they compare the servers' log-probabilities with a copy of themselves.
            for name in list(metrics):
                if "rollout_corr/" in name:
                    del metrics[name]
        return batch

    def _update_actor(self, batch: KVBatchMeta, metrics: Metrics) -> KVBatchMeta:
        batch.extra_info[own_log_probs.FLAG] = self._takes_own_log_probs
        batch = super()._update_actor(batch, metrics)
        if self._takes_own_log_probs:
            reported = own_log_probs.finalize(metrics, ranks=self._ranks())
            if not reported:  # an engine other than the recipe's trained on the copied column
                raise CodeA1Error(
                    f"the {self.name} policy's workers train with another engine than the recipe's, so step "
                    f"{self.global_steps} learned from wrong probabilities; install this release of the recipe on "
                    "every node where workers start"
                )
            metrics.update(reported)
        return batch

    def _compute_metrics(
        self,
        batch: KVBatchMeta,
        metrics: Metrics,
        timing_raw: dict[str, float],
        global_steps: int,
        epoch: int,
    ) -> None:
        compute_all = super()._compute_metrics
        known = {key: value for key, value in metrics.items() if key == "actor/grad_norm"}

        def compute(part: KVBatchMeta, metrics: Metrics) -> KVBatchMeta:
            metrics |= known  # verl computes further metrics from the gradient's norm
            if all(tag.get("is_padding") for tag in part.tags):
                # All rows are lessons. verl's metrics need at least one row, so the tag is removed, and verl counts the
                # lessons.
                for tag in part.tags:
                    tag.pop("is_padding")
            compute_all(part, metrics, timing_raw, global_steps=global_steps, epoch=epoch)
            return part

        self._in_parts(compute, batch, metrics)
        # For each part verl has divided the seconds of the whole phase by the tokens of the part alone. Correct that.
        for name, seconds in timing_raw.items():
            metrics[f"timing_s/{name}"] = seconds
        tokens = metrics["perf/total_num_tokens"]
        seconds_of_step = timing_raw["step"]
        metrics["perf/time_per_step"] = seconds_of_step
        metrics["perf/throughput"] = tokens / (seconds_of_step * self._get_n_gpus_for_throughput())
        for name in metrics:
            if name.startswith(_PER_TOKEN):
                seconds = timing_raw[name.removeprefix(_PER_TOKEN)]
                metrics[name] = 1000.0 * seconds / tokens

    def _in_parts(
        self,
        phase: Callable[..., KVBatchMeta],
        batch: KVBatchMeta,
        metrics: Metrics,
        *,
        parts: list[list[int]] | None = None,
    ) -> KVBatchMeta:
        """Run one of verl's phases part by part, since a phase loads the tensors of its rows into this process.

        If there is a single part, verl's phase runs unchanged. Metrics of several parts are aggregated as verl
        aggregates the metrics of several mini-batches.
        """
        parts = parts or balanced_parts(len(batch), ranks=self._ranks())
        if len(parts) == 1:
            return phase(batch, metrics=metrics)
        aggregator = MetricsAggregator()
        for rows in parts:
            part_metrics: Metrics = {}
            keys = [batch.keys[row] for row in rows]
            part = batch.select_keys(keys)
            num_real = len(rows) - len(_fillers(part))
            phase(part, metrics=part_metrics)
            if num_real:  # the mean over zero rows would be NaN
                aggregator.add_step_metrics(part_metrics, sample_count=num_real)
        metrics.update(aggregator.get_aggregated_metrics())
        batch.extra_info.update(part.extra_info)
        return batch
