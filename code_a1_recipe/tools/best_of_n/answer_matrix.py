"""Programs x tests -> answers, without a reference: what each program returns, and which expected output agrees.

Axes: N programs of one question, M tests.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from sandbox import CallResult, CallStatus, Kind, Program, Role, Runner
from sandbox.text import Case, Interface, Same, comparison, matches, parse_suite

from ...algorithm.question import Question, definitions
from ...jobs.judge_loop import in_parallel
from .selection_rules import NO_ANSWER, Answers, Passes

Answer = bytes | str | None
"""Bytes of a value, or the name of an exception's type; None for no answer."""


def interface_of(programs: Sequence[str], about: Question) -> Interface:
    """Signatures as the first program that defines all entry points has them; without one, names alone."""
    names = {name.partition(".")[0] for name in about.entry_points}  # `Stack.items` is read of what `Stack` makes
    definer = next((program for program in programs if names <= definitions(program).keys()), "")
    return Interface.of(definer, about.entry_points, kind=Kind(about.kind))


def read_cases(programs: Sequence[str], suites: Iterable[Sequence[str]], about: Question) -> list[Case]:
    """The tests of all suites that can be asked, suite by suite: the M of :func:`answer_matrix`."""
    interface = interface_of(programs, about)
    return [case for suite in suites for case in parse_suite(suite, interface).cases]


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
        programs: sources of model-written programs; copies are run once.
        cases: of :func:`read_cases`; a test of two suites counts twice. Each different call is made once.
        runner: runs the programs.
        about: says what is executed before each program, and how printed outputs are compared.
        num_threads: programs that run at once.

    Returns:
        passes_NM: the answer is the value that the test expects, by ``sandbox.text.matches`` or the checker.
        answers_NM: equal numbers in a column, from 0, are equal answers: values that match, or exceptions of one type.
            A program that hangs, dies, gives no plain value or does not load has ``NO_ANSWER``, as has everywhere one
            that gives no value at all: programs that lack one import agree about nothing.

    Raises:
        SandboxUnavailableError: a program could not be run, which says nothing about it.
    """
    same = comparison(about.kind, about.checker)
    calls = tuple(dict.fromkeys(case.call for case in cases))

    def ask(source: str) -> list[Answer]:
        program = Program(
            prelude=about.prelude, source=source, calls=calls, limits=runner.limits, reads_input=about.reads_input
        )
        answers = [_answer(one) for one in runner.run(program, role=Role.CANDIDATE).results]
        return answers if any(isinstance(one, bytes) for one in answers) else [None] * len(calls)

    answers_of = dict(in_parallel(dict.fromkeys(programs), ask, num_threads=num_threads))
    shape = len(programs), len(cases)
    passes_NM = np.zeros(shape, dtype=np.bool_)
    answers_NM = np.full(shape, NO_ANSWER, dtype=np.int64)
    for place, case in enumerate(cases):
        column = calls.index(case.call)
        answers_N = [answers_of[source][column] for source in programs]
        passes_NM[:, place] = [isinstance(one, bytes) and same(case.expected_value, one) for one in answers_N]
        for number, group in enumerate(group_answers(answers_N, same)):
            answers_NM[list(group), place] = number
    return passes_NM, answers_NM


def group_answers(answers: Sequence[Answer], same: Same = matches) -> list[tuple[int, ...]]:
    """Indices of equal answers to one call, in order of first appearance; what is no answer is in no group.

    Floats are equal within the judge's tolerance, and so are those that a chain of such answers joins: a tolerance
    alone is not transitive, and groups must not depend on the order of the programs.
    """
    groups: list[list[int]] = []
    for index, answer in enumerate(answers):
        if answer is None:
            continue
        joined = [index]
        apart = []
        for group in groups:
            if any(_match(answer, answers[other], same) for other in group):
                joined += group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return sorted(tuple(sorted(group)) for group in groups)


def _answer(result: CallResult) -> Answer:
    if result.status is CallStatus.VALUE:
        return result.value
    return error_name(result.detail) if result.status is CallStatus.RAISED else None


def error_name(detail: str) -> str:
    """The exception's type in the remark of a RAISED answer: ``ValueError: no digits`` -> ``ValueError``."""
    return detail.partition(":")[0].strip()[:80]


def _match(one: Answer, other: Answer, same: Same) -> bool:
    if one == other:
        return True
    return isinstance(one, bytes) and isinstance(other, bytes) and (same(one, other) or same(other, one))
