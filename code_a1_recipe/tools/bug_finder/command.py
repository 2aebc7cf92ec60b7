"""``code-a1 attack``: writes tests for a file by a Test LLM, and shows where the file contradicts them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from reward_fns import extract_suite
from reward_fns.extract import ExtractionFailure
from sandbox import Limits, RejectionReason, SuiteVerdict
from sandbox.text import TOTAL_SPENT

from ...algorithm.prompts import render, template_for
from ...algorithm.question import Question, entry_points_text, request_for
from ...algorithm.sampling import sampling_seed
from ...errors import InputError
from ...files import write_whole
from ...jobs.confinement import Confinement, JudgeAll
from ...jobs.outputs import Report
from ...stats.tables import counted, counts_text
from ..evaluate.models.options import run_of, usual_prompt
from ..evaluate.models.response_store import ResponseStore
from ..evaluate.models.source import choose_model, sample_all
from ..test_quality.metrics import measure_function, verdicts_of
from ..test_quality.mutants import check_cosmic_ray, mutants_of
from .inputs import Suites, public_names, read_program, read_suites, read_text
from .options import AttackOptions
from .output import may_be_written, pytest_text, shown_answer, shown_text

LIMITS = Limits(reference_cpu_seconds_per_case=1.0, total_seconds=240.0)
"""Limits of each program. A call is left out if the reference needs more CPU seconds for it than
``reference_cpu_seconds_per_case``. ``total_seconds`` is larger than in training, because all suites are judged in one
request and all their calls should be made."""
_CASES = 8
"""Number of asserts that the prompt asks for, if the Test LLM does not come from a run."""
_MAX_MUTANTS = 50
"""Largest number of mutants, as in ``eval test``."""
_NO_ANSWER = (RejectionReason.REFERENCE_RAISED, RejectionReason.REFERENCE_TIMED_OUT)
"""Reasons to refuse an assert that say that a program gave no answer."""


def attack(options: AttackOptions) -> Report:
    """Write valid tests. The report has a failure if the file contradicts tests, or if calls could not be made.

    Raises:
        InputError, SandboxConfigError: an input or an option cannot be used, or no assert could be judged.
        OutageError, SandboxUnavailableError: a model or the sandbox is down.
    """
    check_cosmic_ray()
    source = read_program(options.solution, "the file")
    reference = read_program(options.reference, "--reference") if options.reference else source
    output = options.output or Path(f"test_{options.solution.stem}.py".lower())
    if not may_be_written(output):
        raise InputError(f"--output {output} exists and was not written by code-a1 attack; choose another")
    suites = read_suites(options.suites) if options.suites else None
    question = Question(
        id=options.solution.name,
        prompt="" if suites else _problem(options),
        reference=reference,
        entry_points=public_names(source, reference, options.solution),
    )
    confinement = Confinement(limits=LIMITS, tier=options.tier, allow_missing=options.allow_missing)
    with confinement.judges(num_workers=None) as judges:
        _check_loads(question, source, options, judges.judge_all)
        if suites is None:
            suites = ask_test_llm(options, question, source, responses=output.with_suffix(".responses.jsonl"))
        return _run(question, source, suites, options, output=output, judge_all=judges.judge_all)


def _problem(options: AttackOptions) -> str:
    if not options.model.is_named:
        raise InputError(
            "tests are missing: name a file of tests (--suites tests.py) or a Test LLM that writes tests (--model "
            "FOLDER, or --endpoint URL --endpoint-model NAME)"
        )
    if options.question is None:
        raise InputError("a Test LLM needs --question, a text file with the problem that the file solves")
    return read_text(options.question, "--question").strip()


def _check_loads(question: Question, source: str, options: AttackOptions, judge_all: JudgeAll) -> None:
    programs = {f"the file {options.solution}": source, f"--reference {options.reference}": question.reference}
    verdicts = verdicts_of(judge_all, [request_for(question, program) for program in programs.values()])
    for name, verdict in zip(programs, verdicts, strict=True):
        if error := verdict.load_error or verdict.example_failure:
            raise InputError(
                f"{name} does not load in the sandbox: {error}. It must be one file that imports only installed "
                "packages, and that reads no files and no input while it is imported"
            )


def ask_test_llm(options: AttackOptions, question: Question, source: str, *, responses: Path) -> Suites:
    """Let the Test LLM write suites for a program.

    Args:
        options: ``model``, ``num_suites`` and ``seed`` are used.
        question: its prompt is the problem that the program should solve.
        source: the program.
        responses: the file that stores responses. A stored response is not sampled again.

    Raises:
        InputError: the model cannot be started.
        OutageError: the model is down.
    """
    run = run_of(options.model)
    prompt = render(
        template_for("test", usual_prompt(run, "test")),
        prompt=question.prompt,
        entry_points=entry_points_text(source, question.entry_points),
        candidate=source.strip(),
        num_cases=run.episode.cases_per_suite if run else _CASES,
    )
    seeds = [sampling_seed(options.seed, 0, place) for place in range(options.num_suites)]
    parameters = options.model.sampling("test")
    with ResponseStore(responses) as store:
        model = choose_model(options.model, policy="test", work_folder=responses.parent)
        (sampled,) = sample_all(
            model,
            [("0", prompt)],
            seeds=[seeds],
            parameters=parameters,
            store=store,
            description="suites",
        )
    too_long = ExtractionFailure(reason="prompt_too_long")
    return Suites.of(extract_suite(response.text) if response else too_long for response in sampled)


def _run(
    question: Question, source: str, suites: Suites, options: AttackOptions, *, output: Path, judge_all: JudgeAll
) -> Report:
    """Judge the asserts, write the valid ones, measure them by mutants, and report."""
    counts = Counter(text for suite in suites.suites for text in suite)
    # Each assert is a suite of its own, so that its verdict is known by its place.
    request = request_for(question, source, *((text,) for text in counts), given=True)
    (verdict,) = verdicts_of(judge_all, [request])
    judged = dict(zip(counts, verdict.suites, strict=True))
    cases = {text: suite.cases[0] for text, suite in judged.items() if suite.cases}
    valid = {text: case for text, case in cases.items() if case.expected_correct}
    contradicting = contradictions(judged, counts, has_reference=options.reference is not None)
    left_out = Counter(suites.failures)
    for suite in judged.values():
        left_out.update(rejection.reason.value for rejection in suite.rejections)
    if not cases and not contradicting:
        raise InputError(
            f"no test of the form `assert {question.entry_points[0]}(literals) == literal` could be judged, among "
            f"{counted(len(counts), 'assert')} ({counts_text(left_out)}); correct the tests, or name others"
        )
    num_suites = len(suites.suites) + suites.failures.total()
    lines = [f"{options.solution.name}: {counted(num_suites, 'suite')}, {counted(len(counts), 'different assert')}"]
    if left_out:
        lines.append(f"  left out: {counts_text(left_out)}")
    if options.reference:
        lines.append(f"  wrong by the reference: {counted(len(cases) - len(valid), 'assert')}")
    elif contradicting:
        lines.append("  no reference: in each assert below, the test or your file is wrong")
    lines += contradicting
    failure = f"{options.solution} contradicts tests; see above" if contradicting else ""
    if num_unasked := sum(map(_is_unasked, judged.values())):
        lines.append(f"not complete: no time was left for {counted(num_unasked, 'call')}; lower --num-suites")
        failure = failure or f"the attack on {options.solution} is not complete"
    if valid:
        text = pytest_text(valid.values(), question.entry_points, program=options.solution, output=output)
        try:
            write_whole(output, text)
        except OSError as error:
            raise InputError(f"--output {output} cannot be written: {error}; choose another") from error
        lines.append(f"written: {output} (run `pytest {output}`)")
    lines.append(_last_line(question, list(valid), len(counts), options, judge_all))
    return Report(text="\n".join(lines), failure=failure)


def _last_line(
    question: Question, valid: Sequence[str], num_asserts: int, options: AttackOptions, judge_all: JudgeAll
) -> str:
    """Say how many asserts are valid, and how many mutants they kill of the program that decides right answers."""
    mutants = [mutant.source for mutant in mutants_of(question.reference, max_mutants=_MAX_MUTANTS)]
    kills = measure_function(question, valid, judge_all=judge_all, mutants=mutants).kills
    mutated = (options.reference or options.solution).name
    return (
        f"{counted(len(valid), 'valid test')} of {num_asserts}; they kill {sum(map(any, kills))} of "
        f"{counted(len(mutants), 'mutant')} of {mutated}"
    )


def contradictions(judged: Mapping[str, SuiteVerdict], counts: Counter[str], *, has_reference: bool) -> list[str]:
    """Write a line for each assert that the file's answer contradicts; the most frequent assert gets the first line.

    With a reference, the line shows the reference's answer, which may differ from the assert's claim. Without a
    reference, the line shows the claim, and either the claim or the file may be wrong.

    Args:
        judged: the verdict of each assert.
        counts: the number of times that the suites contain each assert.
        has_reference: the right answers come from a reference, and not from the file itself.
    """
    lines: Counter[str] = Counter()
    for text, suite in judged.items():
        for case in suite.cases:
            if has_reference and case.outcome.failed and not case.is_unasked:
                lines[_line(f"assert {case.call} == {case.reference_value}", shown_answer(case))] += counts[text]
            elif not has_reference and not case.expected_correct:
                lines[_line(f"assert {case.call} == {case.expected}", case.reference_value)] += counts[text]
        for rejection in suite.rejections:
            # Without a reference, the file itself raised or hung in a call that should return a value.
            if not has_reference and rejection.reason in _NO_ANSWER and rejection.detail != TOTAL_SPENT:
                lines[_line(shown_text(rejection.text), rejection.detail)] += counts[text]
    return [f"{line}; {count} times" if count > 1 else line for line, count in lines.most_common()]


def _line(claim: str, answer: str) -> str:
    return f"  {claim}  # your file: {shown_text(answer)}"


def _is_unasked(suite: SuiteVerdict) -> bool:
    """Say whether no time was left to make the assert's call on the file or on the reference."""
    return any(case.is_unasked for case in suite.cases) or any(
        rejection.detail == TOTAL_SPENT for rejection in suite.rejections
    )
