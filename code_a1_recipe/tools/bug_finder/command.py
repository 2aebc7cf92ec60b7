"""``code-a1 attack``: finds bugs in a user's function by a Test LLM's asserts and small changes of their calls."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reward_fns import extract_suite
from reward_fns.extract import ExtractionFailure
from sandbox import Call, CallResult, Limits, LocalRunner, Program, RejectionReason, Role, Runner
from sandbox.text import Case, Gate

from ...algorithm.prompts import render, template_for
from ...algorithm.question import entry_points_text
from ...algorithm.sampling import sampling_seed
from ...errors import InputError
from ...files import write_whole
from ...jobs.outputs import Report
from ...stats.tables import counted, counts_text
from ..evaluate.models.options import run_of, usual_prompt
from ..evaluate.models.response_store import ResponseStore
from ..evaluate.models.source import choose_model, sample_all
from .failures import failure_of
from .inputs import Suites, check_defines, entry_point, read_program, read_suites, read_text
from .options import AttackOptions
from .output import group_lines, may_be_written, pytest_text
from .search import Attack

LIMITS = Limits(reference_cpu_seconds_per_case=1.0, total_seconds=240.0)
"""Limits of an attack. A call is left out if the reference needs more CPU seconds for it than
``reference_cpu_seconds_per_case``. ``total_seconds`` is larger than in the judge, because an attack makes many more
calls and should make all of them."""
_CASES = 8
"""Number of asserts that the prompt asks for, if the Test LLM does not come from a run."""


def attack(options: AttackOptions) -> Report:
    """Find bugs and write their tests. The report has a failure if a bug was found, or if calls could not be made.

    Raises:
        InputError, SandboxConfigError: an input or an option cannot be used, or the reference answers no call.
        OutageError, SandboxUnavailableError: a model or the sandbox is down.
    """
    source = read_program(options.solution, "the program to attack")
    entry = entry_point(options.entry, source, options.solution)
    output = options.output or Path(f"test_{entry}_bugs.py".lower())
    reference = _reference(options, entry, output)
    suites = read_suites(options.suites) if options.suites else None
    question = "" if suites else _question(options)
    with LocalRunner(limits=LIMITS, tier=options.tier, allow_missing=options.allow_missing) as runner:
        _check_loads(source, f"the program under attack, {options.solution},", runner)
        if reference:
            _check_loads(reference, f"--reference {options.reference}", runner)
        if suites is None:
            suites = ask_test_llm(options, question, source, responses=output.with_suffix(".responses.jsonl"))
        gate = Gate(reference or source, (entry,), assert_chars=LIMITS.assert_chars)
        search = Attack(source=source, reference=reference, runner=runner, limits=LIMITS, gate=gate)
        return _run(search, suites, options, entry=entry, output=output)


def _reference(options: AttackOptions, entry: str, output: Path) -> str:
    """Read the source of the reference. Returns an empty text if the options name no reference."""
    path = options.reference
    if path is None:
        if options.output is not None:
            raise InputError(
                "--output needs --reference: without a reference, the right answers are not known, and a test must "
                "not expect a wrong answer; leave --output out and read the printed asserts"
            )
        return ""
    if not may_be_written(output):
        raise InputError(f"--output {output} exists and was not written by code-a1 attack; choose another")
    source = read_program(path, "--reference")
    check_defines(source, entry, path, hint="the function must have the same name there")
    return source


def _question(options: AttackOptions) -> str:
    if not options.model.is_named:
        raise InputError(
            "tests are missing: name a file of tests (--suites tests.py) or a Test LLM that writes tests (--model "
            "FOLDER, or --endpoint URL --endpoint-model NAME)"
        )
    if options.question is None:
        raise InputError("a Test LLM needs --question, a text file with the problem that the function solves")
    return read_text(options.question, "--question").strip()


def _check_loads(source: str, name: str, runner: Runner) -> None:
    result = runner.run(Program(source=source, calls=(), limits=LIMITS), role=Role.CANDIDATE)
    if result.load_error:
        raise InputError(
            f"{name} does not load in the sandbox: {result.load_error}. It must be one file that imports only "
            "installed packages, and that reads no files and no input while it is imported"
        )


def ask_test_llm(options: AttackOptions, question: str, source: str, *, responses: Path) -> Suites:
    """Let the Test LLM write suites for a program.

    Args:
        options: ``model``, ``num_suites`` and ``seed`` are used.
        question: the problem that the program should solve, as text.
        source: the program.
        responses: the file that stores responses. A stored response is not sampled again.

    Raises:
        InputError: the model cannot be started.
        OutageError: the model is down.
    """
    run = run_of(options.model)
    prompt = render(
        template_for("test", usual_prompt(run, "test")),
        prompt=question,
        entry_points=entry_points_text(source),
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


def _run(search: Attack, suites: Suites, options: AttackOptions, *, entry: str, output: Path) -> Report:
    """Make the suites' calls and some changed calls, compare the answers, and report."""
    parsed = [search.gate.suite(suite) for suite in suites.suites]
    cases = [case for suite in parsed for case in suite.cases]
    rejections = [rejection for suite in parsed for rejection in suite.rejections]
    num_asserts = sum(map(len, suites.suites))
    if not cases:
        first = f"; the first: {rejections[0].text[:200]!r}: {rejections[0].detail[:200]}" if rejections else ""
        raise InputError(
            f"no test of the form `assert {entry}(literals) == literal` among {counted(num_asserts, 'assert')} in "
            f"{counted(len(parsed), 'suite')}{first}; correct the tests, or name others"
        )
    tested = list(dict.fromkeys(case.call for case in cases))
    calls = tested
    if search.reference:
        calls = search.calls_near(tested, max_calls=options.max_calls)
    num_changed = len(calls) - len(tested)
    changed = f", {num_changed} more calls by small changes" if num_changed else ""
    lines = [
        f"attack on {entry} of {options.solution.name}: "
        f"{counted(len(parsed) + suites.failures.total(), 'suite')}, {counted(num_asserts, 'assert')}, "
        f"{counted(len(tested), 'different call')}{changed}"
    ]
    left_out = Counter(rejection.reason.value for rejection in rejections) + suites.failures
    del left_out[RejectionReason.DUPLICATE.value]  # a duplicate is no loss: another assert makes its call
    if left_out:
        lines.append(f"  left out: {counts_text(left_out)}")
    if search.reference:
        num_found = _compared(search, calls, options, entry=entry, output=output, lines=lines)
    else:
        lines.append("  no reference: in each assert below, the test or your function is wrong")
        contradicting = contradictions(cases, search.answers(tested, {}))
        lines += contradicting
        num_found = len(contradicting)
    failure = f"{options.solution} fails, or tests contradict it; see above" if num_found else ""
    if num_unasked := len(search.unasked):
        lines.append(f"not complete: no time was left for {counted(num_unasked, 'call')}; lower --max-calls")
        failure = failure or f"the attack on {options.solution} is not complete"
    if not num_found:
        lines.append("nothing found in the other calls" if num_unasked else "nothing found")
    return Report(text="\n".join(lines), failure=failure)


