"""``code-a1 select``: the best of N programs by generated tests, without a reference."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reward_fns import Refusal, extract_candidate, extract_suite
from sandbox import LocalRunner
from sandbox.judge_processes import JudgeProcesses

from ..argument_types import positive
from ..episode import sampling_seed
from ..evaluation.code_eval import EvalInputError, add_common_arguments
from ..evaluation.code_tasks import AssertGrading
from ..evaluation.endpoint import ModelError
from ..evaluation.exit_status import DONE, OUTAGES_LEFT, status_of
from ..evaluation.models import ModelChoice, add_model_arguments, choose_model, has_model, sample_all, sampling_of
from ..evaluation.response_store import RESPONSES, ResponseStore
from ..evaluation.run_defaults import fill_defaults
from ..prompts import PROMPT_PAIRS, find_prompt_pair, render
from ..questions import Question, QuestionError, read_questions
from ..score_file import ScoreFile, write_whole
from .best_of_n import Pool, judged_row, rules_table
from .selection_rules import RULES

CHOICES = "choices.jsonl"
SELECTED = "selected.jsonl"


def load_questions_of(options: argparse.Namespace) -> list[Question]:
    """All questions of all files.

    Raises:
        QuestionError: a file cannot be used, or an id comes twice.
    """
    questions: list[Question] = []
    for path in options.files:
        questions += read_questions(path, adapter=options.adapter, columns=dict(options.columns) or None).questions
    names = [question.id for question in questions]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise QuestionError(f"id {repeated!r} stands for several questions; ids must be unique over all files")
    return questions[: options.limit]


def models_of(options: argparse.Namespace) -> tuple[ModelChoice, ModelChoice]:
    """The Code LLM and the Test LLM: of a run both, otherwise one each.

    Raises:
        ModelError: one of them is not named, or is no model.
    """
    where = {"work_folder": options.output, "stored_only": options.judge_only}
    code = choose_model(options, policy="code", **where)
    if has_model(options, prefix="test-"):
        return code, choose_model(options, policy="test", prefix="test-", **where)
    if not options.model or (Path(options.model) / "config.json").is_file() or not Path(options.model).is_dir():
        raise ModelError("name the Test LLM: --test-model or --test-endpoint; only a run as --model has both")
    options.test_model, options.test_step = options.model, options.step
    return code, choose_model(options, policy="test", prefix="test-", **where)


def pools_of(
    questions: Sequence[Question], options: argparse.Namespace, store: ResponseStore
) -> tuple[list[Pool], str, dict[str, Any]]:
    """Programs and suites of every question, sampled where they are not stored; title and settings."""
    code, test = models_of(options)
    programs = programs_of(questions, code, options, store)
    suites = suites_of(questions, programs, test, options, store)
    pools = [
        Pool(question=question, programs=tuple(own), suites=tuple(tests), num_responses=options.samples)
        for question, own, tests in zip(questions, programs, suites, strict=True)
    ]
    settings = {
        "code": [code.fingerprint, asdict(sampling_of(options))],
        "test": [test.fingerprint, asdict(sampling_of(options, prefix="test-"))],
        **{name: getattr(options, name) for name in ("samples", "suites", "tests", "prompt", "seed")},
    }
    title = f"Best of {options.samples}: programs of {code.label}, {options.suites} suites of {test.label}"
    return pools, title, settings


def programs_of(
    questions: Sequence[Question], model: ModelChoice, options: argparse.Namespace, store: ResponseStore
) -> list[list[str]]:
    """Programs of each question; responses without one are left out."""
    template = find_prompt_pair(options.prompt).code
    texts = sample_all(
        model,
        [render(template, prompt=one.prompt) for one in questions],
        seeds=[[sampling_seed(options.seed, "code", one.id, n) for n in range(options.samples)] for one in questions],
        parameters=sampling_of(options),
        store=store,
        sessions=[one.id for one in questions],
        stored_only=options.judge_only,
        description="programs",
    )
    found = [[extract_candidate(text) for text in row if text is not None] for row in texts]
    return [[program for program in row if isinstance(program, str)] for row in found]


def suites_of(
    questions: Sequence[Question],
    programs: Sequence[Sequence[str]],
    model: ModelChoice,
    options: argparse.Namespace,
    store: ResponseStore,
) -> list[list[tuple[str, ...]]]:
    """Suites of each question, written for its programs in turn, since the Test LLM reads the program it tests.

    Each suite then judges all programs.
    """
    places = [
        (place, number, own[number % len(own)])
        for place, own in enumerate(programs)
        for number in range(options.suites if own else 0)
    ]
    template = find_prompt_pair(options.prompt).test
    texts = sample_all(
        model,
        [
            render(template, prompt=questions[place].prompt, candidate=program, num_cases=options.tests)
            for place, _, program in places
        ],
        seeds=[[sampling_seed(options.seed, "test", questions[place].id, number)] for place, number, _ in places],
        parameters=sampling_of(options, prefix="test-"),
        store=store,
        sessions=[f"{questions[place].id}/{number}" for place, number, _ in places],
        stored_only=options.judge_only,
        description="suites",
    )
    suites: list[list[tuple[str, ...]]] = [[] for _ in questions]
    for (place, _, _), (text,) in zip(places, texts, strict=True):
        found = extract_suite(text, max_asserts=options.tests) if text is not None else Refusal(reason="too_long")
        if not isinstance(found, Refusal):
            suites[place].append(found)
    return suites


def judge_pools(pools: Sequence[Pool], output: ScoreFile, *, num_workers: int) -> None:
    """One row for each question that has none yet."""
    left = [pool for pool in pools if pool.key not in output]
    if not left:
        return
    with (
        LocalRunner(num_workers=num_workers) as runner,
        JudgeProcesses(num_workers) as judges,
        tqdm(total=len(pools), initial=len(pools) - len(left), unit="question", desc="judge", disable=None) as bar,
    ):

        def row(pool: Pool) -> dict[str, Any]:
            grading = AssertGrading(question=pool.question, judges=judges) if pool.question.tests else None
            return judged_row(pool, runner, grading, num_threads=num_workers)

        threads = ThreadPoolExecutor(2 * num_workers, thread_name_prefix="select")
        try:
            for future in as_completed([threads.submit(row, pool) for pool in left]):
                output.append(future.result())
                bar.update()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def run(options: argparse.Namespace) -> int:
    """Sample, choose, compare; returns the exit status."""
    fill_defaults(options, policies={"": "code", "test-": "test"}, cases=("tests", 8))
    if options.prompt not in PROMPT_PAIRS:
        raise EvalInputError(f"--prompt must be one of {', '.join(PROMPT_PAIRS)}, got {options.prompt!r}")
    questions = load_questions_of(options)
    options.output.mkdir(parents=True, exist_ok=True)
    with ResponseStore(options.output / RESPONSES) as store:
        pools, title, settings = pools_of(questions, options, store)
    if options.sample_only:
        sys.stdout.write(f"responses are in {options.output / RESPONSES}; judge them with --judge-only\n")
        return DONE
    with ScoreFile(options.output / CHOICES, settings=settings, key="key") as output:
        judge_pools(pools, output, num_workers=options.workers)
        rows = [output.row(pool.key) for pool in pools]
    selected = [
        {"question": row["question"], "rule": options.rule, "program": row["chosen"][options.rule]}
        for row in rows
        if row["chosen"]
    ]
    text = "".join(json.dumps(one) + "\n" for one in selected)
    write_whole(options.output / SELECTED, text)
    table = rules_table(rows, title=title)
    if table is not None:
        table.write(options.output, "table")
        sys.stdout.write(table.markdown() + "\n")
    num_without = sum(not row["num_programs"] for row in rows if not row["outage"])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    sys.stdout.write(
        f"{options.output / SELECTED}: {len(selected)} programs chosen by {options.rule}"
        + (f"; {num_without} questions have none" if num_without else "")
        + f" (sha256 {digest})\n"
    )
    lost = [row for row in rows if row["outage"]]
    if lost:
        told = f"{len(lost)} questions were lost to an outage, the first, {lost[0]['question']}, by {lost[0]['outage']}"
        sys.stderr.write(f"{told}; repeat the command to judge them again\n")
    return OUTAGES_LEFT if lost else DONE


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 done, 1 outages are left or the sandbox or a model is down, 2 refused, 130 interrupted."""
    options = parser().parse_args(arguments)
    return status_of(lambda: run(options), output=options.output, refusals=(EvalInputError,))


