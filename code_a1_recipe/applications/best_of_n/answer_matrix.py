"""Programs x tests -> answers, without a reference: what each program returns, and which expected output agrees.

Axes: N programs of one question, M tests.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sandbox import (
    Call,
    CallResult,
    CallStatus,
    Interface,
    Limits,
    Program,
    ProgramResult,
    Role,
    Runner,
    matches,
    parse_suite,
)

from ...algorithm.question import definitions
from ...jobs.judge_loop import in_parallel
from .selection_rules import NO_ANSWER, Answers, Passes


def interface_of(programs: Sequence[str], entry_points: Sequence[str]) -> Interface:
    """Signatures as the first program that defines all entry points has them; without one, names alone."""
    defining = (source for source in programs if set(entry_points) <= definitions(source).keys())
    return Interface.of(next(defining, ""), tuple(entry_points))


def ask_programs(
    programs: Sequence[str],
    calls: Sequence[Call],
    runner: Runner,
    *,
    prelude: str = "",
    isolated: bool = False,
    limits: Limits | None = None,
    ask_all: bool = False,
    num_threads: int = 1,
) -> list[ProgramResult]:
    """Ask every program every call, each program once, in the sandbox; results in the order of the programs.

    Args:
        isolated: each call in a freshly loaded process; otherwise all of a program share one, in this order.
        limits: of one program; the runner's own if None.
        ask_all: also what is left of a program that hung in its first calls.
        num_threads: programs that run at once; more than the runner's workers wait for one another.

    Raises:
        SandboxUnavailableError: a program could not be run, which says nothing about it.
    """
    chosen = limits if limits is not None else runner.limits

    def ask(place: int) -> ProgramResult:
        program = Program(
            prelude=prelude,
            source=programs[place],
            calls=tuple(calls),
            limits=chosen,
            isolated=isolated,
        )
        if ask_all:
            program = replace(program, max_timeouts_without_result=len(calls) + 1)
        return runner.run(program, role=Role.CANDIDATE)

    places = range(len(programs))
    asked = dict(in_parallel(places, ask, num_threads=max(1, num_threads)))
    return [asked[place] for place in places]


def answer_matrix(
    programs: Sequence[str],
    suites: Iterable[Sequence[str]],
    runner: Runner,
    *,
    entry_points: Sequence[str],
    prelude: str = "",
    num_threads: int = 1,
) -> tuple[Passes, Answers]:
    """Run N programs on all M tests of all suites.

    Args:
        programs: sources of model-written programs; copies are run once.
        suites: ``suites[s]`` holds the texts of suite s's asserts. What is no ``assert f(literals) == literal`` is left
            out, and so is what repeats a call of its suite; a test of two suites counts twice.
        runner: runs the programs.
        entry_points: names of the functions and classes that tests may call.
        prelude: executed before each program.
        num_threads: programs that run at once.

    Returns:
        passes_NM: the answer is the value that the test expects, by ``sandbox.matches``.
        answers_NM: equal numbers in a column are equal answers: values that match, or exceptions of one type. A program
            that hangs, dies, gives no plain value or does not load has ``NO_ANSWER``.

    Raises:
        SandboxUnavailableError: a program could not be run.
    """
    interface = interface_of(programs, entry_points)
    cases = [case for suite in suites for case in parse_suite(suite, interface).cases]
    calls = list(dict.fromkeys(case.call for case in cases))
    distinct = list(dict.fromkeys(programs))
    results = ask_programs(distinct, calls, runner, prelude=prelude, num_threads=num_threads)
    column = {call: index for index, call in enumerate(calls)}
    answers_of = {
        source: [result.results[column[case.call]] if result.loaded else None for case in cases]
        for source, result in zip(distinct, results, strict=True)
    }
    answers_N = [answers_of[source] for source in programs]
    passes_NM = np.zeros((len(programs), len(cases)), dtype=np.bool_)
    for place, answers in enumerate(answers_N):
        passes_NM[place] = [
            answer is not None and answer.status is CallStatus.VALUE and matches(case.expected_value, answer.value)
            for case, answer in zip(cases, answers, strict=True)
        ]
    return passes_NM, answer_ids(answers_N, len(cases))


def answer_ids(answers_N: Sequence[Sequence[CallResult | None]], num_tests: int) -> Answers:
    """``answers_NM`` of :func:`answer_matrix`, of raw answers; ids count from 0 in each column."""
    ids_NM = np.full((len(answers_N), num_tests), NO_ANSWER, dtype=np.int64)
    for place in range(num_tests):
        groups = group_answers([row[place] for row in answers_N])
        for number, group in enumerate(groups):
            ids_NM[list(group), place] = number
    return ids_NM


def group_answers(answers: Sequence[CallResult | None]) -> list[tuple[int, ...]]:
    """Indices of equal answers to one call, in order of first appearance; what is no answer is in no group.

    Floats are equal within the judge's tolerance, and so are those that a chain of such answers joins: a tolerance
    alone is not transitive, and groups must not depend on the order of the programs.
    """
    same: dict[Any, list[int]] = {}
    for index, answer in enumerate(answers):
        key = _key(answer)
        if key is not None:
            same.setdefault(key, []).append(index)
    groups: list[tuple[list[Any], list[int]]] = []
    for key, indices in same.items():
        joined = [group for group in groups if any(_match(key, other) for other in group[0])]
        groups = [group for group in groups if group not in joined]
        keys = [key, *(other for group in joined for other in group[0])]
        groups.append((keys, sorted([*indices, *(index for group in joined for index in group[1])])))
    return sorted(tuple(indices) for _, indices in groups)


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


def _match(one: bytes | str, other: bytes | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return matches(one, other) or matches(other, one)
