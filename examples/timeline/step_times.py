"""Where the seconds of one training step went, read from a run's rollouts and metrics."""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from code_a1_recipe.algorithm.spans import Span
from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.console import PHASES, UPDATES
from code_a1_recipe.runs.reader import RunRecords

from .busy_spans import BusySeconds, busy_seconds, mean_running


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

    @property
    def by_activity(self) -> tuple[list[Span], list[Span], list[Span]]:
        """Of the Code LLM, the Test LLM and the judge."""
        return self.code, self.test, self.judge


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
    def spans(self) -> QuestionSpans:
        """Those of all questions together."""
        together = QuestionSpans()
        for question in self.questions.values():
            for all_spans, spans in zip(together.by_activity, question.by_activity, strict=True):
                all_spans.extend(spans)
        return together

    @property
    def busy(self) -> BusySeconds:
        """The episodes' seconds by who worked."""
        code, test, judge = self.spans.by_activity
        return busy_seconds(code=code, test=test, judge=judge, start=0.0, end=self.episode_seconds)

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


def ranges(steps: Sequence[int]) -> str:
    """``1 to 3, 7``: ascending steps in few words; ``none`` of no step."""
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs) or "none"


def median_step_seconds(run: RunRecords) -> tuple[float, int]:
    """Median seconds of a step, and of how many steps: all but the first, which starts engines and caches.

    A run of one step has only that one.

    Raises:
        InputError: no step has ``timing_s/step``.
    """
    rows = sorted(run.metrics, key=lambda row: int(row["step"]))
    found = [seconds for row in rows if (seconds := _seconds(row, "step")) > 0]
    if not found:
        raise InputError(f"{run.paths.metrics} has no step with timing_s/step; let the run finish a step first")
    counted = found[1:] or found
    return statistics.median(counted), len(counted)


def read_step(run: RunRecords, step: int) -> StepTimes:
    """The times of one of ``steps_with_times``.

    Raises:
        InputError: the step's rollouts have no spans, or some that cannot be read.
    """
    row = next(row for row in reversed(run.metrics) if row["step"] == step and _seconds(row, "step") > 0)
    questions = _questions(run, step)
    ends = [end for one in questions.values() for spans in one.by_activity for _, end in spans]
    phases = {name: seconds for name in PHASES if (seconds := _seconds(row, name)) > 0}
    return StepTimes(
        step=step,
        seconds=_seconds(row, "step"),
        episode_seconds=_seconds(row, "episodes") or max(ends),
        phases=phases,
        questions=questions,
        updates_at_once=run.config.get("layout") == "separate",
    )


def _seconds(row: Mapping[str, Any], timer: str) -> float:
    """Seconds of a timer; 0 where it did not run."""
    return float(row.get(f"timing_s/{timer}") or 0.0)


def _questions(run: RunRecords, step: int) -> dict[int, QuestionSpans]:
    questions: dict[int, QuestionSpans] = defaultdict(QuestionSpans)
    for record in run.training(step):
        question = questions[record.index]
        question.code += _known(record.span)
        if record.duplicate_of is None:  # the suites of another program are counted there
            question.test += _known(*(suite.span for suite in record.suites))
        question.judge += _known(record.judge_span, record.hidden_span, record.pooled_span)
    if not any(any(question.by_activity) for question in questions.values()):
        path = run.paths.rollout_file(step, validation=False)
        raise InputError(f"{path} has no span that is not null, so there is no time to show; choose another --step")
    return dict(sorted(questions.items()))


def _known(*spans: Span | None) -> list[Span]:
    return [span for span in spans if span is not None]
