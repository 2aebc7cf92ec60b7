"""Every runner of the sandbox against every check of ``sandbox.conformance``."""

import pytest

from sandbox import CallStatus, LocalRunner, ProgramResult, Role, SandboxFusionRunner, SandboxUnavailableError
from sandbox.conformance import CHECKS, LIMITS, run_checks

STAYING_OPEN = [name for name, check in CHECKS.items() if not check.closes]
CLOSING = [name for name, check in CHECKS.items() if check.closes]


def make(kind, service):
    if kind == "local":
        return LocalRunner(num_workers=2, limits=LIMITS)
    return SandboxFusionRunner(service.url, num_workers=2, limits=LIMITS)


@pytest.fixture(scope="module", params=["local", "fusion"])
def runner(request, fusion_service):
    with make(request.param, fusion_service) as made:
        yield made


@pytest.mark.parametrize("name", STAYING_OPEN)
def test_the_runner(name, runner, conform):
    conform(name, runner)


@pytest.mark.parametrize("kind", ["local", "fusion"])
@pytest.mark.parametrize("name", CLOSING)
def test_the_runner_at_its_end(name, kind, fusion_service, conform):
    with make(kind, fusion_service) as own:
        conform(name, own)


class BrokenRunner:
    """Answers everything with one empty result."""

    limits = LIMITS

    def run(self, program, *, role):
        if role is Role.REFERENCE:
            raise SandboxUnavailableError("no such role")
        return ProgramResult(loaded=True, load_error="", results=(), cpu_seconds=0.0, wall_seconds=0.0)

    def close(self):
        pass


def test_the_checks_number_at_least_forty_and_a_broken_runner_fails_most_of_them():
    results = run_checks(BrokenRunner(), may_close=True)
    assert len(results) == len(CHECKS) >= 40
    passed = sorted(result.name for result in results if not result.failed)
    assert passed == ["a_program_without_calls_loads", "the_runner_names_its_default_limits"] or len(passed) < 6, passed
    outage = next(result for result in results if result.name == "roles_have_hash_seeds_of_their_own_and_keep_them")
    assert outage.failure


class Forgetful(LocalRunner):
    """Loses the detail of what died: one small fault that one check must find."""

    def run(self, program, *, role):
        result = super().run(program, role=role)
        if any(answer.status is CallStatus.DIED for answer in result.results):
            return ProgramResult(
                loaded=True, load_error="", results=result.results[:-1], cpu_seconds=0.1, wall_seconds=0.1
            )
        return result


def test_a_failed_check_says_what_came_back():
    with Forgetful(num_workers=1, limits=LIMITS) as runner:
        (result,) = run_checks(runner, names=["leaving_by_exit_is_raised_or_died_and_costs_one_call"])
    assert result.failure == (
        "kinds of the answers: expected ['value', 'raised', 'died', 'value'], got ['value', 'raised', 'died']"
    )


def test_what_a_runner_declares_it_cannot_do_is_reported_as_such():
    class Unconfined(BrokenRunner):
        confines = False

    (result,) = run_checks(Unconfined(), names=["programs_cannot_start_processes"])
    assert (result.failed, result.not_applicable) == (False, "Unconfined declares confines = False")
