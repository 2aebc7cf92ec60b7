"""Demonstrations that a Test LLM wrote itself: suites of a run with correct assertions only (rejection sampling)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from reward_fns import ExtractionFailure, extract_suite

from ...algorithm.question import Question
from ...runs.rollout_record import RolloutRecord, SuiteRecord
from .demonstrations import Demonstration


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
        if record.source is None:
            continue  # no suite was written without a program
        for suite in record.suites:
            asserts = right_asserts(suite, num_cases=num_cases, counts=counts)
            if not asserts or suite.verdict is None:
                continue
            yield Demonstration(
                question_id=question.id,
                statement=question.prompt,
                reads_input=question.reads_input,
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
