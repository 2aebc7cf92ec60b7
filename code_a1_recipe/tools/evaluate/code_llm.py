"""``code-a1 eval code``: samples programs from a Code LLM and grades them. Both halves are resumable."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from reward_fns import extract_candidate
from sandbox import SandboxUnavailableError

from ...errors import InputError
from ...files import file_fingerprint, fingerprint
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.judge_loop import judge_into
from ...stats.estimates import pass_at_k
from .benchmarks.registry import loaded_tasks
from .benchmarks.tasks import CodeTask, Extracted
from .models.options import run_of, usual_prompt
from .models.prompt_styles import Asked, ask_code, check_style
from .models.source import ModelChoice, choose_model, sample_stored
from .options import CodeEvalOptions, SamplingEvalOptions
from .results import LOST, PartsByQuestion, Results
from .scoring.evalplus_sanitizer import MAX_TOKENS, sanitizer_version

VERDICTS = "verdicts.jsonl"
REFERENCES = "the references"
TOO_LONG = "the prompt is too long for the model"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One response to a problem, or the reference that the file has for it."""

    task: CodeTask
    number: int
    asked: Asked | None
    """The prompt, or None where ``text`` is a reference, a whole program."""
    text: str | None
    """The response, or None where the prompt is too long for the model."""
    is_truncated: bool = False
    """True if the response reached the token limit before its answer was over."""

    @property
    def key(self) -> str:
        """Key of the verdict. It changes with the program, so no verdict is taken for another response's."""
        prefix = self.asked.prefix if self.asked else ""
        return f"{self.task.id} {self.number} {fingerprint(prefix, self.text or '')}"


def evaluate(options: CodeEvalOptions) -> tuple[Results | int, list[str]]:
    """Sample, judge and summarise. Responses, verdicts and results are written to ``options.output``.

    Returns:
        The results, or with ``--sample-only`` the number of stored responses; and with ``--references`` the references
        that do not pass, with the reasons.

    Raises:
        InputError, SandboxConfigError: an option, a file, the model or the sandbox cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; finished work is kept.
    """
    run = run_of(options.model)
    options = replace(options, prompt=options.prompt or usual_prompt(run, "code"))
    check_style(options.prompt)
    model = ModelChoice(label=REFERENCES, fingerprint=REFERENCES)
    if not options.references:
        model = choose_model(options.model, policy="code", work_folder=options.output, stored_only=options.judge_only)
    with loaded_tasks(options) as (tasks, counts):
        is_sanitized = [task.extraction is not None for task in tasks]
        if all(is_sanitized) and run is None and options.model.max_tokens is None:
            # Published figures of EvalPlus are of responses of this length.
            options = replace(options, model=replace(options.model, max_tokens=MAX_TOKENS))
        samples = _references(tasks) if options.references else sampled(tasks, model, options)
        if options.sample_only:
            return len(samples), []
        judged_with = reading_settings(options)
        if options.references:
            judged_with["references"] = True
        if any(is_sanitized):
            judged_with["sanitizer"] = sanitizer_version()
        with JsonlStore(options.output / VERDICTS, settings=judged_with) as verdicts:
            judge(samples, verdicts, num_workers=options.workers)
            rows = [verdicts.row(sample.key) for sample in samples]
    # A row has a reason but no verdict where the reference confirms no test of the problem.
    untested = {row["question"] for row in rows if row["passed"] is None and row["reason"]}
    tested = [pair for pair in zip(samples, rows, strict=True) if pair[0].task.id not in untested]
    counts[f"samples {LOST}"] = sum(bool(row["outage"]) for row in rows)
    counts["problems left out because their reference confirms no test"] = len(untested)
    results = Results(
        kind="code",
        label=model.label,
        settings={
            "model": model.fingerprint,
            "sampling": asdict(options.model.sampling("code")),
            **{name: getattr(options, name) for name in ("limit", "prompt", "samples", "seed")},
            **judged_with,
        },
        source_of={sample.task.id: sample.task.data_source for sample, _ in tested},
        parts=parts_of(tested, ks=sorted({1, 5, 10, options.samples})),
        counts={**+counts, **_export(samples, rows, options.output)},
    )
    results.save(options.output)
    failed = [row for row in rows if options.references and not row["passed"]]
    return results, [f"{row['question']}: {row['outage'] or row['reason']}" for row in failed]


def reading_settings(options: SamplingEvalOptions) -> Row:
    """Describe the files and how they are read. These settings belong to every verdict.

    Raises:
        InputError: a file does not exist.
    """
    return {
        "files": list(map(file_fingerprint, options.files)),
        "adapter": options.adapter,
        "columns": dict(sorted(options.columns.items())),
    }


def _references(tasks: Sequence[CodeTask]) -> list[Sample]:
    samples = [Sample(task=task, number=0, asked=None, text=task.reference) for task in tasks if task.reference]
    if not samples:
        raise InputError("--references: no problem of these files has a reference of its own; leave it out")
    return samples


