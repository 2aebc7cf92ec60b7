"""Dynamic sampling: other questions replace those that teach the Code LLM nothing (``episode.max_refills``).

If all programs of a question earn the same reward, none has an advantage. Source: DAPO, arXiv 2503.14476, equation 11.
"""

import random
from collections.abc import Sequence

from ..algorithm.question import Question
from .episode_worker import EpisodeReport


def refill(
    questions: Sequence[Question], reports: Sequence[EpisodeReport], *, wanted: int, seed: int, step: int
) -> list[Question]:
    """Draw a new question for each report that has no spread; fewer if the step has asked nearly all questions.

    Args:
        questions: the training set.
        reports: the step's reports so far.
        wanted: questions of a step.
    """
    asked = {report.question_id for report in reports}
    left = [question for question in questions if question.id not in asked]
    missing = wanted - sum(report.has_spread for report in reports)
    # Seeded for the step alone, so that a resumed run draws the same questions.
    generator = random.Random(f"{seed}/refill/{step}/{len(reports)}")
    return generator.sample(left, max(0, min(missing, len(left))))


def give_way(reports: Sequence[EpisodeReport], *, wanted: int) -> tuple[list[EpisodeReport], list[EpisodeReport]]:
    """Split reports into the ``wanted`` ones that a step learns from, in the order of their questions, and the rest.

    Reports with spread come first.
    """
    order = sorted(reports, key=lambda report: not report.has_spread)
    kept = sorted(order[:wanted], key=lambda report: report.index)
    return kept, order[wanted:]
