"""A judge, a secret in its surroundings, and a question whose answers cannot be guessed."""

import os
import textwrap
from collections.abc import Callable, Iterator, Sequence

import pytest

from sandbox import Judge, JudgeRequest, Limits, LocalRunner, SuiteVerdict

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


def outcomes(results: Sequence[tuple[str, str]]) -> list[str]:
    return [outcome for outcome, _ in results]


@pytest.fixture(scope="session")
def runner() -> Iterator[LocalRunner]:
    os.environ["SANDBOX_TEST_SECRET"] = "swordfish"
    with LocalRunner(limits=LIMITS) as shared:
        yield shared
    del os.environ["SANDBOX_TEST_SECRET"]


@pytest.fixture(autouse=True)
def honest_programs_are_unharmed(runner: LocalRunner) -> Iterator[None]:
    """Whatever a test's attack did, the same pool credits an honest program right after it."""
    yield
    request = JudgeRequest(question_id="honest", reference=REFERENCE, candidate=REFERENCE, suites=(SUITE,))
    suite = Judge(runner).judge(request).suites[0]
    assert [case.outcome.value for case in suite.cases] == ["passed"] * 4


@pytest.fixture
def judged(runner: LocalRunner) -> Callable[..., SuiteVerdict]:
    """Judge a candidate (the reference itself by default) by any suite of asserts."""

    def run(reference: str, *asserts: str, candidate: str | None = None) -> SuiteVerdict:
        reference = textwrap.dedent(reference)
        source = reference if candidate is None else textwrap.dedent(candidate)
        request = JudgeRequest(question_id=reference, reference=reference, candidate=source, suites=(asserts,))
        return Judge(runner).judge(request).suites[0]

    return run


@pytest.fixture
def attack(runner: LocalRunner) -> Callable[..., list[tuple[str, str]]]:
    """Judge an attacking candidate; outcome and remark of its four cases, or fewer where each takes long."""

    def run(source: str, *, cases: int = 4) -> list[tuple[str, str]]:
        request = JudgeRequest(
            question_id="secret", reference=REFERENCE, candidate=textwrap.dedent(source), suites=(SUITE[:cases],)
        )
        suite = Judge(runner).judge(request).suites[0]
        assert suite.num_valid == cases
        assert suite.num_expected_correct == cases
        return [(case.outcome.value, case.detail) for case in suite.cases]

    return run


@pytest.fixture
def comes_to(attack: Callable[..., list[tuple[str, str]]]) -> Callable[[str], set[tuple[str, str]]]:
    """The different outcomes and remarks of an attack's four cases."""
    return lambda source: set(attack(source))


@pytest.fixture
def endings(attack: Callable[..., list[tuple[str, str]]]) -> Callable[[str], set[str]]:
    """The outcomes that an attack's four cases come to."""
    return lambda source: set(outcomes(attack(source)))


@pytest.fixture
def endings_of_one(attack: Callable[..., list[tuple[str, str]]]) -> Callable[[str], set[str]]:
    """The outcome of an attack's one case, for those whose every case takes long."""
    return lambda source: set(outcomes(attack(source, cases=1)))


@pytest.fixture
def refused(attack: Callable[[str], list[tuple[str, str]]]) -> Callable[..., None]:
    """The candidate's ``attempt`` must raise OSError in every call; ``setup`` runs at load."""

    def run(attempt: str, setup: str = "") -> None:
        source = textwrap.dedent(setup) + (
            "\nimport ctypes, errno, os, signal, socket\n"
            "REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTTY, None)\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "def call(*arguments):\n"
            "    if libc.syscall(*arguments) < 0:\n"
            "        raise OSError(ctypes.get_errno(), 'refused')\n"
            "def secret(n):\n"
            "    try:\n"
            f"{textwrap.indent(textwrap.dedent(attempt).strip(), '        ')}\n"
            "    except OSError as error:\n"
            "        return 'refused' if error.errno in REFUSALS else repr(error)\n"
            "    return 'breached'\n"
        )
        assert attack(source) == [("wrong_value", "'refused'")] * 4

    return run
