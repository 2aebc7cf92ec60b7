"""Alternation of the two updates: which policy is updated at which step."""

from .settings_block import Amount, Block

POLICY_NAMES = ("code", "test")


class UpdateSchedule(Block):
    """Update a policy at every n-th step; 0 keeps it frozen. Both at every step, as published, by default."""

    code_every: Amount = 1
    """Steps between updates of the Code LLM; 0 keeps it frozen."""
    test_every: Amount = 1
    """Steps between updates of the Test LLM; 0 keeps it frozen."""

    def policies_at(self, step: int) -> tuple[str, ...]:
        """The policies that update at ``step`` (1-based), in the order "code", "test".

        Raises:
            ValueError: ``step`` is below 1.

        Example:
            >>> UpdateSchedule(test_every=2).policies_at(1)
            ('code',)
        """
        if step < 1:
            raise ValueError(f"steps count from 1, got {step!r}")
        # Steps count from 1, so that a policy with `every` = n trains at the last of each n steps.
        every = dict(zip(POLICY_NAMES, (self.code_every, self.test_every), strict=True))
        return tuple(name for name in POLICY_NAMES if every[name] and step % every[name] == 0)
