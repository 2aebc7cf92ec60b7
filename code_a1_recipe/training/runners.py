"""The runner of a judge process (``sandbox.runner``), and the CPUs that Ray reserves for the process."""

from collections.abc import Iterator

from sandbox import LocalRunner, Runner, SandboxConfigError, SandboxFusionRunner, SandboxUnavailableError

from ..algorithm.settings import FUSION, RecipeSettings, SandboxSettings

_GREETING_TRIES = 2


def make_runner(settings: SandboxSettings) -> Runner:
    """Make the runner of one judge process.

    Raises:
        SandboxConfigError: this machine cannot confine programs as the settings ask, or the address has no service.
        SandboxUnavailableError: the service does not answer.
    """
    number, limits = settings.programs_per_worker, settings.limits
    if settings.runner == FUSION:
        return SandboxFusionRunner(settings.url or "", num_workers=number, limits=limits)
    return LocalRunner(
        num_workers=number,
        limits=limits,
        tier=settings.tier,
        allow_missing=settings.allow_missing,
    )


def cpus_per_judge(settings: SandboxSettings) -> int:
    """Return the CPUs that Ray reserves for a judge process and its programs. A service runs programs itself."""
    return 1 if settings.runner == FUSION else settings.programs_per_worker


def service_answers(config: RecipeSettings) -> Iterator[str]:
    """Rule: a remote sandbox service, if the run uses one, must be able to run a small program."""
    sandbox = config.sandbox
    if sandbox.runner != FUSION or not sandbox.url:
        return
    # A new runner sends the service a small program. The runner tries only twice, since a user waits for the answer.
    try:
        runner = SandboxFusionRunner(sandbox.url, limits=sandbox.limits, tries=_GREETING_TRIES)
        runner.close()
    except (SandboxConfigError, SandboxUnavailableError) as error:
        hint = "start the service, correct the address, or use sandbox.runner=local"
        yield f"sandbox.url={sandbox.url!r} cannot judge: {error}; {hint}"
