"""The runners of the sandbox keep the rules of every runner."""

import pytest

from sandbox import LocalRunner, ProgramResult, SandboxFusionRunner
from sandbox.checks.self_test import LIMITS, SELF_TEST

from ..runner_contract import RunnerContract, refuses_after_closing


def make(kind, service):
    if kind == "local":
        return LocalRunner(num_workers=2, limits=LIMITS)
    return SandboxFusionRunner(service.url, num_workers=2, limits=LIMITS)


class TestRunners(RunnerContract):
    @pytest.fixture(scope="class", params=["local", "fusion"])
    def runner(self, request, fusion_service):
        with make(request.param, fusion_service) as made:
            yield made


@pytest.mark.parametrize("kind", ["local", "fusion"])
def test_the_runner_at_its_end(kind, fusion_service):
    refuses_after_closing(make(kind, fusion_service))


def test_a_runner_that_runs_nothing_fails_every_quick_check_and_says_what_came_back():
    class Empty:
        limits = LIMITS

        def run(self, program, *, role):
            return ProgramResult(loaded=True, load_error="")

    failures = [check.failure(Empty()) for check in SELF_TEST]
    assert all(" results of " in failure for failure in failures)


def test_what_a_runner_declares_it_cannot_do_does_not_apply():
    class Unconfined:
        confines = False

    reasons = {check.not_applicable(Unconfined()) for check in SELF_TEST if check.needs}
    assert reasons == {"Unconfined declares confines = False"}
