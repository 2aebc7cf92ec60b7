"""``code-a1 select``: the best of N programs by generated tests, without a reference."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from reward_fns import extract_candidate, extract_suite
from sandbox import JudgeProcesses, LocalRunner, Runner, SandboxUnavailableError

from ...algorithm.prompts import PROMPT_PAIRS, render, template_for
from ...algorithm.question import Question
from ...errors import InputError
from ...files import fingerprint, json_lines, write_whole
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.judge_loop import judge_into
from ...jobs.outputs import Report
from ...stats.estimates import bootstrap
from ...stats.tables import Table, table_of
from ..evaluate.benchmarks.tasks import AssertGrading
from ..evaluate.models.options import ModelOptions, run_of, usual_prompt
from ..evaluate.models.response_store import RESPONSES
from ..evaluate.models.source import ModelChoice, choose_model, sample_stored
from .answer_matrix import answer_matrix, read_cases
from .options import SelectOptions
from .selection_rules import ORACLE, RULES, best_programs, expected_pass

CHOICES = "choices.jsonl"
SELECTED = "selected.jsonl"


@dataclass(kw_only=True)
class Pool:
    """What was sampled for one question."""

    question: Question
    programs: list[str]
    """N; responses without a program are not among them."""
    suites: list[tuple[str, ...]] = field(default_factory=list)
    """Suites of asserts, as written."""

    @property
    def key(self) -> str:
        """Changes with the question, its tests, the programs and the suites: a choice is never that of others."""
        return f"{self.question.id} {fingerprint(repr(self))}"


def select(options: SelectOptions) -> Report:
    """Sample, choose, compare; everything is in ``options.output``, from which a repeated call resumes.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: a model or the sandbox is down; what is done is kept.
    """
    run = run_of(options.model, options.test_model)
    prompt = options.prompt or usual_prompt(run, "code", "test")
    if prompt not in PROMPT_PAIRS:
        raise InputError(f"--prompt must be one of {', '.join(PROMPT_PAIRS)}, got {prompt!r}")
    options = replace(options, prompt=prompt, tests=options.tests or (run.episode.cases_per_suite if run else 8))
    questions = options.questions()
    choose = partial(choose_model, work_folder=options.output, stored_only=options.judge_only)
    code = choose(options.model, policy="code")
    options = replace(options, test_model=_test_model(options))
    test = choose(options.test_model, policy="test")
    # All that a choice depends on, beside its question.
    settings = {
        "code": [code.fingerprint, asdict(options.model.sampling("code"))],
        "test": [test.fingerprint, asdict(options.test_model.sampling("test"))],
        **{name: getattr(options, name) for name in ("samples", "suites", "tests", "prompt", "seed")},
    }
    with JsonlStore(options.output / CHOICES, settings=settings) as choices:
        pools = _sampled_programs(questions, code, options)
        _sample_suites(pools, test, options)
        if options.sample_only:
            return Report(text=f"responses are in {options.output / RESPONSES}; judge them with --judge-only")
        _judge(pools, choices, options)
        rows = [choices.row(pool.key) for pool in pools]
    title = f"Best of {options.samples}: programs of {code.label}, {options.suites} suites of {test.label}"
    return _written(rows, options, title)


def _test_model(options: SelectOptions) -> ModelOptions:
    """The Test LLM that is named, or else that of the run which has both.

    Raises:
        InputError: neither is there.
    """
    code, test = options.model, options.test_model
    if test.is_named:
        return test
    if not code.model or (Path(code.model) / "config.json").is_file() or not Path(code.model).is_dir():
        raise InputError("name the Test LLM: --test-model or --test-endpoint; only a run as --model has both")
    return replace(test, model=code.model, step=code.step)


def _sampled_programs(questions: Sequence[Question], model: ModelChoice, options: SelectOptions) -> list[Pool]:
    """Programs of each question; responses without one are left out."""
    template = template_for("code", options.prompt)
    prompts = [(one.id, render(template, **one.prompt_fields)) for one in questions]
    parameters = options.model.sampling("code")
    responses = sample_stored(
        model,
        prompts,
        options,
        policy="code",
        num_samples=options.samples,
        parameters=parameters,
        description="programs",
    )
    pools = []
    for question, row in zip(questions, responses, strict=True):
        found = [
            extract_candidate(one.text, reads_input=question.reads_input, names=question.asked_names)
            for one in row
            if one
        ]
        programs = [program for program in found if isinstance(program, str)]
        pools.append(Pool(question=question, programs=programs))
    return pools


def _sample_suites(pools: Sequence[Pool], model: ModelChoice, options: SelectOptions) -> None:
    """Give each question suites, written for its programs in turn, since the Test LLM reads the program it tests.

    Each suite then judges all programs.
    """
    template = template_for("test", options.prompt)
    num_tests = options.tests or 0
    asked = []
    prompts = []
    for pool in pools:
        for number in range(options.suites if pool.programs else 0):
            program = pool.programs[number % len(pool.programs)]
            messages = render(template, **pool.question.prompt_fields, candidate=program, num_cases=num_tests)
            asked.append(pool)
            prompts.append((f"{pool.question.id}/{number}", messages))
    parameters = options.test_model.sampling("test")
    responses = sample_stored(
        model, prompts, options, policy="test", num_samples=1, parameters=parameters, description="suites"
    )
    for pool, (response,) in zip(asked, responses, strict=True):
        asserts = extract_suite(response.text, max_asserts=num_tests) if response else None
        if isinstance(asserts, tuple):
            pool.suites.append(asserts)


def _judge(pools: Sequence[Pool], store: JsonlStore, options: SelectOptions) -> None:
    """Append the row of each question that has none yet."""
    left = [pool for pool in pools if pool.key not in store]
    if not left:
        return
    with LocalRunner(num_workers=options.workers) as runner, JudgeProcesses(options.workers) as judges:
        judge_into(
            store,
            left,
            lambda pool: [_judged_row(pool, runner, judges, options)],
            num_workers=options.workers,
            total=len(pools),
        )


def _judged_row(pool: Pool, runner: Runner, judges: JudgeProcesses, options: SelectOptions) -> Row:
    """One question: the choice of every rule, and where it has tests, the chance that the choice is right.

    A response without a program counts as a wrong choice of ``random``; no rule chooses it, as any user could.

    Returns:
        ``chosen`` maps a rule to the source of its choice (the first of those with the highest score), ``expected``
        maps a rule to a value in [0, 1], or is null.
    """
    question, programs = pool.question, pool.programs
    row: Row = {"key": pool.key, "question": question.id, "outage": "", "chosen": {}, "expected": None}
    if not programs:
        nothing = dict.fromkeys((*RULES, ORACLE), 0.0)
        return {**row, "expected": nothing if question.tests else None}
    try:
        cases = read_cases(programs, pool.suites, question)
        passes, answers = answer_matrix(programs, cases, runner, question, num_threads=options.workers)
        right = _right_programs(programs, AssertGrading(question=question, judges=judges)) if question.tests else set()
    except SandboxUnavailableError as error:
        return {**row, "outage": f"{type(error).__name__}: {error}"}
    is_right = np.array([program in right for program in programs], dtype=np.bool_)
    expected = {}
    for name, rule in RULES.items():
        scores = rule(passes, answers)
        row["chosen"][name] = programs[int(best_programs(scores)[0])]
        expected[name] = expected_pass(scores, is_right)
    if question.tests:
        expected["random"] *= len(programs) / options.samples
        row["expected"] = expected | {ORACLE: float(is_right.any())}
    return row


def _right_programs(programs: Sequence[str], grading: AssertGrading) -> set[str]:
    distinct = list(dict.fromkeys(programs))
    right = set()
    for program, verdict in zip(distinct, grading.grade(distinct), strict=True):
        if isinstance(verdict, SandboxUnavailableError):
            raise verdict
        if verdict.passed:
            right.add(program)
    return right


def _rules_table(rows: Sequence[Row], *, title: str) -> Table | None:
    """pass@1 of every rule's choice with intervals, and its difference from random choice; None without tests."""
    graded = [row["expected"] for row in rows if row["expected"]]
    if not graded:
        return None
    cells = []
    for name in (*RULES, ORACLE):
        values = [expected[name] for expected in graded]
        # Pairing removes the spread between easy and hard questions, which both share.
        differences = [expected[name] - expected["random"] for expected in graded]
        cells.append(
            {
                "rule": name,
                "right": bootstrap(values).text(),
                "minus random": "" if name == "random" else bootstrap(differences).text(signed=True),
            }
        )
    note = f"Percent of {len(graded)} questions; 95 % bootstrap intervals over questions, ties as expected values."
    if num_outages := sum(bool(row["outage"]) for row in rows):
        note += f" {num_outages} questions were lost to an outage and are not among them."
    return table_of(title, cells, note=note)


def _written(rows: Sequence[Row], options: SelectOptions, title: str) -> Report:
    """Write the chosen programs and the table of rules."""
    target = options.output / SELECTED
    selected = [
        {"question": row["question"], "rule": options.rule, "program": row["chosen"][options.rule]}
        for row in rows
        if row["chosen"]
    ]
    write_whole(target, json_lines(selected))
    text = f"{target}: {len(selected)} programs chosen by {options.rule}"
    table = _rules_table(rows, title=title)
    if table is not None:
        markdown = table.markdown()
        write_whole(options.output / "table.md", markdown)
        text = f"{markdown}\n{text}"
    lost = [row for row in rows if row["outage"]]
    failure = lost and (
        f"{len(lost)} questions were lost to an outage, the first, {lost[0]['question']}, by {lost[0]['outage']}; "
        "repeat the command to judge them again"
    )
    return Report(text=text, failure=failure or "")
