"""One runner that all tests share, except tests that break their runner."""

from collections.abc import Iterator

import pytest

from sandbox import Judge, JudgeRequest, Limits, LocalRunner

LIMITS = Limits(cpu_seconds_per_case=0.4, wall_seconds_per_case=2.0)


@pytest.fixture(scope="session")
def runner() -> Iterator[LocalRunner]:
    with LocalRunner(num_workers=2, limits=LIMITS) as shared:
        yield shared


@pytest.fixture
def ask(runner):
    """Judge one candidate against one suite: ``ask(reference, candidate, *asserts, **request)``."""

    def run(reference, candidate, *asserts, judge=None, **request):
        judge = judge or Judge(runner)
        return judge.judge(
            JudgeRequest(question_id="q", reference=reference, candidate=candidate, suites=(asserts,), **request)
        )

    return run
