"""``code-a1 eval code``: samples programs from a Code LLM and grades them. A repeated command resumes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reward_fns import extract_candidate
from sandbox import SandboxUnavailableError

from ...errors import InputError
from ...files import fingerprint
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.judge_loop import judge_into
from ...stats.estimates import pass_at_k
from .benchmarks.registry import Reading, loaded_tasks
from .benchmarks.tasks import CodeTask, Extracted
from .models.options import run_of, usual_prompt
from .models.prompt_styles import EVALPLUS, Asked, ask_code, check_style
from .models.source import StoredModel
from .options import CodeEvalOptions
from .results import LOST, PartsByQuestion, Results
from .scoring.evalplus_sanitizer import MAX_TOKENS, sanitizer_version

VERDICTS = "verdicts.jsonl"
REFERENCES = "the references"
TOO_LONG = "the prompt is too long for the model"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One response to a problem, or the problem's reference."""

    task: CodeTask
    number: int
    asked: Asked | None
    """The prompt. None if ``text`` is a reference, which is a whole program."""
    text: str | None
    """The response. None if the prompt is too long for the model."""
    is_truncated: bool = False
    """True if the response reached the token limit before its answer ended."""

    @property
    def key(self) -> str:
        """Key of the verdict, which changes with the response, so that no other response gets this verdict."""
        prefix = self.asked.prefix if self.asked else ""
        return f"{self.task.id} {self.number} {fingerprint(prefix, self.text or '')}"


Judged = tuple[Sample, Row]
"""A sample and its row in ``verdicts.jsonl``."""


def evaluate(options: CodeEvalOptions) -> tuple[Results | int, list[str]]:
    """Sample, judge and summarise. Responses, verdicts and results are written to ``options.output``.

    Returns:
        The results and a list. With ``--sample-only``, the number of stored responses replaces the results. With
        ``--references``, the list holds the references that do not pass, each with the reason.

    Raises:
        InputError, SandboxConfigError: an option, a file, the model or the sandbox cannot be used.
        OutageError, SandboxUnavailableError: the model or the sandbox is down; finished work is kept.
    """
    run = run_of(options.model)
    prompt = options.prompt or usual_prompt(run, "code")
    check_style(prompt)
    model = StoredModel.choose(
        options.model,
        policy="code",
        folder=options.output,
        seed=options.seed,
        stored_only=options.judge_only,
        own=REFERENCES if options.references else "",
    )
    reading = Reading(
        adapter=options.adapter,
        columns=options.columns,
        split=options.split,
        judges_references=options.references,
        sanitizes_all=prompt == EVALPLUS,
        num_workers=None if options.sample_only else options.workers,
    )
    with loaded_tasks(options.files, reading) as (all_tasks, counts):
        tasks = all_tasks[: options.limit]
        is_sanitized = [task.extraction is not None for task in tasks]
        if all(is_sanitized) and run is None and options.model.max_tokens is None:
            # EvalPlus's published figures come from responses of at most `MAX_TOKENS` tokens.
            model = replace(model, parameters=replace(model.parameters, max_response_tokens=MAX_TOKENS))
        judged_with = options.reading_settings()
        if options.references:
            samples = _references(tasks)
            judged_with["references"] = True
        else:
            samples = sampled(tasks, model, prompt=prompt, num_samples=options.samples)
        if options.sample_only:
            return len(samples), []
        if any(is_sanitized):
            judged_with["sanitizer"] = sanitizer_version()
        with JsonlStore(options.output / VERDICTS, settings=judged_with) as verdicts:
            judge(samples, verdicts, num_workers=options.workers)
            judged = [(sample, verdicts.row(sample.key)) for sample in samples]
    sampling = {"limit": options.limit, "prompt": prompt, "samples": options.samples, "seed": options.seed}
    settings = {**model.settings, **sampling, **judged_with}
    results = _summarise(judged, options.output, label=model.choice.label, settings=settings, counts=counts)
    failed = [row for _, row in judged if options.references and not row["passed"]]
    return results, [f"{row['question']}: {row['outage'] or row['reason']}" for row in failed]


