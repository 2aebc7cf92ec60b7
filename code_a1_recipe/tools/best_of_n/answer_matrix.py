"""Runs programs on tests without a reference, and compares their answers with each other and with expected outputs.

Axes: N programs of one question, M tests.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sandbox import Call, CallResult, CallStatus, Kind, Program, Role, Runner
from sandbox.text import Case, Interface, Same, comparison, matches, parse_suite

from ...algorithm.question import Question, definitions
from ...jobs.judge_loop import in_parallel
from .selection_rules import NO_ANSWER, Answers, Passes

Answer = bytes | str | None
"""Encoded return value, or name of the exception's type. None stands for no answer."""


def interface_of(programs: Sequence[str], about: Question) -> Interface:
    """Read the signatures from the first program that defines all entry points.

    If no program defines all entry points, the interface knows only their names.
    """
    # A program defines the class `Stack`, not the whole entry point `Stack.items`.
    names = {name.partition(".")[0] for name in about.entry_points}
    defining = (program for program in programs if names <= definitions(program).keys())
    source = next(defining, "")
    return Interface.of(source, about.entry_points, kind=Kind(about.kind))


def read_cases(programs: Sequence[str], suites: Iterable[Sequence[str]], about: Question) -> list[Case]:
    """Read the valid tests of all suites, suite by suite, as the M tests of :func:`answer_matrix`."""
    interface = interface_of(programs, about)
    cases: list[Case] = []
    for suite in suites:
        found: dict[str, Case] = {}
        for case in parse_suite(suite, interface).cases:
            found.setdefault(case.call.text, case)  # a suite that repeats a call counts it once
        cases += found.values()
    return cases


def answer_matrix(
    programs: Sequence[str],
    cases: Sequence[Case],
    runner: Runner,
    about: Question,
    *,
    num_threads: int = 1,
) -> tuple[Passes, Answers]:
    """Run N programs on M tests.

    Args:
        programs: sources of programs that a model wrote. Equal programs run only once.
        cases: tests from :func:`read_cases`. A test that stands in two suites counts twice, but equal calls are made
            only once.
        runner: runs the programs.
        about: the question, which gives the code that runs before each program, and the comparison of printed outputs.
        num_threads: number of programs that run at the same time.

    Returns:
        passes_NM: True if the answer matches the test's expected value. The question's checker decides, or without a
            checker ``sandbox.text.matches``.
        answers_NM: numbers from 0. Two programs have the same number in a column if their answers are equal. Two values
            are equal if they match, and two exceptions are equal if they have the same type. The number is
            ``NO_ANSWER`` for a call that hangs, dies or gives no plain value. A program that does not load or never
            returns a value has only ``NO_ANSWER``, so that two programs that lack the same import do not agree.

    Raises:
        SandboxUnavailableError: a program could not be run.
    """
    same = comparison(about.kind, about.checker)
    calls = tuple(dict.fromkeys(case.call for case in cases))

    def ask(source: str) -> Mapping[Call, Answer]:
        program = Program(
            prelude=about.prelude,
            source=source,
            calls=calls,
            limits=runner.limits,
            reads_input=about.reads_input,
        )
        results = runner.run(program, role=Role.CANDIDATE).results
        has_value = any(result.status is CallStatus.VALUE for result in results)
        if not has_value:
            return dict.fromkeys(calls)
        answers = map(_answer, results)
        return dict(zip(calls, answers, strict=True))

    distinct = dict.fromkeys(programs)
    answers_of = dict(in_parallel(distinct, ask, num_threads=num_threads))
    shape = len(programs), len(cases)
    passes_NM = np.zeros(shape, dtype=np.bool_)
    answers_NM = np.full(shape, NO_ANSWER, dtype=np.int64)
    for m, case in enumerate(cases):
        answers_N = [answers_of[source][case.call] for source in programs]
        for n, answer in enumerate(answers_N):
            if isinstance(answer, bytes):
                passes_NM[n, m] = same(case.expected_value, answer)
        groups = group_answers(answers_N, same)
        for number, group in enumerate(groups):
            answers_NM[list(group), m] = number
    return passes_NM, answers_NM


def group_answers(answers: Sequence[Answer], same: Same = matches) -> list[tuple[int, ...]]:
    """Group the indices of equal answers to one call, in order of first appearance. A missing answer has no group.

    Two floats are equal if they differ by at most the judge's tolerance, or if a chain of answers with such differences
    joins them. A tolerance alone is not transitive, so without chains the groups would depend on the order of the
    programs.
    """
    groups: list[list[int]] = []
    for index, answer in enumerate(answers):
        if answer is None:
            continue
        joined = [index]
        others = []
        for group in groups:
            is_equal = any(_match(answer, answers[member], same) for member in group)
            if is_equal:
                joined += group
            else:
                others.append(group)
        groups = [*others, joined]
    in_order = [tuple(sorted(group)) for group in groups]
    return sorted(in_order)


def _answer(result: CallResult) -> Answer:
    if result.status is CallStatus.VALUE:
        return result.value
    if result.status is CallStatus.RAISED:
        return error_name(result.detail)
    return None


def error_name(detail: str) -> str:
    """Read the exception's type from the detail of a RAISED result, such as ``ValueError: no digits``."""
    return detail.partition(":")[0].strip()[:80]


def _match(answer: Answer, other: Answer, same: Same) -> bool:
    if answer == other:
        return True
    if not isinstance(answer, bytes) or not isinstance(other, bytes):
        return False
    # `same` expects the right value as its first argument, but either answer may be the right one.
    return same(answer, other) or same(other, answer)
