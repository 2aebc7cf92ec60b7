"""``code-a1 eval code``: a Code LLM on problems with tests. Sampling and judging are apart, and both resumable."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from reward_fns import ExtractionFailure, extract_candidate
from sandbox import DEFAULT_QUESTIONS_PER_WORKER, SandboxUnavailableError, syntax_key

from ..algorithm.episode_types import Response
from ..algorithm.sampling import SamplingParameters
from ..errors import InputError
from ..files import fingerprint, write_whole
from ..jobs.jsonl_store import JsonlStore, Row
from ..jobs.judge_loop import judge_into
from ..stats.estimates import pass_at_k
from .benchmarks.registry import loaded_tasks
from .benchmarks.tasks import CodeTask
from .models.options import run_of, usual_prompt
from .models.prompt_styles import Asked, ask_code, check_style
from .models.source import ModelChoice, choose_model, sample_stored
from .options import CodeEvalOptions
from .results import LOST, Pair, Results
from .scoring.evalplus_grading import export_line
from .scoring.evalplus_sanitizer import MAX_TOKENS, sanitizer_version

VERDICTS = "verdicts.jsonl"
REFERENCES = "the references"
TOO_LONG = "the prompt is too long for the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One response to one problem, or the file's own reference."""

    task: CodeTask
    number: int
    asked: Asked | None
    """None: ``text`` is a reference, a program as it stands."""
    text: str | None
    """None: the prompt is too long for the model."""
    is_truncated: bool = False
    """It was cut at the limit of tokens, before its answer was over."""

    @property
    def key(self) -> str:
        """Changes with the program, so that a verdict is never another response's."""
        return f"{self.task.id} {self.number} {fingerprint(self.asked.prefix if self.asked else '', self.text or '')}"


def evaluate(options: CodeEvalOptions) -> tuple[Results | int, list[str]]:
    """Sample, judge, summarise; responses, verdicts and results are in ``options.output``.

    Returns:
        The results, of ``--sample-only`` the number of stored responses; and of ``--references`` what does not pass,
        with the reasons.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; what is done is kept.
    """
    options = replace(options, prompt=options.prompt or usual_prompt(run_of(options.model), "code"))
    check_style(str(options.prompt))
    model = None
    if not options.references:
        model = choose_model(options.model, policy="code", work_folder=options.output, stored_only=options.judge_only)
    with loaded_tasks(options) as (tasks, counts):
        options = _with_lengths(options, tasks)
        judged_with = options.judged_with()
        samples = _sampled(tasks, model, options)
        if options.sample_only:
            return len(samples), []
        if any(task.extraction for task in tasks):
            judged_with["sanitizer"] = sanitizer_version()
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
    if options.export_evalplus:
        judged = [(sample, row) for sample, row in zip(samples, rows, strict=True) if not row["outage"]]
        write_whole(options.export_evalplus, "".join(export_line(one.task, row["program"]) for one, row in judged))
    failed = [f"{row['question']}: {row['outage'] or row['reason']}" for row in rows if not row["passed"]]
    return results, failed if options.references else []


def _with_lengths(options: CodeEvalOptions, tasks: Sequence[CodeTask]) -> CodeEvalOptions:
    """Options with EvalPlus's length of a response, where its sanitizer reads all and nobody says another."""
    is_stated = options.model.max_tokens is not None or run_of(options.model) is not None
    if is_stated or not all(task.extraction for task in tasks):
        return options
    return replace(options, model=replace(options.model, max_tokens=MAX_TOKENS))


def _sampled(tasks: Sequence[CodeTask], model: ModelChoice | None, options: CodeEvalOptions) -> list[Sample]:
    """The model's responses, sampled where they are not stored; without a model the references.

    Raises:
        InputError: no problem has a reference.
    """
    if model is None:
        found = [Sample(task=task, number=0, asked=None, text=task.reference) for task in tasks if task.reference]
        if not found:
            raise InputError("--references: no problem of these files has a reference of its own; leave it out")
        return found
    asked = [
        ask_code(
            str(options.prompt),
            prompt=task.prompt,
            entry_points=task.entry_points,
            reads_input=task.reads_input,
            own=task.own_chat,
            can_prefill=not model.endpoint,
        )
        for task in tasks
    ]
    prompts = [(task.id, one.messages) for task, one in zip(tasks, asked, strict=True)]
    responses = sample_stored(model, prompts, options, policy="code", num_samples=options.samples)
    return samples_of(tasks, asked, responses, parameters=options.model.sampling("code"))


