"""Dynamic sampling: new questions replace questions that teach the Code LLM nothing (``episode.max_refills``).

If all programs of a question earn the same reward, no program has an advantage. Source: DAPO, arXiv 2503.14476,
equation 11.
"""

import random
from collections.abc import Sequence

from ..algorithm.question import Question
from .episode_worker import EpisodeReport


def refill(
    questions: Sequence[Question],
    reports: Sequence[EpisodeReport],
    *,
    wanted: int,
    seed: int,
    step: int,
) -> list[Question]:
    """Draw as many new questions as the step lacks questions with spread, or fewer if the training set has no more.

    Args:
        questions: the training set.
        reports: the step's reports so far.
        wanted: number of questions in a step.
        seed: seed of the run.
        step: number of the step.
    """
    asked = {report.question_id for report in reports}
    left = [question for question in questions if question.id not in asked]
    missing = wanted - sum(report.has_spread for report in reports)
    number = max(0, min(missing, len(left)))
    # The seed depends only on the step and its reports so far, so a resumed run draws the same questions.
    generator = random.Random(f"{seed}/refill/{step}/{len(reports)}")
    return generator.sample(left, number)


def give_way(
    reports: Sequence[EpisodeReport],
    *,
    wanted: int,
) -> tuple[list[EpisodeReport], list[EpisodeReport]]:
    """Choose the ``wanted`` reports that a step learns from. Reports with spread are chosen first.

    Returns:
        The chosen reports in the order of their questions; the other reports.
    """
    spread_first = sorted(reports, key=lambda report: not report.has_spread)
    chosen, replaced = spread_first[:wanted], spread_first[wanted:]
    chosen.sort(key=lambda report: report.index)
    return chosen, replaced
