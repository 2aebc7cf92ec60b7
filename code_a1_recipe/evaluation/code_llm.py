"""``code-a1 eval code``: a Code LLM on problems with tests. Sampling and judging are apart, and both resumable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from reward_fns import ExtractionFailure, extract_candidate
from sandbox import DEFAULT_QUESTIONS_PER_WORKER, SandboxUnavailableError

from ..errors import InputError
from ..files import fingerprint
from ..jobs.jsonl_store import JsonlStore, Row
from ..jobs.judge_loop import judge_into
from ..stats.estimates import pass_at_k
from .benchmarks.registry import loaded_tasks
from .benchmarks.tasks import CodeTask
from .models.options import RunDefaults
from .models.prompt_styles import Asked, ask_code, check_style
from .models.source import ModelChoice, choose_model, sample_stored
from .options import CodeEvalOptions
from .results import LOST, Results

VERDICTS = "verdicts.jsonl"
REFERENCES = "the references"
TOO_LONG = "the prompt is too long for the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One response to one problem."""

    task: CodeTask
    number: int
    program: str | None
    extraction_failure: str

    @property
    def key(self) -> str:
        """Changes with the program, so that a verdict is never another response's."""
        return f"{self.task.id} {self.number} {fingerprint(self.program or '')}"


def evaluate(options: CodeEvalOptions) -> tuple[Results, list[str]]:
    """Sample, judge, summarise; responses, verdicts and results are in ``options.output``.

    Returns:
        The results, and of ``--references`` what does not pass, with the reasons.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; what is done is kept.
    """
    options, model = _checked(options)
    judged_with = options.judged_with()
    with loaded_tasks(options) as (tasks, counts):
        samples = _sampled(tasks, model, options)
        with JsonlStore(options.output / VERDICTS, settings=judged_with, key="key") as verdicts:
            judge(samples, verdicts, num_workers=options.workers)
            rows = [verdicts.row(sample.key) for sample in samples]
    parts, found = summarise(samples, rows, ks=options.ks)
    results = Results(
        kind="code",
        label=model.label if model else REFERENCES,
        settings={
            "model": model.fingerprint if model else REFERENCES,
            **({"sampling": asdict(options.model.sampling("code"))} if model else {}),
            **judged_with,
            **{name: getattr(options, name) for name in ("limit", "prompt", "samples", "seed")},
            "k": options.ks,
        },
        source_of={one.task.id: one.task.data_source for one in samples if one.task.id not in _untested(rows)},
        parts=parts,
        counts={**counts, **found},
    )
    results.save(options.output)
    failed = [f"{row['question']}: {row['outage'] or row['reason']}" for row in rows if not row["passed"]]
    return results, failed if options.references else []


def sample_only(options: CodeEvalOptions) -> int:
    """Store all responses, without a sandbox; returns how many there are. Raises as :func:`evaluate`."""
    options, model = _checked(options)
    with loaded_tasks(options) as (tasks, _):
        return len(_sampled(tasks, model, options))


def _checked(options: CodeEvalOptions) -> tuple[CodeEvalOptions, ModelChoice | None]:
    """Options with the prompt filled in, and the model; nothing is loaded yet."""
    options = replace(options, prompt=options.prompt or RunDefaults.of(options.model).prompt("code"))
    check_style(str(options.prompt))
    if options.references:
        return options, None
    model = choose_model(options.model, policy="code", work_folder=options.output, stored_only=options.judge_only)
    return options, model