def parser() -> argparse.ArgumentParser:
    """The command line of ``code-a1 select``."""
    rules = "\n".join(f"  {name:15} {rule.source}" for name, rule in RULES.items())
    found = argparse.ArgumentParser(
        prog="code-a1 select",
        description="Samples N programs for each question from a Code LLM and M suites from a Test LLM, runs all\n"
        "programs on all tests, and chooses one program by how they agree. No reference is used for that.\n"
        "Where a question has tests of its own, all rules are compared on the same samples with random choice\n"
        "and with the oracle.",
        epilog=f"rules:\n{rules}\n\n"
        "examples:\n"
        "  code-a1 select questions.jsonl --model outputs/my-run --samples 16 --suites 16 --output out/best-of-16\n"
        "  code-a1 select questions.jsonl --model CODE_LLM --test-model TEST_LLM --output out/best-of-16",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(found)
    found.add_argument("--samples", type=positive, default=16, metavar="N", help="programs a question (default 16)")
    found.add_argument("--suites", type=positive, default=16, metavar="M", help="suites a question (default 16)")
    found.add_argument("--tests", type=positive, metavar="K", help="asserts a suite (default 8, of a run its own)")
    found.add_argument("--rule", choices=[*RULES], default="codet", help="whose choice is written (default codet)")
    pairs = ", ".join(PROMPT_PAIRS)
    found.add_argument("--prompt", help=f"pair of templates: {pairs} (default chat_v1, of a run its own)")
    add_model_arguments(found, role="the Code LLM (or a run, for both)")
    add_model_arguments(found, prefix="test-", role="the Test LLM")
    return found