def sampled(tasks: Sequence[CodeTask], model: ModelChoice, options: CodeEvalOptions) -> list[Sample]:
    """Return the responses to ``options.prompt``, task by task. Only responses that are not stored are sampled."""
    asked = [ask_code(options.prompt, task, can_prefill=not model.endpoint) for task in tasks]
    prompts = [(task.id, prompt.messages) for task, prompt in zip(tasks, asked, strict=True)]
    parameters = options.model.sampling("code")
    responses = sample_stored(
        model, prompts, options, policy="code", num_samples=options.samples, parameters=parameters
    )
    samples = []
    for task, prompt, row in zip(tasks, asked, responses, strict=True):
        for number, response in enumerate(row):
            text, is_truncated = None, False
            if response:
                text = response.text
                is_full = len(response.token_ids) >= parameters.max_response_tokens
                # A full response may still hold a whole answer, with more text behind the answer's end.
                is_truncated = is_full and prompt.answer(text) == text
            samples.append(Sample(task=task, number=number, asked=prompt, text=text, is_truncated=is_truncated))
    return samples


def _export(samples: Sequence[Sample], rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """Write the samples of benchmarks that have their own evaluators; returns the commands that run these."""
    solutions_of = defaultdict(list)
    for sample, row in zip(samples, rows, strict=True):
        task = sample.task
        if task.evaluator and not row["outage"]:
            solutions_of[task.evaluator].append((task.official_id, row["program"] or ""))
    commands = {}
    for evaluator, solutions in solutions_of.items():
        if command := evaluator.write(folder, solutions):
            commands[evaluator.benchmark] = f"judged by the benchmark's own evaluator, `{command}`"
    return commands


def judge(samples: Sequence[Sample], verdicts: JsonlStore, *, num_workers: int) -> None:
    """Grade the samples that have no row yet. An outage becomes a row too, which a repeated command replaces."""
    left = defaultdict(list)
    for sample in samples:
        if sample.key not in verdicts:
            left[sample.task.id].append(sample)
    judge_into(
        verdicts,
        list(left.values()),
        _grade,
        num_workers=num_workers,
        total=len(verdicts) + sum(map(len, left.values())),
        unit="program",
    )


def _grade(samples: Sequence[Sample]) -> list[Row]:
    """Make the rows of one problem's samples. ``passed`` is None where the benchmark's own evaluator judges."""
    rows = [_extracted_row(sample) for sample in samples]
    grading = samples[0].task.grading
    if grading is None:
        return rows
    # Equal programs are graded once.
    programs = list({row["program"]: None for row in rows if row["program"] is not None})
    verdicts = dict(zip(programs, grading.grade(programs), strict=True))
    for row in rows:
        verdict = verdicts.get(row["program"])
        if isinstance(verdict, SandboxUnavailableError):
            row["outage"] = str(verdict)
        elif verdict is not None:
            row |= {"passed": verdict.passed, "reason": verdict.reason}
        elif not row["outage"]:
            row |= {"passed": False, "reason": f"no program: {row['extraction_failure']}"}
    return rows


def _extracted_row(sample: Sample) -> Row:
    """Make the row of a sample whose program is not graded yet."""
    try:
        extracted, outage = _extracted(sample), ""
    except SandboxUnavailableError as error:
        extracted, outage = Extracted(), str(error)
    return {
        "key": sample.key,
        "question": sample.task.id,
        "sample": sample.number,
        "outage": outage,
        "passed": None,
        "reason": "",
        "program": extracted.program,
        "extraction_failure": extracted.failure,
    }


def _extracted(sample: Sample) -> Extracted:
    """Extract the program of a sample by the rule of its benchmark.

    Raises:
        SandboxUnavailableError: EvalPlus's sanitizer could not be run.
    """
    task, text = sample.task, sample.text
    if text is None:
        return Extracted(failure=TOO_LONG)
    if sample.asked is None:
        return Extracted(program=text)
    if task.extraction:
        return task.extraction(sample.asked.answer(text))
    text = sample.asked.program_text(text)
    if task.evaluator and task.evaluator.extract:
        program = task.evaluator.extract(text)
        return Extracted(program=program, failure="" if program else "no_code")
    candidate = extract_candidate(text, reads_input=task.reads_input, names=task.asked_names)
    if isinstance(candidate, str):
        return Extracted(program=candidate)
    return Extracted(failure=candidate.reason)


def parts_of(tested: Iterable[tuple[Sample, Row]], *, ks: Sequence[int]) -> PartsByQuestion:
    """Compute pass@k by question, and for responses the rates of extraction failures and of truncated ones.

    Samples that met an outage are left out. A question with fewer than k other samples has no pass@k.
    """
    pairs_of = defaultdict(list)
    for sample, row in tested:
        if not row["outage"]:
            pairs_of[row["question"]].append((sample, row))
    parts: PartsByQuestion = defaultdict(dict)
    for question, pairs in pairs_of.items():
        number = len(pairs)
        first, _ = pairs[0]
        if first.task.grading:
            num_passed = sum(row["passed"] for _, row in pairs)
            for k in ks:
                if k <= number:
                    parts[f"pass@{k}"][question] = (pass_at_k(number, num_passed, k), 1.0)
        if first.asked:
            num_failed = sum(bool(row["extraction_failure"]) for _, row in pairs)
            num_truncated = sum(sample.is_truncated for sample, _ in pairs)
            parts["extraction_failure_rate"][question] = (num_failed, number)
            parts["truncated_rate"][question] = (num_truncated, number)
    return dict(parts)
