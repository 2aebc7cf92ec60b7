"""Demonstrations that a Test LLM wrote itself: suites of a run whose claims are all right (rejection sampling)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reward_fns import Refusal, extract_suite

from ..analysis.measures import fails
from ..analysis.records import Record, RunRecords
from ..questions import Question, read_rows
from ..score_input import ScoreInputError
from .demonstrations import Demonstration

_NEEDED = frozenset({"question", "source", "outage", "verdict", "suites"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSuites:
    """Scored rollouts: those of a run folder, or a file of such rows."""

    records: Iterable[Record]
    num_cases: int
    """K, the asserts each suite was asked for."""
    pair: str
    """The prompt pair that they were written with."""
    black_box: bool


def recorded_run(run: RunRecords) -> RecordedSuites:
    """The training rollouts of a run, read as they are asked for; a question of its validation stays unseen."""
    prompts = run.config.get("prompts") or {}
    episode = run.config.get("episode") or {}
    return RecordedSuites(
        records=(record for step in run.training_steps for record in run.training(step)),
        num_cases=int(episode.get("cases_per_suite", 8)),
        pair=str(prompts.get("name", "chat_v1")),
        black_box=bool(prompts.get("black_box", False)),
    )


def recorded_rows(path: Path) -> list[Record]:
    """Rows of a file as a run's ``rollouts/*.jsonl`` or ``code-a1 score`` of them has it.

    Raises:
        QuestionError: the file cannot be read.
        ScoreInputError: a row is no scored rollout.
    """
    rows = read_rows(path)
    for number, row in enumerate(rows):
        if missing := sorted(_NEEDED - row.keys()):
            raise ScoreInputError(
                f"{path}: row {number} lacks {', '.join(missing)}; --run takes a run folder, files of its rollouts, "
                "or what `code-a1 score` makes of those"
            )
    return list(rows)


def demonstrations_from(
    records: Iterable[Record], questions: Mapping[str, Question], *, num_cases: int, counts: Counter[str]
) -> Iterator[Demonstration]:
    """The suites whose asserts are all valid cases with a right claim, as many as asked for.

    Args:
        records: scored programs with their suites; those lost to an outage are left out and counted.
        questions: by id; records of others are left out and counted.
        num_cases: K.
        counts: gets what is left out, by reason.
    """
    for record in records:
        if record["outage"]:
            counts["programs lost to an outage"] += 1
            continue
        question = questions.get(str(record["question"]))
        if question is None:
            counts["programs of unknown questions"] += 1
            continue
        if record["source"] is None or record.get("shared_with") is not None:
            continue  # nothing was shown, or another program, whose own record has the suites
        for suite in record["suites"]:
            asserts = right_asserts(suite, num_cases=num_cases, counts=counts)
            if not asserts:
                continue
            cases = suite["verdict"]["cases"]
            loaded = record["verdict"] is not None and record["verdict"]["loaded"]
            yield Demonstration(
                question_id=question.id,
                statement=question.prompt,
                shown="rollout",
                program=record["source"],
                asserts=asserts,
                num_breaking=sum(map(fails, cases)) if loaded else 0,
                data_source=question.data_source,
                step=int(record.get("step", -1)),
            )


def right_asserts(suite: Mapping[str, Any], *, num_cases: int, counts: Counter[str]) -> tuple[str, ...]:
    """The asserts of a recorded suite as they were written; empty, and counted, where one of them is not right."""
    verdict = suite["verdict"]
    asserts = extract_suite(suite["response"])
    if verdict is None or isinstance(asserts, Refusal):
        counts["suites without a verdict, or without asserts"] += 1
    elif verdict["rejections"]:
        counts["suites with an assert that is no valid case"] += 1
    elif not all(case["claimed_right"] for case in verdict["cases"]):
        counts["suites with a wrong claim"] += 1
    elif not len(asserts) == len(verdict["cases"]) == num_cases:
        counts[f"suites of other than {num_cases} asserts"] += 1
    else:
        return asserts
    return ()
