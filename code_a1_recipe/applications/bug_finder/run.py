"""One attack from its tests to its report: calls, failures, minimal calls, and the pytest file."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sandbox import (
    Call,
    CallResult,
    CallStatus,
    Case,
    Gate,
    Limits,
    Program,
    Rejection,
    RejectionReason,
    Role,
    Runner,
    matches,
)

from ...errors import InputError
from ...files import write_whole
from ...jobs.outputs import Report
from ...stats.tables import counted, counts_text
from .expectations import Expectation, MajorityExpectation, ReferenceExpectation, show_answer, was_asked
from .inputs import Suites, Target
from .output import group_lines, pytest_text
from .search import Attack, FailureGroup

LIMITS = Limits(reference_cpu_seconds_per_case=1.0, total_seconds=240.0)
"""The reference is asked for large inputs too; what takes it longer is left out. An attack says nothing about calls
that were never made: a program has time for many more than a judge asks of it."""


def check_programs(target: Target, runner: Runner) -> None:
    """Refuse programs that do not load in the sandbox.

    Raises:
        InputError: names the program and says why.
        SandboxUnavailableError: it could not be run.
    """
    programs = {f"the program under attack, {target.options.solution},": target.source}
    if target.reference is not None:
        programs[f"--reference {target.options.reference}"] = target.reference
    for number, source in enumerate(target.candidates, start=1):
        programs[f"program {number} of --candidates"] = source
    for name, source in programs.items():
        if error := _load_error(source, runner):
            raise InputError(
                f"{name} does not load in the sandbox: {error}. It must be one file that imports installed packages "
                "only, and does at import neither reading of files nor other input"
            )


def _load_error(source: str, runner: Runner) -> str:
    return runner.run(Program(source=source, calls=(), limits=LIMITS), role=Role.CANDIDATE).load_error


def run_attack(target: Target, suites: Suites, runner: Runner, *, drawn: Sequence[str] = ()) -> Report:
    """Find bugs and write their tests; the report fails where something was found or calls could not be asked.

    Args:
        target: what is attacked.
        suites: the tests to begin with.
        runner: runs all programs.
        drawn: programs of a Code LLM, beside the target's; those that do not load are left out.

    Raises:
        InputError: none of the asserts is a test, or no call has an answer to compare with.
        SandboxUnavailableError: something could not be run.
    """
    candidates = [*target.candidates, *(source for source in drawn if not _load_error(source, runner))]
    expectation: Expectation
    if target.reference is not None:
        expectation = ReferenceExpectation(target.reference, runner, limits=LIMITS)
    else:
        expectation = MajorityExpectation(candidates, runner, limits=LIMITS, num_threads=target.options.workers)
    gate = Gate(target.reference or target.source, (target.entry,), assert_chars=LIMITS.assert_chars)
    attack = Attack(source=target.source, expectation=expectation, runner=runner, limits=LIMITS, gate=gate)
    parsed = [gate.suite(suite) for suite in suites.suites]
    cases = [case for suite in parsed for case in suite.cases]
    rejections = [rejection for suite in parsed for rejection in suite.rejections]
    if not cases:
        raise InputError(_no_test(target, suites, rejections))
    tested = list(dict.fromkeys(case.call for case in cases))
    calls = attack.calls_near(tested, max_calls=target.options.max_calls) if target.options.mutate else tested
    lines = _start_lines(target, suites, rejections, num_tested=len(tested), num_calls=len(calls))
    expected = expectation.expect(calls)
    left_out = f"; not the others: {counts_text(expectation.refusals)}" if expectation.refusals else ""
    if target.reference is not None:
        lines.append(f"  the reference answers {len(expected)} of {len(calls)} calls{left_out}")
    else:
        lines.append(
            f"  no reference, {counted(len(candidates), 'other program')}: disagreements are told, not who is right; "
            f"{len(expected)} of {len(calls)} calls have an answer to compare with{left_out}"
        )
    if not expected and (target.reference is not None or candidates):
        who = f"--reference {target.options.reference}" if target.reference is not None else "the other programs"
        raise InputError(
            f"nothing to compare: {who} must answer at least one of {counted(len(calls), 'call')} with a value, got "
            f"none ({counts_text(expectation.refusals)}); take tests with valid arguments, or another program"
        )
    failures = attack.failures(list(expected))
    groups = attack.shrink_all(failures, max_bugs=target.options.max_bugs)
    lines += group_lines(groups)
    contradictions = []
    if target.reference is not None:
        lines += _write_tests(target, groups)
    else:
        contradictions = other_expectations(cases, attack.answers(tested, {}))
        if contradictions:
            lines.append("tests that expect another output than your function's (which is wrong is not known)")
            lines += contradictions[: target.options.max_bugs]
    is_found = bool(groups) or (bool(contradictions) and not candidates)
    return _report(lines, target, is_found, len(attack.unasked | expectation.unasked))


def _no_test(target: Target, suites: Suites, rejections: Sequence[Rejection]) -> str:
    failures = counts_text(suites.extraction_failures)
    refused = f" (responses without asserts: {failures})" if failures else ""
    first = f"; the first: {rejections[0].text[:200]!r}: {rejections[0].detail[:200]}" if rejections else ""
    return (
        f"no test of the form `assert {target.entry}(literals) == literal` among "
        f"{counted(suites.num_asserts, 'assert')} in {counted(len(suites.suites), 'suite')}{refused}{first}; "
        "correct them, or take others"
    )


def _start_lines(
    target: Target, suites: Suites, rejections: Sequence[Rejection], *, num_tested: int, num_calls: int
) -> list[str]:
    num_suites = len(suites.suites) + suites.extraction_failures.total()
    changed = f", {num_calls - num_tested} more by small changes" if num_calls > num_tested else ""
    lines = [
        f"attack on {target.entry} of {target.options.solution.name}: {counted(num_suites, 'suite')}, "
        f"{counted(suites.num_asserts, 'assert')}, {counted(num_tested, 'different call')}{changed}"
    ]
    refused = Counter(one.reason.value for one in rejections if one.reason is not RejectionReason.DUPLICATE)
    if refused or suites.extraction_failures:
        lines.append(f"  left out: {counts_text(refused + suites.extraction_failures)}")
    return lines


def other_expectations(cases: Sequence[Case], answers: Mapping[Call, CallResult]) -> list[str]:
    """A line for each test that expects another output than the program's; which is wrong is not known.

    Args:
        cases: of all suites; a test of several suites stands there several times. The most frequent comes first.
        answers: the program's.
    """
    counts = Counter((case.call, case.expected_value) for case in cases)
    texts = {(case.call, case.expected_value): case.expected for case in reversed(cases)}
    lines = []
    for (call, expected), count in counts.most_common():
        answer = answers[call]
        is_right = answer.status is CallStatus.VALUE and matches(expected, answer.value)
        if was_asked(answer) and not is_right:
            suites = f"; {count} suites" if count > 1 else ""
            text = f"assert {call.text} == {texts[call, expected]}"
            lines.append(f"  {text}  # your function: {show_answer(answer)}{suites}")
    return lines


def _write_tests(target: Target, groups: Sequence[FailureGroup]) -> list[str]:
    bugs = [bug for group in groups for bug in group.bugs]
    options = target.options
    if not bugs or options.reference is None:
        return []
    reference = options.reference.name
    text = pytest_text(bugs, entry=target.entry, program=options.solution, output=target.output, reference=reference)
    try:
        write_whole(target.output, text)
    except OSError as error:
        raise InputError(f"--output {target.output} cannot be written: {error}; choose another") from error
    return [f"written: {target.output} ({counted(len(bugs), 'test')}; run `pytest {target.output}`)"]


def _report(lines: Sequence[str], target: Target, is_found: bool, num_unasked: int) -> Report:
    last, failure = [], ""
    if num_unasked:
        last.append(f"not complete: {counted(num_unasked, 'call')} could not be asked (time); lower --max-calls")
        failure = f"the attack on {target.options.solution} is not complete"
    if is_found:
        failure = f"{target.options.solution} fails, or tests contradict it; see above"
    else:
        last.append("nothing found in the others" if num_unasked else "nothing found")
    return Report(text="\n".join([*lines, *last]), failure=failure)