def _sampled(tasks: Sequence[CodeTask], model: ModelChoice | None, options: CodeEvalOptions) -> list[Sample]:
    """The model's responses as programs, sampled where they are not stored; without a model the references.

    Raises:
        InputError: no problem has a reference.
    """
    if model is None:
        found = [_sample(task, 0, task.reference) for task in tasks if task.reference]
        if not found:
            raise InputError("--references: no problem of these files has a reference of its own; leave it out")
        return found
    asked = [
        ask_code(
            str(options.prompt),
            prompt=task.prompt,
            entry_points=task.entry_points,
            own=task.own_chat,
            can_prefill=not model.endpoint,
        )
        for task in tasks
    ]
    prompts = [(task.id, one.messages) for task, one in zip(tasks, asked, strict=True)]
    return samples_of(tasks, asked, sample_stored(model, prompts, options, policy="code", num_samples=options.samples))


def samples_of(
    tasks: Sequence[CodeTask], asked: Sequence[Asked], texts: Sequence[Sequence[str | None]]
) -> list[Sample]:
    """All responses as programs; ``texts[task][sample]`` is None where the prompt is too long for the model."""
    return [
        _sample(
            task,
            number,
            ExtractionFailure(reason=TOO_LONG) if text is None else extract_candidate(one.program_text(text)),
        )
        for task, one, row in zip(tasks, asked, texts, strict=True)
        for number, text in enumerate(row)
    ]


def _sample(task: CodeTask, number: int, found: str | ExtractionFailure) -> Sample:
    if isinstance(found, ExtractionFailure):
        return Sample(task=task, number=number, program=None, extraction_failure=found.reason)
    return Sample(task=task, number=number, program=found, extraction_failure="")


def judge(samples: Sequence[Sample], verdicts: JsonlStore, *, num_workers: int) -> None:
    """Grade what is not there yet; equal programs of a problem once. An outage is a row that says so."""
    left: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.key not in verdicts:
            left[sample.task.id].append(sample)
    judge_into(
        verdicts,
        list(left.values()),
        _grade,
        num_threads=num_workers * DEFAULT_QUESTIONS_PER_WORKER,
        total=len(verdicts) + sum(map(len, left.values())),
        unit="program",
    )


def _grade(samples: Sequence[Sample]) -> list[Row]:
    """Rows of the samples of one problem."""
    programs = list(dict.fromkeys(sample.program for sample in samples if sample.program is not None))
    verdicts = dict(zip(programs, samples[0].task.grading.grade(programs) if programs else [], strict=True))
    rows = []
    for sample in samples:
        row: Row = {"key": sample.key, "question": sample.task.id, "sample": sample.number, "outage": ""}
        if sample.program is None:
            row |= {"passed": False, "reason": f"no program: {sample.extraction_failure}"}
        elif isinstance(verdict := verdicts[sample.program], SandboxUnavailableError):
            row |= {"passed": None, "reason": "", "outage": str(verdict)}
        else:
            row |= {"passed": verdict.passed if verdict.is_tested else None, "reason": verdict.reason}
        rows.append(row)
    return rows


def _untested(rows: Sequence[Row]) -> set[str]:
    """Problems no test of which the reference confirms."""
    return {row["question"] for row in rows if row["passed"] is None and not row["outage"]}


def summarise(
    samples: Sequence[Sample], rows: Sequence[Row], *, ks: Sequence[int]
) -> tuple[dict[str, dict[str, tuple[float, float]]], dict[str, int]]:
    """pass@k by question, and counts of what was lost.

    Samples lost to an outage are left out, and with fewer than k left the question.
    """
    untested = _untested(rows)
    number: dict[str, int] = defaultdict(int)
    correct: dict[str, int] = defaultdict(int)
    for row in rows:
        if not row["outage"] and row["question"] not in untested:
            number[row["question"]] += 1
            correct[row["question"]] += bool(row["passed"])
    parts = {
        f"pass@{k}": {name: (pass_at_k(total, correct[name], k), 1.0) for name, total in number.items() if total >= k}
        for k in ks
    }
    totals = {
        "samples without a program": sum(sample.program is None for sample in samples),
        f"samples {LOST}": sum(bool(row["outage"]) for row in rows),
        "problems left out because their reference confirms no test": len(untested),
    }
    return parts, {name: value for name, value in totals.items() if value}
