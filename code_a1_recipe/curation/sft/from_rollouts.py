"""Demonstrations that a Test LLM wrote itself: suites of a run with correct assertions only (rejection sampling)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reward_fns import ExtractionFailure, extract_suite

from ...algorithm.question import Question
from ...data.reader import read_rows
from ...runs.reader import RunRecords, rollout_of
from ...runs.rollout_record import RolloutRecord, SuiteRecord
from .demonstrations import Demonstration


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSuites:
    """Scored rollouts: those of a run folder, or a file of such rows."""

    records: Iterable[RolloutRecord]
    num_cases: int
    """K, the asserts each suite was asked for."""
    pair: str
    """The prompt pair that they were written with, or the Test LLM's own template file (``prompts.test``)."""
    black_box: bool


def recorded_run(run: RunRecords) -> RecordedSuites:
    """The training rollouts of a run, read as they are asked for; a question of its validation stays unseen."""
    prompts = run.config.get("prompts") or {}
    episode = run.config.get("episode") or {}
    return RecordedSuites(
        records=(record for step in run.training_steps for record in run.training(step)),
        num_cases=int(episode.get("cases_per_suite", 8)),
        pair=str(prompts.get("test") or prompts.get("name", "chat_v2")),
        black_box=bool(prompts.get("black_box", False)),
    )


def recorded_rows(path: Path) -> list[RolloutRecord]:
    """Rows of a file as a run's ``rollouts/*.jsonl`` or ``code-a1 score`` of them has it.

    Raises:
        InputError: the file cannot be read, or a row is no rollout record.
    """
    return [rollout_of(row, f"{path}: row {number}") for number, row in enumerate(read_rows(path))]


def demonstrations_from(
    records: Iterable[RolloutRecord], questions: Mapping[str, Question], *, num_cases: int, counts: Counter[str]
) -> Iterator[Demonstration]:
    """The suites whose asserts are all valid cases with a correct assertion, as many as asked for.

    Args:
        records: scored programs with their suites; those lost to an outage are left out and counted.
        questions: by id; records of others are left out and counted.
        num_cases: K.
        counts: gets what is left out, by reason.
    """
    for record in records:
        if record.outage:
            counts["programs lost to an outage"] += 1
            continue
        question = questions.get(record.question)
        if question is None:
            counts["programs of unknown questions"] += 1
            continue
        if record.source is None or record.duplicate_of is not None:
            continue  # nothing was shown, or another program, whose own record has the suites
        for suite in record.suites:
            asserts = right_asserts(suite, num_cases=num_cases, counts=counts)
            if not asserts or suite.verdict is None:
                continue
            yield Demonstration(
                question_id=question.id,
                statement=question.prompt,
                shown="rollout",
                program=record.source,
                asserts=asserts,
                num_breaking=suite.verdict.num_failed if record.is_loaded else 0,
                data_source=question.data_source,
                step=record.step,
            )


def right_asserts(suite: SuiteRecord, *, num_cases: int, counts: Counter[str]) -> tuple[str, ...]:
    """The asserts of a recorded suite as they were written; empty, and counted, where one of them is not right."""
    verdict = suite.verdict
    asserts = extract_suite(suite.response)
    if verdict is None or isinstance(asserts, ExtractionFailure):
        counts["suites without a verdict, or without asserts"] += 1
    elif verdict.rejections:
        counts["suites with an assert that is no valid case"] += 1
    elif verdict.num_expected_incorrect:
        counts["suites with an incorrect assertion"] += 1
    elif not len(asserts) == verdict.num_valid == num_cases:
        counts[f"suites of other than {num_cases} asserts"] += 1
    else:
        return asserts
    return ()
