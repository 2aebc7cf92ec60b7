"""One attack from its tests to its report: calls, failures, minimal calls, and the pytest file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sandbox import Call, Case, Gate, Limits, Program, ProgramResult, Rejection, RejectionReason, Role, Runner, matches

from ...errors import InputError
from ...files import write_whole
from ...jobs.outputs import Report
from ...stats.tables import counted, counts_text
from .call_variants import variants
from .expectations import Expectation, Expected, MajorityExpectation, ReferenceExpectation
from .findings import Finding, other_expectations
from .inputs import Suites, Target
from .output import finding_lines, pytest_text
from .search import Attack

LIMITS = Limits(reference_cpu_seconds_per_case=1.0, total_seconds=240.0)
"""The reference is asked for large inputs too; what takes it longer is left out. An attack says nothing about calls
that were never made: a program has time for many more than a judge asks of it."""


def check_programs(target: Target, runner: Runner) -> None:
    """Refuse programs that do not load in the sandbox.

    Raises:
        InputError: names the program and says why.
        SandboxUnavailableError: it could not be run.
    """
    named = [(target.source, f"the program under attack, {target.options.solution},")]
    named += [(target.reference, f"--reference {target.options.reference}")] if target.reference is not None else []
    named += [(text, f"program {number} of --candidates") for number, text in enumerate(target.candidates, start=1)]
    for source, name in named:
        result = _loaded(source, runner)
        if not result.loaded:
            raise InputError(
                f"{name} does not load in the sandbox: {result.load_error}. It must be one file that imports installed "
                "packages only, and does at import neither reading of files nor other input"
            )


def _loaded(source: str, runner: Runner) -> ProgramResult:
    return runner.run(Program(source=source, calls=(), limits=LIMITS), role=Role.CANDIDATE)


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
    gate = Gate(target.reference or target.source, (target.entry,), assert_chars=LIMITS.assert_chars)
    parsed = [gate.suite(suite) for suite in suites.suites]
    cases = [case for suite in parsed for case in suite.cases]
    rejections = [rejection for suite in parsed for rejection in suite.rejections]
    _check_some(cases, rejections, suites, target)
    tested = list(dict.fromkeys(case.call for case in cases))
    calls = [*tested, *_variants(tested, gate, target)]
    loading = [source for source in drawn if _loaded(source, runner).loaded]
    target = replace(target, candidates=(*target.candidates, *loading))
    attack = Attack(
        source=target.source,
        expectation=ReferenceExpectation(target.reference, runner, limits=LIMITS)
        if target.reference is not None
        else MajorityExpectation(target.candidates, runner, limits=LIMITS, num_threads=target.options.workers),
        runner=runner,
        limits=LIMITS,
        gate=gate,
    )
    expected = attack.expectation.expect(calls)
    lines = _start_lines(target, suites, rejections, num_tested=len(tested), num_variants=len(calls) - len(tested))
    lines += _expectation_lines(target, attack.expectation, expected, cases, num_calls=len(calls))
    compares = target.reference is not None or bool(target.candidates)
    if compares and not expected:
        raise InputError(_nothing_compared(target, attack.expectation, len(calls)))
    failures = attack.failures(list(expected), confirm=True)
    num_unasked = len(attack.unasked) + len(attack.expectation.unasked.intersection(calls))
    findings = attack.shrink_all(failures, max_bugs=target.options.max_bugs)
    lines += finding_lines(findings)
    if target.reference is not None:
        return _report([*lines, *_write_tests(target, findings)], target, bool(findings), num_unasked)
    attack.unasked.clear()
    unmet = other_expectations(cases, attack.answers(tested, {}))
    if unmet:
        lines.append("tests that expect another output than your function's (which of the two is wrong is not known)")
        most = target.options.max_bugs
        lines += [*unmet[:most], *([f"  ... and {len(unmet) - most} more (--max-bugs)"] if len(unmet) > most else [])]
    is_found = bool(findings) or (bool(unmet) and not target.candidates)
    return _report(lines, target, is_found, num_unasked if target.candidates else len(attack.unasked))


def _nothing_compared(target: Target, expectation: Expectation, num_calls: int) -> str:
    who = f"--reference {target.options.reference}" if target.reference is not None else "the other programs"
    return (
        f"nothing to compare: {who} must answer at least one of {counted(num_calls, 'call')} with a value, got none "
        f"({counts_text(expectation.refusals)}); take tests with valid arguments, or another program to compare with"
    )


def _check_some(cases: Sequence[Case], rejections: Sequence[Rejection], suites: Suites, target: Target) -> None:
    if not cases:
        failures = counts_text(suites.extraction_failures)
        refused = f" (responses without asserts: {failures})" if failures else ""
        first = f"; the first: {rejections[0].text[:200]!r}: {rejections[0].detail[:200]}" if rejections else ""
        raise InputError(
            f"no test of the form `assert {target.entry}(literals) == literal` among "
            f"{counted(suites.num_asserts, 'assert')} in {counted(len(suites.suites), 'suite')}{refused}{first}; "
            "correct them, or take others"
        )


def _variants(tested: Sequence[Call], gate: Gate, target: Target) -> list[Call]:
    if not target.options.mutate:
        return []
    room = max(0, target.options.max_calls - len(tested))
    texts = variants([call.text for call in tested], {target.entry}, max_calls=room)
    cases = [case for text in texts if isinstance(case := gate.call(text), Case)]
    return list(dict.fromkeys(case.call for case in cases if case.call not in tested))


def _start_lines(
    target: Target, suites: Suites, rejections: Sequence[Rejection], *, num_tested: int, num_variants: int
) -> list[str]:
    num_suites = len(suites.suites) + suites.extraction_failures.total()
    variants_text = f", {num_variants} more by small changes" if num_variants else ""
    lines = [
        f"attack on {target.entry} of {target.options.solution.name}: {counted(num_suites, 'suite')}, "
        f"{counted(suites.num_asserts, 'assert')}, {counted(num_tested, 'different call')}{variants_text}"
    ]
    refused = Counter(one.reason.value for one in rejections if one.reason is not RejectionReason.DUPLICATE)
    if refused or suites.extraction_failures:
        lines.append(f"  left out: {counts_text(refused + suites.extraction_failures)}")
    return lines


def _expectation_lines(
    target: Target, expectation: Expectation, expected: dict[Call, Expected], cases: Sequence[Case], *, num_calls: int
) -> list[str]:
    without = f"; not the others: {counts_text(expectation.refusals)}" if expectation.refusals else ""
    if target.reference is None:
        return [
            f"  no reference, {counted(len(target.candidates), 'other program')}: disagreements are told, not who is "
            f"right; {len(expected)} of {num_calls} calls have an answer to compare with{without}"
        ]
    outputs = {(case.call, case.expected_value) for case in cases if case.call in expected}
    num_right = sum(matches(expected[call].value, output) for call, output in outputs)
    return [
        f"  the reference answers {len(expected)} of {num_calls} calls{without}",
        f"  {num_right} of {len(outputs)} expected outputs are the reference's; they decide nothing here",
    ]


def _write_tests(target: Target, findings: Sequence[Finding]) -> list[str]:
    bugs = [bug for finding in findings for bug in finding.bugs]
    if not bugs or target.options.reference is None:
        return []
    text = pytest_text(
        bugs,
        entry_points=(target.entry,),
        program=target.options.solution,
        output=target.output,
        reference=target.options.reference.name,
    )
    try:
        write_whole(target.output, text)
    except OSError as error:
        raise InputError(f"--output {target.output} cannot be written: {error}; choose another") from error
    num_tests = text.count("\ndef test_")
    slow = f", {counted(len(bugs) - num_tests, 'slow call')} as comments" if num_tests < len(bugs) else ""
    run = f"; run `pytest {target.output}`" if num_tests else ""
    return [f"written: {target.output} ({counted(num_tests, 'test')}{slow}{run})"]


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
