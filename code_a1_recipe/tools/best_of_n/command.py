"""``code-a1 select``: chooses the best of N programs by generated tests, without a reference."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np

from reward_fns import extract_candidate
from sandbox import JudgeProcesses, LocalRunner, Runner, SandboxUnavailableError

from ...algorithm.prompts import PROMPT_PAIRS, render, template_for
from ...algorithm.question import Question
from ...errors import InputError
from ...files import fingerprint, json_lines, write_whole
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.judge_loop import judge_into
from ...jobs.outputs import Report
from ...stats.estimates import bootstrap
from ...stats.tables import Table, table_with_head
from ..evaluate.benchmarks.tasks import AssertGrading
from ..evaluate.models.options import ModelOptions, run_of, usual_prompt
from ..evaluate.models.response_store import RESPONSES
from ..evaluate.models.source import StoredModel, sample_suites
from .answer_matrix import answer_matrix, read_cases
from .options import SelectOptions
from .selection_rules import ORACLE, RULES, best_programs, expected_pass

CHOICES = "choices.jsonl"
SELECTED = "selected.jsonl"


@dataclass(kw_only=True)
class Pool:
    """The sampled programs and suites of one question."""

    question: Question
    programs: list[str] = field(default_factory=list)
    """N programs. Responses without a program are left out."""
    suites: list[tuple[str, ...]] = field(default_factory=list)
    """Suites of asserts, as written."""

    @property
    def key(self) -> str:
        """Key of the stored choice. It changes with the question, its tests, the programs and the suites."""
        return f"{self.question.id} {fingerprint(repr(self))}"


def select(options: SelectOptions) -> Report:
    """Sample programs and suites, choose by each rule, and compare the rules.

    Responses and choices are stored in ``options.output``, from which a repeated call resumes.

    Raises:
        InputError, SandboxConfigError: an input or an option cannot be used.
        OutageError, SandboxUnavailableError: a model or the sandbox is down; all results so far are kept.
    """
    run = run_of(options.model, options.test_model)
    prompt = options.prompt or usual_prompt(run, "code", "test")
    if prompt not in PROMPT_PAIRS:
        raise InputError(f"--prompt must be one of {', '.join(PROMPT_PAIRS)}, got {prompt!r}")
    num_tests = options.tests or (run.episode.cases_per_suite if run else 8)
    test_model = _test_model(options.model, options.test_model)
    questions = options.questions()
    choose = partial(
        StoredModel.choose,
        folder=options.output,
        seed=options.seed,
        stored_only=options.judge_only,
    )
    code = choose(options.model, policy="code")
    test = choose(test_model, policy="test")
    # A choice depends on the question and on these settings, so a call with other settings must not reuse it.
    settings = {
        "code": list(code.settings.values()),
        "test": list(test.settings.values()),
        "samples": options.samples,
        "suites": options.suites,
        "tests": num_tests,
        "prompt": prompt,
        "seed": options.seed,
    }
    with JsonlStore(options.output / CHOICES, settings=settings) as choices:
        pools = _sampled_programs(questions, code, prompt=prompt, num_samples=options.samples)
        _sample_suites(pools, test, prompt=prompt, num_suites=options.suites, num_tests=num_tests)
        if options.sample_only:
            return Report(text=f"responses are in {options.output / RESPONSES}; judge them with --judge-only")
        _judge(pools, choices, num_samples=options.samples, num_workers=options.workers)
        rows = [choices.row(pool.key) for pool in pools]
    title = (
        f"Best of {options.samples}: programs of {code.choice.label}, {options.suites} suites of {test.choice.label}"
    )
    return _written(rows, options.output, rule=options.rule, title=title)


def _test_model(code: ModelOptions, test: ModelOptions) -> ModelOptions:
    """Choose the named Test LLM. If none is named, choose the Test LLM of the run that is named as the Code LLM.

    Raises:
        InputError: no Test LLM is named, and the Code LLM is no run.
    """
    if test.is_named:
        return test
    folder = Path(code.model)
    if not code.model or not folder.is_dir() or (folder / "config.json").is_file():
        raise InputError("name the Test LLM: --test-model or --test-endpoint; only a run as --model has both")
    return replace(test, model=code.model, step=code.step)


def _sampled_programs(
    questions: Sequence[Question], model: StoredModel, *, prompt: str, num_samples: int
) -> list[Pool]:
    """Sample programs for each question. Responses without a program are left out."""
    template = template_for("code", prompt)
    prompts = [(question.id, render(template, **question.prompt_fields)) for question in questions]
    rows = model.sample(prompts, num_samples=num_samples, description="programs")
    pools = []
    for question, responses in zip(questions, rows, strict=True):
        pool = Pool(question=question)
        for response in filter(None, responses):
            program = extract_candidate(
                response.text,
                reads_input=question.reads_input,
                names=question.asked_names,
            )
            if isinstance(program, str):
                pool.programs.append(program)
        pools.append(pool)
    return pools


def _sample_suites(pools: Sequence[Pool], model: StoredModel, *, prompt: str, num_suites: int, num_tests: int) -> None:
    """Sample suites for each question. The Test LLM sees the question's programs in turn, one program for each suite.

    Each suite then judges all programs of its question, not only the program that the Test LLM saw.
    """
    pool_of_program = []
    programs = []
    for pool in pools:
        for number, program in zip(range(num_suites), cycle(pool.programs), strict=False):
            pool_of_program.append(pool)
            programs.append((f"{pool.question.id}/{number}", pool.question, program))
    suites = sample_suites(model, programs, prompt=prompt, num_tests=num_tests, description="suites")
    for pool, suite in zip(pool_of_program, suites, strict=True):
        if isinstance(suite, tuple):
            pool.suites.append(suite)


def _judge(pools: Sequence[Pool], store: JsonlStore, *, num_samples: int, num_workers: int) -> None:
    """Append a row for each question that has no row yet."""
    unjudged = [pool for pool in pools if pool.key not in store]
    if not unjudged:
        return
    with LocalRunner(num_workers=num_workers) as runner, JudgeProcesses(num_workers) as judges:
        judge_into(
            store,
            unjudged,
            lambda pool: [_judged_row(pool, runner, judges, num_samples=num_samples, num_threads=num_workers)],
            num_workers=num_workers,
            total=len(pools),
        )


def _judged_row(pool: Pool, runner: Runner, judges: JudgeProcesses, *, num_samples: int, num_threads: int) -> Row:
    """Let every rule choose for one question. If the question has tests, compute the chance that each choice is right.

    A response without a program counts as a wrong choice of ``random``. The other rules never choose such a response,
    because any user would skip it.

    Returns:
        ``chosen`` maps a rule to the first program with the rule's highest score. ``expected`` maps a rule to the
        chance in [0, 1] that its choice is right. ``expected`` is None if the question has no tests.
    """
    question, programs = pool.question, pool.programs
    row: Row = {
        "key": pool.key,
        "question": question.id,
        "outage": "",
        "chosen": {},
        "expected": None,
    }
    if not programs:
        if question.tests:
            row["expected"] = dict.fromkeys((*RULES, ORACLE), 0.0)
        return row
    right = set()
    try:
        cases = read_cases(programs, pool.suites, question)
        passes_NM, answers_NM = answer_matrix(programs, cases, runner, question, num_threads=num_threads)
        if question.tests:
            right = _right_programs(programs, AssertGrading(question=question, judges=judges))
    except SandboxUnavailableError as error:
        return {**row, "outage": f"{type(error).__name__}: {error}"}
    is_right_N = np.array([program in right for program in programs], dtype=np.bool_)
    expected = {ORACLE: float(is_right_N.any())}
    for name, rule in RULES.items():
        scores_N = rule(passes_NM, answers_NM)
        first_best = best_programs(scores_N)[0]
        row["chosen"][name] = programs[first_best]
        expected[name] = expected_pass(scores_N, is_right_N)
    expected["random"] *= len(programs) / num_samples
    if question.tests:
        row["expected"] = expected
    return row


def _right_programs(programs: Sequence[str], grading: AssertGrading) -> set[str]:
    """Find the programs that pass all tests of the question."""
    distinct = list(dict.fromkeys(programs))
    right = set()
    for program, verdict in zip(distinct, grading.grade(distinct), strict=True):
        if isinstance(verdict, SandboxUnavailableError):
            raise verdict
        if verdict.passed:
            right.add(program)
    return right


def _rules_table(rows: Sequence[Row], *, title: str) -> Table | None:
    """Tabulate pass@1 of every rule, and its difference from a random choice. Returns None without tests."""
    graded = []
    num_outages = 0
    for row in rows:
        num_outages += bool(row["outage"])
        if row["expected"]:
            graded.append(row["expected"])
    if not graded:
        return None
    table_rows = [["rule", "right", "minus random"]]
    for name in (*RULES, ORACLE):
        chances = [expected[name] for expected in graded]
        difference = ""
        if name != "random":
            # Pair by question, so that the spread between easy and hard questions does not widen the interval.
            differences = [expected[name] - expected["random"] for expected in graded]
            difference = bootstrap(differences).text(signed=True)
        table_rows.append([name, bootstrap(chances).text(), difference])
    note = (
        f"Percent of {len(graded)} questions; 95 % bootstrap intervals over questions. A tie counts its expected value."
    )
    if num_outages:
        note += f" {num_outages} more questions were lost to an outage and do not count."
    return table_with_head(table_rows, title=title, note=note)


def _written(rows: Sequence[Row], folder: Path, *, rule: str, title: str) -> Report:
    """Write the chosen programs and the table of rules."""
    target = folder / SELECTED
    selected = []
    for row in rows:
        if row["chosen"]:
            program = row["chosen"][rule]
            selected.append({"question": row["question"], "rule": rule, "program": program})
    write_whole(target, json_lines(selected))
    text = f"{target}: {len(selected)} programs chosen by {rule}"
    table = _rules_table(rows, title=title)
    if table:
        markdown = table.markdown()
        write_whole(folder / "table.md", markdown)
        text = f"{markdown}\n{text}"
    failure = ""
    lost = [row for row in rows if row["outage"]]
    if lost:
        first = lost[0]
        failure = (
            f"{len(lost)} questions were lost to an outage, first {first['question']} ({first['outage']}); repeat the "
            "command to judge them again"
        )
    return Report(text=text, failure=failure)
