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
    """Draw as many new questions as the step still lacks. A step wants ``wanted`` questions whose rewards differ.

    If the training set has too few new questions, all of them are drawn.

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
    # The generator's seed depends only on the run's seed, the step and the number of reports so far. So a resumed run
    # draws the same questions.
    generator = random.Random(f"{seed}/refill/{step}/{len(reports)}")
    return generator.sample(left, number)


def give_way(
    reports: Sequence[EpisodeReport],
    *,
    wanted: int,
) -> tuple[list[EpisodeReport], list[EpisodeReport]]:
    """Choose the ``wanted`` reports that a step learns from. Reports whose rewards differ are chosen first.

    Returns:
        The chosen reports, in the order of their questions, and then the other reports.
    """
    spread_first = sorted(reports, key=lambda report: not report.has_spread)
    chosen, replaced = spread_first[:wanted], spread_first[wanted:]
    chosen.sort(key=lambda report: report.index)
    return chosen, replaced