def samples_of(
    tasks: Sequence[CodeTask],
    asked: Sequence[Asked],
    responses: Sequence[Sequence[Response | None]],
    *,
    parameters: SamplingParameters,
) -> list[Sample]:
    """All responses; ``responses[task][sample]`` is None where the prompt is too long for the model."""
    samples = []
    for task, one, row in zip(tasks, asked, responses, strict=True):
        for number, response in enumerate(row):
            text = response.text if response else None
            is_full = response is not None and len(response.token_ids) >= parameters.max_response_tokens
            is_cut = is_full and one.answer(text or "") == text
            samples.append(Sample(task=task, number=number, asked=one, text=text, is_truncated=is_cut))
    return samples


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
    rows = [_extracted_row(sample) for sample in samples]
    programs = list(dict.fromkeys(row["program"] for row in rows if row["program"] is not None))
    verdicts = dict(zip(programs, samples[0].task.grading.grade(programs) if programs else [], strict=True))
    for row in rows:
        verdict = verdicts.get(row["program"])
        if isinstance(verdict, SandboxUnavailableError):
            row["outage"] = str(verdict)
        elif verdict is not None:
            row |= {"passed": verdict.passed if verdict.is_tested else None, "reason": verdict.reason}
        elif not row["outage"]:
            row |= {"passed": False, "reason": f"no program: {row['extraction_failure']}"}
    return rows


def _extracted_row(sample: Sample) -> Row:
    """The row of a sample before its program is graded: the program, and whether the sanitizer took another one."""
    row: Row = {"key": sample.key, "question": sample.task.id, "sample": sample.number, "outage": "", "passed": None}
    row |= {"reason": "", "is_changed": False, "program": None, "extraction_failure": ""}
    if sample.text is None:
        return {**row, "extraction_failure": TOO_LONG}
    if sample.asked is None:
        return {**row, "program": sample.text}
    usual = extract_candidate(sample.asked.program_text(sample.text), reads_input=sample.task.reads_input)
    if sample.task.extraction is None:
        if isinstance(usual, ExtractionFailure):
            return {**row, "extraction_failure": usual.reason}
        return {**row, "program": usual}
    try:
        found = sample.task.extraction(sample.asked.answer(sample.text))
    except SandboxUnavailableError as error:
        return {**row, "outage": str(error)}
    is_same = isinstance(usual, str) and syntax_key(usual) == syntax_key(found.program or "")
    return {**row, "program": found.program, "extraction_failure": found.failure, "is_changed": not is_same}


def _untested(rows: Sequence[Row]) -> set[str]:
    """Problems no test of which the reference confirms."""
    return {row["question"] for row in rows if row["passed"] is None and not row["outage"]}


def summarise(
    samples: Sequence[Sample], rows: Sequence[Row], *, ks: Sequence[int]
) -> tuple[dict[str, dict[str, Pair]], dict[str, int]]:
    """pass@k by question, of responses also how many were lost on the way to a program; and counts.

    Samples lost to an outage are left out, and with fewer than k left the question.
    """
    untested = _untested(rows)
    flags: dict[str, list[dict[str, bool]]] = defaultdict(list)
    for sample, row in zip(samples, rows, strict=True):
        if not row["outage"] and row["question"] not in untested:
            lost = {"extraction_failure_rate": bool(row["extraction_failure"]), "truncated_rate": sample.is_truncated}
            changed = {"sanitizer_change_rate": row["is_changed"]} if sample.task.extraction else {}
            flags[row["question"]].append({"": bool(row["passed"]), **((lost | changed) if sample.asked else {})})
    parts: dict[str, dict[str, Pair]] = {f"pass@{k}": {} for k in ks}
    for name, found in flags.items():
        sums = {metric: float(sum(one[metric] for one in found)) for metric in found[0]}
        num_passed = int(sums.pop(""))
        for k in ks:
            if len(found) >= k:
                parts[f"pass@{k}"][name] = (pass_at_k(len(found), num_passed, k), 1.0)
        for metric, total in sums.items():
            parts.setdefault(metric, {})[name] = (total, float(len(found)))
    totals = {
        f"samples {LOST}": sum(bool(row["outage"]) for row in rows),
        "problems left out because their reference confirms no test": len(untested),
    }
    return parts, {name: value for name, value in totals.items() if value}
