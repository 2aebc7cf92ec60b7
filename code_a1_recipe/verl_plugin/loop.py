"""verl's V1 training loop (``PPOTrainer.fit``), prepared for a trainer with several policies and a step of its own."""

from collections.abc import Iterable
from typing import Any

from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.debug import marked_timer

from .compat import SYNC_MODE, TRAINER_NAME

__all__ = ["AllWorkers", "TrainingLoop", "marked_timer", "register"]

register = register_trainer(TRAINER_NAME)
"""Class decorator: verl finds the trainer under our name."""


class TrainingLoop(PPOTrainerSync):
    """verl's trainer as this recipe's trainer builds on it: several policies, and a step of its own."""

    policies: Any
    """By name; each with ``workers`` and ``llm_server_manager``."""

    def _build_replay_buffer(self) -> None:
        """Episodes are awaited, not sampled from a buffer; verl's other branches follow its own sync trainer."""
        self.trainer_mode = SYNC_MODE

    def prepare_step(self) -> dict[str, Any]:
        """Nothing: ``step`` takes its own batch. verl's would submit another one, whenever its loop calls this."""
        return {}

    def _log_rollout_data(self, *_: Any) -> None:
        """Nothing: rollouts were copied to ``trainer.rollout_data_dir`` while they came. verl would read the batch."""

    def _rollout_server_managers(self) -> list[Any]:
        """Of both policies, for verl's profiler."""
        return [policy.llm_server_manager for policy in self.policies.values()]

    def use_workers(self) -> None:
        """Have verl start and stop its profiler in the workers of all policies."""
        self.actor_rollout_wg = self.ref_policy_wg = AllWorkers(policy.workers for policy in self.policies.values())

    def end_rollout_profile(self) -> None:
        """End the servers' part of a profile when a step's episodes are over."""
        if self.curr_step_profile:
            self._stop_rollout_profiling()


class AllWorkers:
    """The worker groups of all policies as the one group that verl's trainer starts and stops its profiler in."""

    def __init__(self, groups: Iterable[Any]) -> None:
        self._groups = list(groups)

    def start_profile(self, **arguments: Any) -> None:
        for group in self._groups:
            group.start_profile(**arguments)

    def stop_profile(self, **arguments: Any) -> None:
        for group in self._groups:
            group.stop_profile(**arguments)
