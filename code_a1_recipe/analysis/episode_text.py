"""What a program of a rollout came to, and the programs of an outcome."""

from __future__ import annotations

from collections.abc import Iterable

from ..runs.rollout_record import RolloutRecord

OUTCOMES: dict[str, str] = {
    "detected": "wrong, and a test that it met broke it: new, given, pooled or replayed",
    "undetected": "wrong, and no test that it met broke it",
    "untested": "wrong by the hidden tests, and it met no other",
    "solved": "right by the hidden tests",
    "unusable": "no program could be read from the response, or it does not load",
    "outage": "the sandbox could not judge it",
    "unknown": "not judged on hidden tests (validation.hidden_in_training)",
}
"""What a program of a rollout came to."""


def outcome_of(record: RolloutRecord) -> str:
    """A name of ``OUTCOMES``."""
    if record.outage:
        return "outage"
    if record.source is None or (record.verdict is not None and not record.verdict.loaded):
        return "unusable"
    if record.is_broken():
        return "detected"
    if record.kind != "buggy_program":  # which are programs that are known to be wrong
        if record.hidden_tests is None:
            return "unknown"
        if record.is_solved:
            return "solved"
    return "undetected" if any(cases for _, cases in record.met_cases()) else "untested"


def pick_episodes(records: Iterable[RolloutRecord], *, outcome: str, limit: int) -> list[RolloutRecord]:
    """A few records of an outcome, each of another question; first those that few cases of a suite broke.

    They are the finer catches; those that replays alone broke come last.
    """
    chosen: dict[str, tuple[tuple[bool, int], RolloutRecord]] = {}
    for record in records:
        if outcome_of(record) == outcome:
            by_suites = sum(suite.verdict.num_failed for suite in record.suites if suite.verdict is not None)
            broken = (by_suites == 0, by_suites)
            best = chosen.get(record.question)
            if best is None or broken < best[0]:
                chosen[record.question] = (broken, record)
    return [record for _, record in sorted(chosen.values(), key=lambda item: item[0])[:limit]]
