"""One runner that all tests share, except tests that break their runner."""

from collections.abc import Iterator

import pytest

from sandbox import Judge, JudgeRequest, Limits, LocalRunner, Program, ProgramResult, Role

LIMITS = Limits(cpu_seconds_per_case=0.4, wall_seconds_per_case=2.0)


@pytest.fixture(scope="session")
def runner() -> Iterator[LocalRunner]:
    with LocalRunner(num_workers=2, limits=LIMITS) as shared:
        yield shared


class CountingRunner:
    """A runner that notes the role of each program."""

    def __init__(self, runner: LocalRunner) -> None:
        self.limits = runner.limits
        self.roles: list[str] = []
        self._runner = runner

    def run(self, program: Program, *, role: Role) -> ProgramResult:
        self.roles.append(role.value)
        return self._runner.run(program, role=role)


@pytest.fixture
def counting(runner):
    return CountingRunner(runner)


@pytest.fixture
def ask(runner):
    """Judge one candidate against one suite: ``ask(reference, candidate, *asserts, **request)``."""

    def run(reference, candidate, *asserts, judge=None, **changes):
        fields = {"question_id": "q", "suites": (asserts,)} | changes
        return (judge or Judge(runner)).judge(JudgeRequest(reference=reference, candidate=candidate, **fields))

    return run
