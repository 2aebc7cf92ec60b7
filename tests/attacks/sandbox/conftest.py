"""A judge, a secret in its surroundings, and a question whose answers cannot be guessed."""

import os
import textwrap

import pytest

from sandbox import Judge, JudgeRequest, Limits, LocalRunner

REFERENCE = "def secret(n):\n    return (n * 7919 + 104729) % 1000003\n"
ANSWERS = {1: 112648, 2: 120567, 3: 128486, 4: 136405}
SUITE = tuple(f"assert secret({n}) == {answer}" for n, answer in ANSWERS.items())
LIMITS = Limits(
    cpu_seconds_per_case=0.2,
    wall_seconds_per_case=1.0,
    load_cpu_seconds=1.0,
    reference_cpu_seconds_per_case=0.5,
    memory_bytes=256 << 20,
    total_output_bytes=4 << 20,
)


def outcomes(results):
    return [outcome for outcome, _ in results]


@pytest.fixture(scope="session")
def runner():
    os.environ["SANDBOX_TEST_SECRET"] = "swordfish"
    with LocalRunner(limits=LIMITS) as shared:
        yield shared
    del os.environ["SANDBOX_TEST_SECRET"]


@pytest.fixture(autouse=True)
def honest_programs_are_unharmed(runner):
    """Whatever a test's attack did, the same pool credits an honest program right after it."""
    yield
    request = JudgeRequest(question_id="honest", reference=REFERENCE, candidate=REFERENCE, suites=(SUITE,))
    suite = Judge(runner).judge(request).suites[0]
    assert [case.outcome.value for case in suite.cases] == ["passed"] * 4


@pytest.fixture
def judged(runner):
    """Judge a candidate (the reference itself by default) by any suite of asserts."""

    def run(reference, *asserts, candidate=None):
        reference = textwrap.dedent(reference)
        source = reference if candidate is None else textwrap.dedent(candidate)
        request = JudgeRequest(question_id=reference, reference=reference, candidate=source, suites=(asserts,))
        return Judge(runner).judge(request).suites[0]

    return run


@pytest.fixture
def attack(judged):
    """Judge an attacking candidate; outcome and remark of its four cases, or fewer where each takes long."""

    def run(source, *, cases=4):
        suite = judged(REFERENCE, *SUITE[:cases], candidate=source)
        assert suite.num_valid == suite.num_expected_correct == cases
        return [(case.outcome.value, case.detail) for case in suite.cases]

    return run


@pytest.fixture
def comes_to(attack):
    """The different outcomes and remarks of an attack's four cases."""
    return lambda source: set(attack(source))


@pytest.fixture
def endings(attack):
    """The outcomes that an attack's four cases come to."""
    return lambda source: set(outcomes(attack(source)))


@pytest.fixture
def endings_of_one(attack):
    """The outcome of an attack's one case, for those whose every case takes long."""
    return lambda source: set(outcomes(attack(source, cases=1)))


@pytest.fixture
def refused(attack):
    """The candidate's ``attempt`` must raise OSError in every call; ``setup`` runs at load."""

    def run(attempt, setup=""):
        source = f"""{textwrap.dedent(setup)}
import ctypes, errno, os, signal, socket
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTTY, None)
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
def secret(n):
    try:
{textwrap.indent(textwrap.dedent(attempt).strip(), " " * 8)}
    except OSError as error:
        return 'refused' if error.errno in REFUSALS else repr(error)
    return 'breached'
"""
        assert attack(source) == [("wrong_value", "'refused'")] * 4

    return run
