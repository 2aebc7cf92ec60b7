"""``code-a1 eval code``: a Code LLM on problems with tests. Sampling and judging are apart, and both resumable."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reward_fns import Refusal, extract_candidate
from sandbox import SandboxUnavailableError
from sandbox.judge_processes import DEFAULT_QUESTIONS_PER_WORKER

from ..adapters import ADAPTERS
from ..argument_types import column, positive
from ..episode import sampling_seed
from ..score_file import ScoreFile
from .benchmarks import add_benchmark_arguments, changed_rules, loaded_tasks
from .code_tasks import CodeTask
from .estimates import pass_at_k
from .evalplus_tests import EvalPlusFormatError
from .exit_status import DONE, OUTAGES_LEFT, status_of
from .models import ModelChoice, add_model_arguments, choose_model, has_model, sample_all, sampling_of
from .prompt_styles import Asked, ask_code, check_style
from .response_store import RESPONSES, ResponseStore
from .results import Results, results_table
from .run_defaults import fill_defaults

FAILED = 1
VERDICTS = "verdicts.jsonl"
REFERENCES = "the references"
TOO_LONG = "the prompt is too long for the model"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One response to one problem."""

    task: CodeTask
    number: int
    program: str | None
    refusal: str

    @property
    def key(self) -> str:
        """Changes with the program, so that a verdict is never another response's."""
        digest = hashlib.sha256((self.program or "").encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{self.task.id} {self.number} {digest}"


class EvalInputError(ValueError):
    """The command line asks for something impossible; shown to the user as it is."""


def samples_of(
    tasks: Sequence[CodeTask], model: ModelChoice, asked: Sequence[Asked], store: ResponseStore, options: Any
) -> list[Sample]:
    """``options.samples`` responses to each problem, sampled where they are not stored, as programs."""
    seeds = [[sampling_seed(options.seed, "code", task.id, n) for n in range(options.samples)] for task in tasks]
    texts = sample_all(
        model,
        [one.messages for one in asked],
        seeds=seeds,
        parameters=sampling_of(options),
        store=store,
        sessions=[task.id for task in tasks],
        stored_only=options.judge_only,
    )
    samples = []
    for task, one, row in zip(tasks, asked, texts, strict=True):
        for number, text in enumerate(row):
            found = Refusal(reason=TOO_LONG) if text is None else extract_candidate(one.program_text(text))
            program, refusal = (None, found.reason) if isinstance(found, Refusal) else (found, "")
            samples.append(Sample(task=task, number=number, program=program, refusal=refusal))
    return samples


def judge(samples: Sequence[Sample], output: ScoreFile, *, num_workers: int) -> None:
    """Grade what is not there yet; equal programs of a problem once. An outage is a row that says so."""
    left: dict[str, dict[str | None, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if sample.key not in output:
            left[sample.task.id][sample.program].append(sample)
    number = sum(len(group) for groups in left.values() for group in groups.values())
    if not number:
        return
    threads = ThreadPoolExecutor(num_workers * DEFAULT_QUESTIONS_PER_WORKER, thread_name_prefix="grade")
    try:
        with tqdm(total=len(samples), initial=len(samples) - number, unit="program", desc="judge", disable=None) as bar:
            futures = [threads.submit(_grade, groups) for groups in left.values()]
            for future in as_completed(futures):
                for row in future.result():
                    output.append(row)
                    bar.update()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _grade(groups: dict[str | None, list[Sample]]) -> list[Row]:
    programs = [program for program in groups if program is not None]
    grading = next(iter(groups.values()))[0].task.grading
    graded = dict(zip(programs, grading.grade(programs) if programs else [], strict=True))
    rows = []
    for program, samples in groups.items():
        verdict = graded[program] if program is not None else None
        for sample in samples:
            row: Row = {"key": sample.key, "question": sample.task.id, "sample": sample.number, "outage": ""}
            if isinstance(verdict, SandboxUnavailableError):
                row |= {"passed": None, "reason": "", "outage": str(verdict)}
            elif verdict is None:
                row |= {"passed": False, "reason": f"no program: {sample.refusal}"}
            else:
                row |= {"passed": verdict.passed if verdict.is_tested else None, "reason": verdict.reason}
            rows.append(row)
    return rows


def summarise(
    samples: Sequence[Sample], output: ScoreFile, *, label: str, settings: dict[str, Any], counts: dict[str, Any]
) -> Results:
    """pass@k by question for each k asked for. Samples lost to an outage are left out, and with too few left the
    question."""
    right: dict[str, int] = defaultdict(int)
    number: dict[str, int] = defaultdict(int)
    untested: set[str] = set()
    num_outages = num_refused = 0
    for sample in samples:
        row = output.row(sample.key)
        num_outages += bool(row["outage"])
        num_refused += sample.program is None
        if row["passed"] is None and not row["outage"]:
            untested.add(sample.task.id)
        if not row["outage"]:
            number[sample.task.id] += 1
            right[sample.task.id] += bool(row["passed"])
    parts = {
        f"pass@{k}": {
            question: (pass_at_k(total, right[question], k), 1.0)
            for question, total in number.items()
            if total >= k and question not in untested
        }
        for k in settings["k"]
    }
    totals = {
        "samples without a program": num_refused,
        "samples lost to an outage": num_outages,
        "problems left out because their reference confirms no test": len(untested),
    }
    return Results(
        kind="code",
        label=label,
        settings=settings,
        source_of={one.task.id: one.task.data_source for one in samples if one.task.id not in untested},
        parts=parts,
        counts={**counts, **{name: value for name, value in totals.items() if value}},
    )


def reference_samples(tasks: Sequence[CodeTask]) -> list[Sample]:
    """Each problem's reference in place of a response; problems without one are not among them.

    Raises:
        EvalInputError: there is none at all.
    """
    found = [Sample(task=task, number=0, program=task.reference, refusal="") for task in tasks if task.reference]
    if not found:
        raise EvalInputError("--references: no problem of these files has a reference of its own; leave it out")
    return found


def settings_of(options: argparse.Namespace, model: ModelChoice | None, judged_with: dict[str, Any]) -> dict[str, Any]:
    """What the results were made with."""
    sampled = {"model": model.fingerprint, "sampling": asdict(sampling_of(options))} if model else {"model": REFERENCES}
    return {
        **sampled,
        **judged_with,
        "limit": options.limit,
        "prompt": options.prompt,
        "samples": options.samples,
        "seed": options.seed,
        "k": sorted(options.k) or _usual_k(options.samples),
    }


def check_options(options: argparse.Namespace) -> None:
    """Refuse what contradicts itself, before anything is loaded.

    Raises:
        EvalInputError, PromptError: rule, value and cure.
    """
    if too_many := [k for k in options.k if k > options.samples]:
        raise EvalInputError(f"--k {too_many[0]} needs at least as many --samples, got {options.samples}")
    if options.references and has_model(options):
        raise EvalInputError("--references judges the files' own references; leave the model out")
    if options.references and (options.samples > 1 or options.sample_only):
        raise EvalInputError("--references judges one program a problem; leave --samples and --sample-only out")
    check_style(options.prompt)


def sampled(tasks: Sequence[CodeTask], model: ModelChoice | None, options: argparse.Namespace) -> list[Sample]:
    """What is judged: the model's responses, or the references."""
    if model is None:
        return reference_samples(tasks)
    can_prefill = not model.endpoint
    asked = [ask_code(options.prompt, prompt=task.prompt, own=task.own_chat, can_prefill=can_prefill) for task in tasks]
    with ResponseStore(options.output / RESPONSES) as store:
        return samples_of(tasks, model, asked, store, options)


def run(options: argparse.Namespace) -> int:
    """Sample, judge, summarise; returns the exit status."""
    fill_defaults(options, policies={"": "code"})
    check_options(options)
    model = None
    if not options.references:
        model = choose_model(options, policy="code", work_folder=options.output, stored_only=options.judge_only)
    options.output.mkdir(parents=True, exist_ok=True)
    judged_with = {**read_with(options), **changed_rules(options)}
    with loaded_tasks(options) as (tasks, counts):
        samples = sampled(tasks, model, options)
        if options.sample_only:
            sys.stdout.write(
                f"{len(samples)} responses in {options.output / RESPONSES}; judge them with --judge-only\n"
            )
            return DONE
        with ScoreFile(options.output / VERDICTS, settings=judged_with, key="key") as output:
            judge(samples, output, num_workers=options.workers)
            label = model.label if model else REFERENCES
            settings = settings_of(options, model, judged_with)
            results = summarise(samples, output, label=label, settings=settings, counts=counts)
            failed = [row for one in samples if not (row := output.row(one.key))["passed"]] if not model else []
    results.save(options.output)
    table = results_table(results)
    table.write(options.output, "table")
    sys.stdout.write(table.markdown())
    for row in failed:
        sys.stdout.write(f"does not pass: {row['question']}: {row['outage'] or row['reason']}\n")
    if failed:
        return FAILED
    return OUTAGES_LEFT if "samples lost to an outage" in results.counts else DONE


def read_with(options: argparse.Namespace) -> dict[str, Any]:
    """What the problems were read from and how; part of the settings of every verdict."""
    return {
        "files": [fingerprint(path) for path in options.files],
        "adapter": options.adapter,
        "columns": dict(sorted(options.columns)),
        **({"references": True} if getattr(options, "references", False) else {}),
    }


def _usual_k(num_samples: int) -> list[int]:
    return [k for k in (1, 5, 10) if k <= num_samples]


def fingerprint(path: Path) -> str:
    """Name and content of a file, or of all files below a folder.

    Raises:
        EvalInputError: it is not there, or cannot be read.
    """
    try:
        if path.is_dir():
            digest = hashlib.sha256()
            for one in sorted(path.rglob("*")):
                if one.is_file():
                    digest.update(f"{one.relative_to(path)}\0".encode() + hashlib.sha256(one.read_bytes()).digest())
            return f"{path.name} {digest.hexdigest()[:16]}"
        with path.open("rb") as handle:
            return f"{path.name} {hashlib.file_digest(handle, 'sha256').hexdigest()[:16]}"
    except OSError as error:
        raise EvalInputError(f"{path} cannot be read: {error.strerror or error}; name a file that is there") from error


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 done, 1 outages are left or the sandbox or model is down, 2 refused, 130 interrupted."""
    options = parser().parse_args(arguments)
    return status_of(lambda: run(options), output=options.output, refusals=(EvalPlusFormatError, EvalInputError))


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``eval code`` and ``eval test`` share."""
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="problems; any file that training reads")
    add("--output", type=Path, required=True, metavar="FOLDER", help="responses, verdicts and tables; taken up again")
    add("--adapter", default="auto", choices=["auto", *ADAPTERS], help="how to read the columns")
    add("--columns", nargs="+", type=column, default=[], metavar="NAME=COLUMN", help="as data.columns")
    add("--limit", type=positive, help="only the first so many problems")
    add("--seed", type=int, default=0, help="of sampling (default 0)")
    add("--workers", type=positive, default=os.cpu_count() or 1, help="programs that run at once (default: the cores)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--sample-only", action="store_true", help="store responses and stop, for instance on a GPU node")
    only.add_argument("--judge-only", action="store_true", help="judge stored responses; no model is started")


def parser() -> argparse.ArgumentParser:
    """The command line of ``code-a1 eval code``."""
    found = argparse.ArgumentParser(
        prog="code-a1 eval code",
        description="Samples programs from a Code LLM and grades them: avg@n and pass@k with bootstrap intervals.\n"
        "HumanEval+ and MBPP+ are graded by EvalPlus's own rules, LiveCodeBench by its own, other files by their\n"
        "asserts with the reference solution as the oracle; expected values stay outside of the program's process.\n\n"
        "BigCodeBench, and other files with --in-process-tests, run their tests in the program's own process: there a\n"
        "program sees the expected values and could forge the outcome. That is fine for evaluating a model (the\n"
        "published figures are made that way), but never a training reward. Problems whose own reference fails on\n"
        "this machine (a library, data or a network that it lacks) are left out and counted.",
        epilog="examples:\n"
        "  code-a1 eval code evalplus.parquet --model Qwen/Qwen2.5-Coder-1.5B-Instruct --samples 32 --output out/base\n"
        "  code-a1 eval code evalplus.parquet --model outputs/my-run --step best --samples 32 --output out/trained\n"
        "  code-a1 eval code mbpp.jsonl --endpoint http://localhost:8000/v1 --endpoint-model NAME --output out/x\n"
        "  code-a1 eval code test6.jsonl --since 2025-01-01 --model MODEL --output out/livecodebench\n"
        "  code-a1 eval code bigcodebench.parquet --model MODEL --output out/bigcodebench\n"
        "  code-a1 eval code mine.jsonl --references --output out/check\n"
        "  code-a1 eval compare out/base out/trained",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(found)
    add_benchmark_arguments(found)
    found.add_argument(
        "--references",
        action="store_true",
        help="no model: judge the files' own references; lists what fails",
    )
    found.add_argument("--samples", type=positive, default=1, help="programs a problem (default 1; the paper: 32)")
    found.add_argument(
        "--k", nargs="+", type=positive, default=[], help="of pass@k (default: 1, 5, 10 as samples allow)"
    )
    found.add_argument(
        "--prompt",
        help="chat_v1 (default; of a run its own), micro (of the tiny models), evalplus (its official prompt), file "
        "(chat messages of the file's column 'prompt'), or a .txt template with {{prompt}}",
    )
    add_model_arguments(found, role="the Code LLM")
    return found
