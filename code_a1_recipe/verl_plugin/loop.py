"""verl's V1 training loop (``PPOTrainer.fit``) for a trainer with several policies and its own step."""

from typing import Any

from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.debug import marked_timer as marked_timer  # the trainer imports it from here

from .compat import SYNC_MODE, TRAINER_NAME

Metrics = dict[str, Any]
"""Metrics of a step or of an update, by name."""

register = register_trainer(TRAINER_NAME)
"""Class decorator that registers the trainer under the recipe's name, so that verl finds it."""


class SyncTrainer(PPOTrainerSync):
    """verl's sync trainer without a replay buffer."""

    def _build_replay_buffer(self) -> None:
        """Build no buffer, since the trainer waits for its episodes.

        The sync mode makes verl's other code treat this trainer as verl's sync trainer.
        """
        self.trainer_mode = SYNC_MODE


class TrainingLoop(SyncTrainer):
    """verl's trainer as the base of a trainer with several policies and its own step."""

    policies: Any
    """Policies by name. Each policy has ``workers`` and ``llm_server_manager``."""

    def prepare_step(self) -> dict[str, Any]:
        """Do nothing, since ``step`` takes its own questions. verl's own method would submit another batch."""
        return {}

    def _log_rollout_data(self, *_: Any) -> None:
        """Do nothing, since the step has already written its rollouts. verl would fetch the batch from the queue."""

    def _rollout_server_managers(self) -> list[Any]:
        """Return the managers of all policies, for verl's profiler."""
        return [policy.llm_server_manager for policy in self.policies.values()]

    def use_workers(self) -> None:
        """Let verl start and stop its profiler in the workers of all policies."""
        self.actor_rollout_wg = self.ref_policy_wg = AllWorkers(policy.workers for policy in self.policies.values())

    def end_rollout_profile(self) -> None:
        """End the servers' part of a profile when a step's episodes are over."""
        if self.curr_step_profile:
            self._stop_rollout_profiling()


class AllWorkers(list[Any]):
    """Stands for the worker groups of all policies, where verl's trainer expects a single group to profile."""

    def start_profile(self, **arguments: Any) -> None:
        for group in self:
            group.start_profile(**arguments)

    def stop_profile(self, **arguments: Any) -> None:
        for group in self:
            group.stop_profile(**arguments)
