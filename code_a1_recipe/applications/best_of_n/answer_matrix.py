"""Programs x tests -> answers, without a reference: what each program returns, and which expected output agrees.

Axes: N programs of one question, M tests.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sandbox import (
    CallResult,
    CallStatus,
    Case,
    Interface,
    Kind,
    Program,
    ProgramResult,
    Role,
    Runner,
    Same,
    comparison,
    matches,
    parse_suite,
)

from ...algorithm.question import Question, definitions
from ...jobs.judge_loop import in_parallel
from .selection_rules import NO_ANSWER, Answers, Passes


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
        passes_NM: the answer is the value that the test expects, by ``sandbox.matches`` or the checker.
        answers_NM: equal numbers in a column, from 0, are equal answers: values that match, or exceptions of one type.
            A program that hangs, dies, gives no plain value or does not load has ``NO_ANSWER``, as has everywhere one
            that gives no value at all: programs that lack one import agree about nothing.

    Raises:
        SandboxUnavailableError: a program could not be run, which says nothing about it.
    """
    same = comparison(about.kind, about.checker)
    calls = tuple(dict.fromkeys(case.call for case in cases))

    def ask(source: str) -> ProgramResult:
        program = Program(
            prelude=about.prelude, source=source, calls=calls, limits=runner.limits, reads_input=about.reads_input
        )
        return runner.run(program, role=Role.CANDIDATE)

    results = dict(in_parallel(dict.fromkeys(programs), ask, num_threads=num_threads))
    usable = {
        source
        for source, result in results.items()
        if any(answer.status is CallStatus.VALUE for answer in result.results)
    }
    shape = len(programs), len(cases)
    passes_NM = np.zeros(shape, dtype=np.bool_)
    answers_NM = np.full(shape, NO_ANSWER, dtype=np.int64)
    for place, case in enumerate(cases):
        column = calls.index(case.call)
        answers_N = [results[source].results[column] if source in usable else None for source in programs]
        for number, answer in enumerate(answers_N):
            if answer is not None and answer.status is CallStatus.VALUE:
                passes_NM[number, place] = same(case.expected_value, answer.value)
        for number, group in enumerate(group_answers(answers_N, same)):
            answers_NM[list(group), place] = number
    return passes_NM, answers_NM


def group_answers(answers: Sequence[CallResult | None], same: Same = matches) -> list[tuple[int, ...]]:
    """Indices of equal answers to one call, in order of first appearance; what is no answer is in no group.

    Floats are equal within the judge's tolerance, and so are those that a chain of such answers joins: a tolerance
    alone is not transitive, and groups must not depend on the order of the programs.
    """
    keys = [_key(answer) for answer in answers]
    groups: list[list[int]] = []
    for index, key in enumerate(keys):
        if key is None:
            continue
        joined = [index]
        apart = []
        for group in groups:
            if any(_match(key, keys[other], same) for other in group):
                joined += group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return sorted(tuple(sorted(group)) for group in groups)


def _key(answer: CallResult | None) -> bytes | str | None:
    """Bytes of a value, name of an exception's type; None for no answer."""
    if answer is None:
        return None
    if answer.status is CallStatus.VALUE:
        return answer.value
    return error_name(answer.detail) if answer.status is CallStatus.RAISED else None


def error_name(detail: str) -> str:
    """The exception's type in the remark of a RAISED answer: ``ValueError: no digits`` -> ``ValueError``."""
    return detail.partition(":")[0].strip()[:80]


def _match(one: Any, other: Any, same: Same) -> bool:
    if one == other:
        return True
    return isinstance(one, bytes) and isinstance(other, bytes) and (same(one, other) or same(other, one))
