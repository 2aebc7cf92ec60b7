"""Where the seconds of one training step went, read from a run's rollouts and metrics."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..spans import BusySeconds, Span, busy_seconds, mean_running
from ..step_report import UPDATES
from .records import Record, RecordsError, RunRecords

PHASES: dict[str, str] = {
    "update_code": "update of the Code LLM",
    "update_test": "update of the Test LLM",
    "save_checkpoint": "checkpoint",
    "update_weights": "weights to the servers",
}
"""Timers of what follows the episodes, in this order, and what each is."""
_OTHER_JUDGE_SPANS = ("hidden_span", "pooled_span")
"""Of a program at the judge beside that of its verdict; rollouts of earlier versions lack them."""


@dataclass(slots=True, kw_only=True)
class QuestionSpans:
    """When one question's programs and suites were written and judged, in seconds since the step's start."""

    code: list[Span] = field(default_factory=list)
    """One per program of the Code LLM."""
    test: list[Span] = field(default_factory=list)
    """One per suite of the Test LLM."""
    judge: list[Span] = field(default_factory=list)
    """One per request about a program, the wait for a judge included: for its verdict, and where they were made, for
    the hidden tests while its suites were written and for the pooled cases. Never two of a program at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """One training step."""

    step: int
    seconds: float
    """Of the whole step, above 0."""
    episode_seconds: float
    """From the step's start until the last question was judged."""
    phases: dict[str, float]
    """Seconds by name of ``PHASES``, in that order; what did not run in this step is not there."""
    questions: dict[int, QuestionSpans]
    """By the question's place in the step, ascending."""
    updates_at_once: bool = False
    """Each policy has GPUs of its own, so both ``UPDATES`` begin at the same time."""

    @property
    def code(self) -> list[Span]:
        """All requests to the Code LLM."""
        return list(chain.from_iterable(question.code for question in self.questions.values()))

    @property
    def test(self) -> list[Span]:
        """All requests to the Test LLM."""
        return list(chain.from_iterable(question.test for question in self.questions.values()))

    @property
    def judge(self) -> list[Span]:
        """All programs at the judge."""
        return list(chain.from_iterable(question.judge for question in self.questions.values()))

    @property
    def busy(self) -> BusySeconds:
        """The episodes' seconds by who worked."""
        return busy_seconds(code=self.code, test=self.test, judge=self.judge, start=0.0, end=self.episode_seconds)

    @property
    def phase_spans(self) -> dict[str, Span]:
        """When each phase ran, in seconds since the step's start, as if nothing lay between them."""
        spans: dict[str, Span] = {}
        end = self.episode_seconds
        for name, seconds in self.phases.items():
            start = self.episode_seconds if self.updates_at_once and name in UPDATES else end
            spans[name] = (start, start + seconds)
            end = max(end, start + seconds)
        return spans

    @property
    def phases_end(self) -> float:
        """Seconds of the episodes and the phases; two updates at once count as the longer one."""
        return max([self.episode_seconds, *(end for _, end in self.phase_spans.values())])

    @property
    def other_seconds(self) -> float:
        """Of the step, in no episode and no phase: at least 0."""
        return max(0.0, self.seconds - self.phases_end)

    def mean_running(self, spans: Sequence[Span]) -> float:
        """How many of ``spans`` run at once, mean over the episodes' seconds."""
        return mean_running(spans, start=0.0, end=self.episode_seconds)


def steps_with_times(run: RunRecords) -> list[int]:
    """Steps that have rollouts and ``timing_s/step``, ascending; empty before the first one is finished."""
    timed = {row["step"] for row in run.metrics if _seconds(row, "step") > 0}
    return [step for step in run.training_steps if step in timed]


def median_step_seconds(run: RunRecords) -> tuple[float, int]:
    """Median seconds of a step, and of how many steps: all but the first, which starts engines and caches.

    A run of one step has only that one.

    Raises:
        RecordsError: no step has ``timing_s/step``.
    """
    rows = sorted(run.metrics, key=lambda row: int(row["step"]))
    found = [seconds for row in rows if (seconds := _seconds(row, "step")) > 0]
    if not found:
        raise RecordsError(f"{run.paths.metrics} has no step with timing_s/step; let the run finish a step first")
    counted = found[1:] or found
    return statistics.median(counted), len(counted)


def read_step(run: RunRecords, step: int) -> StepTimes:
    """The times of one of ``steps_with_times``.

    Raises:
        RecordsError: the step's rollouts have no spans, or some that cannot be read.
    """
    row = next(row for row in reversed(run.metrics) if row["step"] == step and _seconds(row, "step") > 0)
    questions = _questions(run, step)
    spans = chain.from_iterable([*one.code, *one.test, *one.judge] for one in questions.values())
    phases = {name: seconds for name in PHASES if (seconds := _seconds(row, name)) > 0}
    return StepTimes(
        step=step,
        seconds=_seconds(row, "step"),
        episode_seconds=_seconds(row, "episodes") or max(end for _, end in spans),
        phases=phases,
        questions=questions,
        updates_at_once=run.config.get("layout") == "separate",
    )


def _seconds(row: Record, timer: str) -> float:
    """Of a timer; 0 where it did not run or is no number."""
    value = row.get(f"timing_s/{timer}")
    is_number = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    return float(value) if is_number else 0.0  # type: ignore[arg-type]


def _questions(run: RunRecords, step: int) -> dict[int, QuestionSpans]:
    path = run.paths.rollouts / f"train_{step:06d}.jsonl"
    questions: dict[int, QuestionSpans] = defaultdict(QuestionSpans)
    for number, record in enumerate(run.training(step), 1):
        place = f"{path}, line {number}"
        if type(record["index"]) is not int:
            raise RecordsError(f"{place}: index must be an integer, got {record['index']!r:.80}; make the step again")
        suites = record["suites"]
        if not isinstance(suites, list) or not all(isinstance(suite, dict) for suite in suites):
            raise RecordsError(f"{place}: suites must be a list of objects, got {suites!r:.80}; make the step again")
        question = questions[record["index"]]
        question.code += _spans_of([record], "span", place)
        if record.get("shared_with") is None:  # the suites of another program are counted there
            question.test += _spans_of(suites, "span", place)
        question.judge += _spans_of([record], "judge_span", place)
        for key in _OTHER_JUDGE_SPANS:
            question.judge += _spans_of([record] if key in record else [], key, place)
    if not any(question.code or question.test or question.judge for question in questions.values()):
        raise RecordsError(f"{path} has no span that is not null, so there is no time to show; choose another --step")
    return dict(sorted(questions.items()))


def _spans_of(holders: Iterable[Record], key: str, place: str) -> list[Span]:
    """The spans that are not null."""
    found = []
    for holder in holders:
        if key not in holder:
            raise RecordsError(
                f"a timeline is made of the spans in a step's rollouts, and {place} has no {key!r}: a version before "
                "spans were recorded wrote it. Choose a later --step if the run went on since, or train again"
            )
        value = holder[key]
        if value is not None:
            found.append(_span(value, f"{place}: {key}"))
    return found


def _span(value: Any, place: str) -> Span:
    is_pair = isinstance(value, list) and len(value) == 2
    if not is_pair or not all(type(time) in (int, float) and math.isfinite(time) for time in value):
        raise RecordsError(
            f"{place} must be [start, end] in seconds or null, got {value!r:.80}; the file was changed: restore it"
        )
    return float(value[0]), float(value[1])
