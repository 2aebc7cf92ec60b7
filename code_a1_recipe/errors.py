"""What ends a run that had started."""


class OutageError(RuntimeError):
    """The sandbox failed on too many candidates of a step; training on the rest would follow a biased sample."""


class StalledError(RuntimeError):
    """A server did not answer in time; nothing is made up for the response that is missing."""


def check_outages(share: float, *, limit: float, step: int, reason: str) -> None:
    """Refuse a step in which the sandbox failed too often.

    Args:
        share: of the step's candidates that it could not run, in [0, 1].
        limit: ``sandbox.max_outage_share``.
        reason: the first of the outages.

    Raises:
        OutageError: ``share`` is above ``limit``.
    """
    if share > limit:
        raise OutageError(
            f"the sandbox could not run {share:.0%} of the candidates of step {step}; sandbox.max_outage_share allows "
            f"{limit:.0%}. Nothing was updated in this step. The first of them: {reason[-300:]}. Try "
            "`python -m sandbox check` on the machine, then resume."
        )
