"""Which policy is updated at which step."""

from dataclasses import dataclass

POLICY_NAMES = ("code", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSchedule:
    """Update a policy at every n-th step; 0 keeps it frozen. Both at every step, as published, by default."""

    code_every: int = 1
    """Steps between updates of the Code LLM."""
    test_every: int = 1
    """Steps between updates of the Test LLM."""

    def __post_init__(self) -> None:
        for name, every in (("code_every", self.code_every), ("test_every", self.test_every)):
            if every < 0:
                raise ValueError(f"schedule.{name} must be at least 0 (0 keeps the policy frozen), got {every!r}")
        if not self.code_every and not self.test_every:
            raise ValueError("schedule.code_every and schedule.test_every are both 0: nothing would train")

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
        every = dict(zip(POLICY_NAMES, (self.code_every, self.test_every), strict=True))
        return tuple(name for name in POLICY_NAMES if every[name] and step % every[name] == 0)
