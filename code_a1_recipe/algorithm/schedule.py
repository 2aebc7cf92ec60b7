"""Alternation of the two updates: the policies that are updated at each step."""

from .settings_block import Amount, Block, Seconds

POLICY_NAMES = ("code", "test")


class UpdateSchedule(Block):
    """Updates each policy at every n-th step (n = 0: never). By default both update at every step, as in the paper."""

    code_every: Amount = 1
    """Steps between updates of the Code LLM."""
    test_every: Amount = 1
    """Steps between updates of the Test LLM."""
    update_timeout_seconds: Seconds = 7200.0
    """Seconds that a policy's update may take."""

    def every(self, policy: str) -> int:
        """Steps between updates of a policy, "code" or "test"; 0 for never."""
        return self.code_every if policy == "code" else self.test_every

    def policies_at(self, step: int) -> tuple[str, ...]:
        """The policies that update at ``step`` (1-based), in the order "code", "test".

        Example:
            >>> UpdateSchedule(test_every=2).policies_at(1)
            ('code',)
        """
        due = []
        for name in POLICY_NAMES:
            every = self.every(name)
            # Steps count from 1, so the update comes at the last of each n steps.
            if every and step % every == 0:
                due.append(name)
        return tuple(due)
