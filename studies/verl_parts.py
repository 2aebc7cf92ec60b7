"""The parts of ``two_policies.py`` that verl loads by path."""

from __future__ import annotations

from typing import Any

from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer


class QuickReplayBuffer(ReplayBuffer):
    """verl's buffer, which looks for finished groups every 0.02 s instead of every 2 s."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(poll_interval=0.02, **arguments)


def length_reward(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    """A reward that costs nothing and differs within a group."""
    return float(len(solution_str) % 2)
