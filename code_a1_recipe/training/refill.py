"""Dynamic sampling: questions that teach the Code LLM nothing give way to others (``episode.max_refills``).

Source: DAPO, arXiv 2503.14476, equation 11. Where all programs of a question earn the same, none has an advantage.
"""

import random
from collections.abc import Sequence

from ..algorithm.question import Question
from .episode_worker import EpisodeReport


def refill(
    questions: Sequence[Question], reports: Sequence[EpisodeReport], *, wanted: int, seed: int, step: int
) -> list[Question]:
    """As many questions, none of which the step has met, as it lacks reports with spread; fewer where all are met.

    Args:
        questions: of the training set. A resumed run draws the same of them.
        reports: of the step so far.
        wanted: questions of a step.
    """
    met = {report.question_id for report in reports}
    left = [question for question in questions if question.id not in met]
    missing = wanted - sum(report.has_spread for report in reports)
    return random.Random(f"{seed}/refill/{step}/{len(reports)}").sample(left, max(0, min(missing, len(left))))


def give_way(reports: Sequence[EpisodeReport], *, wanted: int) -> tuple[list[EpisodeReport], list[EpisodeReport]]:
    """The reports that a step learns from, in the order of their questions, and those that give way to them."""
    order = sorted(reports, key=lambda report: not report.has_spread)
    return sorted(order[:wanted], key=lambda report: report.index), order[wanted:]