def _compared(
    search: Attack, calls: Sequence[Call], options: AttackOptions, *, entry: str, output: Path, lines: list[str]
) -> int:
    """Compare the program with the reference, write the tests, and append the findings to ``lines``.

    Returns:
        The number of different kinds of failure that were found.
    """
    assert options.reference is not None
    num_expected = len(search.expect(calls))
    refusals = counts_text(search.refusals)
    if not num_expected:
        raise InputError(
            f"nothing to compare: --reference {options.reference} must answer at least one of "
            f"{counted(len(calls), 'call')} with a value, got no value ({refusals}); name tests with valid arguments, "
            "or another reference"
        )
    left_out = f"; no answer to the others: {refusals}" if refusals else ""
    lines.append(f"  the reference answers {num_expected} of {len(calls)} calls{left_out}")
    groups = search.find(calls)
    lines += group_lines(groups)
    if bugs := [group.bug for group in groups if group.bug]:
        text = pytest_text(bugs, entry=entry, program=options.solution, output=output, reference=options.reference.name)
        try:
            write_whole(output, text)
        except OSError as error:
            raise InputError(f"--output {output} cannot be written: {error}; choose another") from error
        lines.append(f"written: {output} ({counted(len(bugs), 'test')}; run `pytest {output}`)")
    return len(groups)


def contradictions(cases: Iterable[Case], answers: Mapping[Call, CallResult]) -> list[str]:
    """Write a line for each test whose expected output differs from the program's answer. Either may be wrong.

    Args:
        cases: the tests of all suites. A test that several suites contain occurs several times. The most frequent test
            gets the first line.
        answers: the program's answers.
    """
    lines = []
    for case, count in Counter(cases).most_common():
        if failure := failure_of(case.expected_value, answers[case.call]):
            suites = f"; {count} suites" if count > 1 else ""
            text = f"assert {case.call.text} == {case.expected}"
            lines.append(f"  {text}  # your function: {failure.shown}{suites}")
    return lines
