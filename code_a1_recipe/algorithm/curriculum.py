"""Curriculum: the questions of a training step, drawn by how much their last visits taught. Not in the paper.

Axes: C candidates of one question.
"""

import heapq
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Annotated

from .question import Question
from .settings_block import Block, Rate, one_of

_LEAST_WEIGHT = 1e-6
"""Added to every score: where all scores are 0, questions are drawn uniformly."""


def reward_variance(reward_C: Sequence[float]) -> float:
    """4 * the population variance of a question's rewards, in [0, 1].

    Rewards in [0, 1] have a variance of at most 1/4; a wider range, of a user's own function, is cut off at 1. Without
    variance the advantages of GRPO are 0. Source of scores by the last learning signal: PLR, arXiv 2010.03934.
    """
    return min(1.0, 4 * statistics.pvariance(reward_C))


class CurriculumSettings(Block):
    name: Annotated[str, one_of(("none", "variance"))] = "none"
    """Score that questions are drawn by; none: verl's own order."""
    floor: Rate = 0.25
    """Share of a step's questions that is drawn uniformly from all."""
    memory: Rate = 0.5
    """Weight of the newest visit in a question's moving average."""


class Curriculum:
    """``{question id -> score in [0, 1]}`` of the questions that were visited; the others score 1.

    With "none" nobody draws or updates; scores of an earlier setting are kept as they are.
    """

    def __init__(self, settings: CurriculumSettings, questions: Sequence[Question], *, seed: int) -> None:
        self._settings = settings
        self._question_ids = tuple(question.id for question in questions)
        self._seed = seed
        self._scores: dict[str, float] = {}

    def draw(self, step: int, num: int) -> list[int]:
        """``num`` distinct indices into the questions; they depend on seed, step and scores alone.

        The share ``floor``, rounded up, is drawn uniformly; the rest from the others in proportion to their scores,
        without replacement: the first events of exponential clocks with the scores as rates (Efraimidis and Spirakis,
        2006). A run has at least ``num`` questions.
        """
        scores = self._all_scores()
        # A generator of the step's own: a run that resumes draws what it would have drawn.
        generator = random.Random(f"{self._seed}/curriculum/{step}")
        drawn = generator.sample(range(len(scores)), math.ceil(self._settings.floor * num))
        # Sorted, since each clock takes the next random number and a set has no order.
        others = sorted(set(range(len(scores))).difference(drawn))
        clocks = {q: generator.expovariate(scores[q] + _LEAST_WEIGHT) for q in others}
        drawn += heapq.nsmallest(num - len(drawn), others, key=clocks.__getitem__)
        generator.shuffle(drawn)  # each mini-batch gets both kinds
        return drawn

    def update(self, question_id: str, rewards: Sequence[float]) -> None:
        """Take in one visit.

        Args:
            rewards: the Code LLM's, of the programs that have one; fewer than two leave the score as it is.
        """
        if len(rewards) < 2:
            return
        newest = reward_variance(rewards)
        # Rewards move as the policy learns, so an old score must fade.
        before = self._scores.get(question_id, newest)
        self._scores[question_id] = before + self._settings.memory * (newest - before)

    def metrics(self) -> dict[str, float]:
        """The mean score of all questions, and the share that was never visited; both in [0, 1]."""
        num_unvisited = sum(name not in self._scores for name in self._question_ids)
        return {
            "curriculum/mean_score": statistics.fmean(self._all_scores()),
            "curriculum/unvisited_frac": num_unvisited / len(self._question_ids),
        }

    def state(self) -> dict[str, float]:
        """A copy of the scores, for a checkpoint."""
        return dict(self._scores)

    def restore(self, state: Mapping[str, float]) -> None:
        """Take the scores of ``state()``; of an empty state no question was visited."""
        self._scores = dict(state)

    def _all_scores(self) -> list[float]:
        return [self._scores.get(name, 1.0) for name in self._question_ids]