def _references(tasks: Sequence[CodeTask]) -> list[Sample]:
    samples = [Sample(task=task, number=0, asked=None, text=task.reference) for task in tasks if task.reference]
    if not samples:
        raise InputError("--references: no problem of these files has a reference of its own; leave it out")
    return samples


def sampled(tasks: Sequence[CodeTask], model: StoredModel, *, prompt: str, num_samples: int) -> list[Sample]:
    """Return the responses task by task. Only responses that are not stored are sampled.

    Args:
        tasks: the problems.
        model: the Code LLM.
        prompt: style of the prompts, see ``ask_code``.
        num_samples: number of responses to each problem.

    Raises:
        InputError, OutageError: see ``sample_all``.
    """
    asked = [ask_code(prompt, task, can_prefill=not model.choice.endpoint) for task in tasks]
    prompts = [(task.id, ready.messages) for task, ready in zip(tasks, asked, strict=True)]
    responses = model.sample(prompts, num_samples=num_samples)
    samples = []
    for task, ready, row in zip(tasks, asked, responses, strict=True):
        for number, response in enumerate(row):
            text = None
            is_truncated = False
            if response:
                text = response.text
                is_full = len(response.token_ids) >= model.parameters.max_response_tokens
                # A response at the token limit may still hold a complete answer, followed by other text.
                is_truncated = is_full and ready.answer(text) == text
            samples.append(Sample(task=task, number=number, asked=ready, text=text, is_truncated=is_truncated))
    return samples


def _summarise(
    judged: Sequence[Judged], folder: Path, *, label: str, settings: dict[str, Any], counts: Counter[str]
) -> Results:
    """Write the results into ``folder``, and the samples for the benchmarks' own evaluators."""
    # A row has a reason but no verdict if the problem's reference confirms no test.
    untested = {row["question"] for _, row in judged if row["passed"] is None and row["reason"]}
    tested = [pair for pair in judged if pair[0].task.id not in untested]
    counts[f"samples {LOST}"] = sum(bool(row["outage"]) for _, row in judged)
    counts["problems left out because their reference confirms no test"] = len(untested)
    results = Results(
        kind="code",
        label=label,
        settings=settings,
        source_of={sample.task.id: sample.task.data_source for sample, _ in tested},
        parts=parts_of(tested, ks=sorted({1, 5, 10, settings["samples"]})),
        counts={**+counts, **_export(judged, folder)},
    )
    results.save(folder)
    return results


def _export(judged: Sequence[Judged], folder: Path) -> dict[str, str]:
    """Write samples for the benchmarks' own evaluators. Returns benchmark -> how to run its evaluator."""
    solutions_of = defaultdict(list)
    for sample, row in judged:
        task = sample.task
        if task.evaluator and not row["outage"]:
            solutions_of[task.evaluator].append((task.official_id, row["program"] or ""))
    commands = {}
    for evaluator, solutions in solutions_of.items():
        if command := evaluator.write(folder, solutions):
            commands[evaluator.benchmark] = f"judged by the benchmark's own evaluator, `{command}`"
    return commands


def judge(samples: Sequence[Sample], verdicts: JsonlStore, *, num_workers: int) -> None:
    """Grade the samples that have no row yet. After an outage, a repeated command grades the lost samples again."""
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
    """Make the rows of one problem's samples. ``passed`` stays None if only the benchmark's own evaluator judges."""
    rows = [_extracted_row(sample) for sample in samples]
    grading = samples[0].task.grading
    if grading is None:
        return rows
    # Drop repeated programs but keep the order, so that equal programs are graded once.
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
    """Make the row of a sample before its program is graded."""
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
    """Extract the program of a sample by its benchmark's rule.

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


def parts_of(judged: Iterable[Judged], *, ks: Sequence[int]) -> PartsByQuestion:
    """Compute pass@k of each question, and the rates of extraction failures and of truncated responses.

    Samples that met an outage do not count. A question has no pass@k if fewer than k samples count.
    """
    pairs_of = defaultdict(list)
    for sample, row in judged:
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
