"""verl's update phases (of PPO, with GRPO's advantage) on the rows of one policy."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import torch
from omegaconf import DictConfig
from verl import DataProto
from verl.trainer.ppo.padding_utils import upsample_batch_to_divisible_size
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.utils.seqlen_balancing import log_seqlen_unbalance

from .batch_parts import deal
from .loop import Metrics, SyncTrainer, marked_timer
from .row_queue import KVBatchMeta, clear_rows, get_fields, put_rows
from .trajectories import StoredRows, is_lesson

_WORST = "training/rollout_log_probs_diff_worst"
_COMPARED = 8
"""Rows of a rank that ``compare`` reads."""
_LEAST_TOKENS = 16


def worst_difference(rows: Any) -> float:
    """Return the largest mean difference of log-probabilities over a response.

    Args:
        rows: nested columns ``rollout_log_probs``, ``old_log_probs`` and ``response_mask``. Rows of fewer than 16
            tokens are left out if any row is longer, since the mean over few tokens may be large by chance.
    """
    columns = (rows[name].unbind() for name in ("rollout_log_probs", "old_log_probs", "response_mask"))
    of_rows = [(served - trained).abs()[mask.bool()] for served, trained, mask in zip(*columns, strict=True)]
    least = min(_LEAST_TOKENS, max(map(len, of_rows)))
    return float(torch.stack([tokens.mean() for tokens in of_rows if len(tokens) >= max(1, least)]).max())  # keeps NaN


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
        batch = self.stored(rows)
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
        # verl reads the time of generation from this timer. The time is 0 for each policy, since an episode serves both
        # policies.
        timing["gen"] = 0.0
        self._compute_metrics(batch, metrics, timing, global_steps=step, epoch=epoch)
        clear_rows(keys=batch.keys, partition_id=batch.partition_id)
        return metrics

    def stored(self, rows: StoredRows) -> KVBatchMeta:
        """Return the stored rows as a batch of verl."""
        batch = KVBatchMeta(partition_id=self.name, keys=list(rows.keys), tags=list(rows.tags))
        batch.extra_info["temperature"] = self.config.actor_rollout_ref.rollout.temperature
        return batch

    def _balance_batch(self, batch: KVBatchMeta, metrics: Metrics, **_: Any) -> KVBatchMeta:
        """Add filler rows, and deal all rows to ranks and optimizer steps."""
        ranks = self._ranks()
        multiple = self._get_required_batch_multiple(ranks)
        batch = upsample_batch_to_divisible_size(batch, multiple, self.tokenizer.eos_token_id)
        blocks = self.config.actor_rollout_ref
        steps = max(1, len(batch) // (blocks.actor.ppo_mini_batch_size * blocks.rollout.n))
        tokens = [tag["seq_len"] for tag in batch.tags]
        dealt = deal(_groups(batch), tokens, fillers=_fillers(batch), ranks=ranks, steps=steps)
        metrics.update(log_seqlen_unbalance(tokens, dealt, prefix="global_seqlen"))
        batch.reorder(list(chain(*dealt)))
        return batch

    def _ranks(self) -> int:
        """Return the number of data-parallel ranks."""
        group = self.actor_rollout_wg
        if "actor" not in group._dispatch_info:
            group._dispatch_info["actor"] = group._query_dispatch_info("actor")
        return 1 + max(group._dispatch_info["actor"])

    def _compute_old_log_prob(self, batch: KVBatchMeta, metrics: Metrics) -> KVBatchMeta:
        if self.config.algorithm.rollout_correction.bypass_mode:  # verl copies the servers' log-probabilities
            self.compare(batch, metrics)
            return super()._compute_old_log_prob(batch, metrics)
        batch = super()._compute_old_log_prob(batch, metrics)
        lessons = [key for key in batch.keys if is_lesson(key)]
        if lessons:
            # No server sampled the lessons, so lessons get the trainer's probabilities as the server's. The metrics
            # below compare trainer and servers on the sampled rows only.
            rows = get_fields(keys=lessons, partition_id=self.name, select_fields=["old_log_probs"])
            rows["rollout_log_probs"] = rows.pop("old_log_probs")
            put_rows(keys=lessons, partition_id=self.name, fields=rows)
        sampled = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding")]
        if not sampled:
            return batch
        fields = ["rollout_log_probs", "old_log_probs", "response_mask", "responses"]
        rows = get_fields(keys=sampled, partition_id=self.name, select_fields=fields)
        if lessons:
            metrics.update(calculate_debug_metrics(DataProto(batch=rows.to_padded_tensor())))
        metrics[_WORST] = worst_difference(rows)
        return batch

    def compare(self, batch: KVBatchMeta, metrics: Metrics) -> None:
        """Compare the log-probabilities of servers and workers on a few rows, where no update compares all rows."""
        ranks = self._ranks()
        rows = [row for row, key in enumerate(batch.keys) if not is_lesson(key)]
        rows.sort(key=lambda row: -batch.tags[row]["seq_len"])
        number = min(_COMPARED, len(rows) // ranks) * ranks
        if not number:
            return
        part = batch.select_keys([batch.keys[row] for row in rows[:number]])
        correction = self.config.algorithm.rollout_correction
        bypasses, correction.bypass_mode = correction.bypass_mode, False
        try:
            self._compute_old_log_prob(part, metrics)
        finally:
            correction.bypass_mode = bypasses

    def _compute_metrics(
        self,
        batch: KVBatchMeta,
        metrics: Metrics,
        timing_raw: dict[str, float],
        global_steps: int,
        epoch: int,
    ) -> None:
        if all(tag.get("is_padding") for tag in batch.tags):
            # All rows are lessons. verl's metrics need at least one row, so verl counts the lessons.
            for tag in batch.tags:
                tag.pop("is_padding")
        super()._compute_metrics(batch, metrics, timing_raw, global_steps=global_steps, epoch=epoch)
