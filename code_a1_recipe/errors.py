"""What ends a run that had started."""


class OutageError(RuntimeError):
    """The sandbox failed on too many candidates of a step; training on the rest would follow a biased sample."""


class StalledError(RuntimeError):
    """A server did not answer in time; nothing is made up for the response that is missing."""
