"""Programs x tests -> answers, without any reference: what each program says to each call, and whose claim agrees.

Axes: N programs of one question, M tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sandbox import (
    Call,
    CallResult,
    CallStatus,
    Case,
    Interface,
    Limits,
    Program,
    ProgramResult,
    Rejection,
    Role,
    Runner,
    SandboxUnavailableError,
    matches,
    parse_suite,
)

from ...data.asserts import top_level_names
from ...jobs.judge_loop import in_parallel
from .selection_rules import NO_ANSWER, Answers, Passes

Asked = ProgramResult | SandboxUnavailableError
"""What a program answered, or why it could not be run, which says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestTable:
    """The tests of one question: all well-formed cases of all suites, in written order."""

    __test__ = False  # no test class, whatever its name

    cases: tuple[Case, ...]
    suite_of_case: npt.NDArray[np.int64]
    """[M]; which suite each case stands in. A case that two suites share stands there twice; within a suite, once."""
    rejections: tuple[Rejection, ...]
    """What is no ``assert f(literals) == literal``, or repeats a call of its suite."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The distinct calls, in order of first use."""
        return tuple(dict.fromkeys(case.call for case in self.cases))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMatrix:
    """What N programs answered to M tests."""

    tests: TestTable
    programs: tuple[int, ...]
    """Index of each row's program among those given; programs lost to an outage have no row."""
    outages: dict[int, str]
    """Why a program could not be run, by its index."""
    answers: tuple[tuple[CallResult | None, ...], ...]
    """``answers[n][m]``: bytes of the value or the kind of failure; None where the program does not load."""
    load_errors: tuple[str, ...]
    """Empty where the program loads."""
    passes: Passes
    """[N, M]; the answer is the value that the test claims, by ``sandbox.matches``."""
    answer_ids: Answers
    """[N, M]; equal numbers in a column are equal answers: values that match, or exceptions of one type. A program
    that hangs, dies, gives no plain value or does not load has ``NO_ANSWER``."""


def interface_of(programs: Sequence[str], entry_points: Sequence[str]) -> Interface:
    """Signatures as the first program that defines all entry points has them; without one, names alone."""
    defining = (source for source in programs if set(entry_points) <= set(top_level_names(source)))
    return Interface.of(next(defining, ""), tuple(entry_points))


def gather_tests(suites: Iterable[Sequence[str]], interface: Interface) -> TestTable:
    """Gate the asserts of each suite.

    Args:
        suites: ``suites[s]`` holds the texts of suite s's asserts.
        interface: what a test may call.
    """
    parsed = [parse_suite(suite, interface) for suite in suites]
    numbers = [number for number, suite in enumerate(parsed) for _ in suite.cases]
    return TestTable(
        cases=tuple(case for suite in parsed for case in suite.cases),
        suite_of_case=np.array(numbers, dtype=np.int64),
        rejections=tuple(rejection for suite in parsed for rejection in suite.rejections),
    )


def ask_programs(
    programs: Sequence[str],
    calls: Sequence[Call],
    runner: Runner,
    *,
    prelude: str = "",
    isolated: bool = False,
    limits: Limits | None = None,
    num_threads: int = 1,
) -> list[Asked]:
    """Ask every program every call, each program once, in the sandbox; results in the order of the programs.

    Args:
        isolated: each call in a freshly loaded process; otherwise all of a program share one, in this order.
        limits: of one program; the runner's own if None.
        num_threads: programs that run at once; more than the runner's workers wait for one another.
    """
    chosen = limits if limits is not None else runner.limits

    def ask(source: str) -> Asked:
        program = Program(
            prelude=prelude,
            source=source,
            calls=tuple(calls),
            reference_cpu_seconds=(0.0,) * len(calls),
            limits=chosen,
            isolated=isolated,
        )
        try:
            return runner.run(program, role=Role.CANDIDATE)
        except SandboxUnavailableError as error:
            return error

    places = range(len(programs))
    asked = dict(in_parallel(places, lambda place: ask(programs[place]), num_threads=max(1, num_threads)))
    return [asked[place] for place in places]


def answer_matrix(
    programs: Sequence[str],
    suites: Iterable[Sequence[str]],
    runner: Runner,
    *,
    entry_points: Sequence[str],
    prelude: str = "",
    num_threads: int = 1,
) -> AnswerMatrix:
    """Run N programs on all tests of all suites.

    Args:
        programs: sources of model-written programs; copies are run once.
        suites: ``suites[s]`` holds the texts of suite s's asserts.
        runner: runs the programs.
        entry_points: names of the functions and classes that tests may call.
        prelude: executed before each program.
        num_threads: programs that run at once.

    Raises:
        SandboxUnavailableError: none of the programs could be run; where some could, see ``AnswerMatrix.outages``.
    """
    tests = gather_tests(suites, interface_of(programs, entry_points))
    distinct = list(dict.fromkeys(programs))
    asked = dict(
        zip(
            distinct,
            ask_programs(distinct, tests.calls, runner, prelude=prelude, num_threads=num_threads),
            strict=True,
        )
    )
    results = [asked[source] for source in programs]
    outages = {index: str(one) for index, one in enumerate(results) if isinstance(one, SandboxUnavailableError)}
    if programs and len(outages) == len(programs):
        raise SandboxUnavailableError(f"none of {len(programs)} programs could be run: {next(iter(outages.values()))}")
    ran = {index: one for index, one in enumerate(results) if isinstance(one, ProgramResult)}
    column = {call: index for index, call in enumerate(tests.calls)}
    place_M = [column[case.call] for case in tests.cases]
    answers_N = tuple(
        tuple(result.results[place] if result.loaded else None for place in place_M) for result in ran.values()
    )
    shape = (len(answers_N), len(place_M))
    return AnswerMatrix(
        tests=tests,
        programs=tuple(ran),
        outages=outages,
        answers=answers_N,
        load_errors=tuple(result.load_error for result in ran.values()),
        passes=np.array([_agreed(tests.cases, row) for row in answers_N], dtype=np.bool_).reshape(shape),
        answer_ids=answer_ids(answers_N, len(place_M)),
    )


def answer_ids(answers_N: Sequence[Sequence[CallResult | None]], num_tests: int) -> Answers:
    """``AnswerMatrix.answer_ids`` of raw answers; ids count from 0 in each column."""
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


def _agreed(cases: Sequence[Case], answers: Sequence[CallResult | None]) -> list[bool]:
    return [
        answer is not None and answer.status is CallStatus.VALUE and matches(case.expected_value, answer.value)
        for case, answer in zip(cases, answers, strict=True)
    ]
