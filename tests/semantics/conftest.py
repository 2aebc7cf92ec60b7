"""Fixtures for the rows of the table: one runner, and short ways to ask a judge.

A test that checks row SNN is called ``test_sNN_...``.
"""

import pytest

from sandbox import Judge, JudgeRequest, Limits, LocalRunner

LIMITS = Limits(cpu_seconds_per_case=0.4, wall_seconds_per_case=1.0, load_cpu_seconds=2.0)
NAMES = "from collections import *\nfrom decimal import Decimal\nfrom fractions import Fraction\nfrom math import *\n"


@pytest.fixture(scope="session")
def runner():
    with LocalRunner(num_workers=1, limits=LIMITS) as shared:
        yield shared


@pytest.fixture
def ask(runner):
    """Judge one candidate against one suite: ``ask(reference, candidate, *asserts, **request)``."""

    def run(reference, candidate, *asserts, limits=LIMITS, **request):
        judge = Judge(runner, limits=limits)
        return judge.judge(
            JudgeRequest(question_id="q", reference=reference, candidate=candidate, suites=(asserts,), **request)
        )

    return run


@pytest.fixture
def outcomes(ask):
    """The outcomes of a suite's valid cases."""
    return lambda *args, **request: [case.outcome.value for case in ask(*args, **request).suites[0].cases]


@pytest.fixture
def reasons(ask):
    """The reasons for which a suite's asserts were refused."""
    return lambda *args, **request: [one.reason.value for one in ask(*args, **request).suites[0].rejections]


@pytest.fixture
def meet(ask):
    """The outcome if the reference returns the value of one expression, and the candidate the value of another."""

    def run(reference, candidate, *, given=""):
        program = NAMES + given + "\ndef f():\n    return {}\n"
        suite = ask(program.format(reference), program.format(candidate), "assert f() == 0").suites[0]
        return suite.cases[0].outcome.value if suite.cases else suite.rejections[0].reason.value

    return run


@pytest.fixture
def compare(ask):
    """Check which pairs of two expressions, the reference's and the candidate's, are equal, and which are not."""

    def run(same=(), different=(), given=""):
        pairs = (*same, *different)
        reference, candidate = (
            f"{NAMES}{given}\ndef f(k):\n    return [{', '.join(f'lambda: {pair[side]}' for pair in pairs)}][k]()\n"
            for side in (0, 1)
        )
        asserts = [f"assert f({place}) == 0" for place in range(len(pairs))]
        cases = ask(reference, candidate, *asserts).suites[0].cases
        found = [(pair, case.outcome.value) for pair, case in zip(pairs, cases, strict=True)]
        assert found == [(pair, "passed") for pair in same] + [(pair, "wrong_value") for pair in different]

    return run
