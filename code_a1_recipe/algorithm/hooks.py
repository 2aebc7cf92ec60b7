"""Hooks of extensions. An extension adds an idea to the paper's algorithm, and takes part in episodes, steps and
checkpoints.

The paper's algorithm needs no extension. ``code_a1_recipe.extensions`` has the shipped extensions, and the key
``extensions`` adds a user's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox import SuiteVerdict

from .episode_types import CandidateResult, Episode, EpisodeTask, SuiteResult
from .mistake_book import MistakeBook


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """One question of an episode, with all its programs judged and rewarded."""

    task: EpisodeTask
    candidates: Sequence[CandidateResult]
    """The C candidates."""
    all_cases: Sequence[SuiteVerdict | None]
    """For each candidate, the verdict on all cases written for any program of the question. None after an outage, for a
    program without a verdict of its own, or if neither the reward nor an extension needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraGroup:
    """A GRPO group in addition to the paper's groups."""

    policy: str
    """The policy that the group trains, "code" or "test"."""
    name: str
    """A name of letters and digits that no other extra group of the question has."""
    members: Sequence[tuple[int, CandidateResult | SuiteResult]]
    """Pairs of a unique number and a sample. A group with fewer than two rewards is left out."""

    def __post_init__(self) -> None:
        # The name becomes a part of each row's key in the batch.
        if self.policy not in ("code", "test") or not self.name.isalnum():
            rule = "policy must be code or test, and name must have only letters and digits"
            raise ValueError(f"ExtraGroup: {rule}, got policy={self.policy!r}, name={self.name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imitated:
    """One suite that the Test LLM imitates. Imitation is a supervised term of the Test LLM's update."""

    fields: Mapping[str, Any]
    """Fields of the Test LLM's prompt template: ``prompt``, ``entry_points``, ``reads_input`` and ``candidate``."""
    asserts: tuple[str, ...]
    weight: float
    """Advantage of each token of the suite. For comparison, advantages in a GRPO group have standard deviation 1."""


class Extension:
    """One idea that is not in the paper. A subclass overrides the hooks that it needs. The hooks of this class do
    nothing.

    The trainer has one instance, which keeps the extension's state. Each episode worker has another instance, which
    gets data only from its constructor and from tasks.
    """

    name = ""
    """A unique name of letters, digits and ``_``. Checkpoints, ``EpisodeTask.extras`` and
    ``Episode.found`` keep the extension's data under this name."""

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        """Change a task before a worker gets it. The trainer calls this hook, for training and for validation.

        Returns:
            The task itself or a changed copy.
        """
        return task

    def after_step(self, found: Sequence[Any]) -> dict[str, float]:
        """Learn from a step. The trainer calls this hook when the Mistake Book is updated.

        Args:
            found: what ``after_verdicts`` returned for the step's questions, in their order, without None.

        Returns:
            Metrics by their full names.
        """
        return {}

    def state(self) -> Any:
        """JSON values that a checkpoint keeps, or None. The trainer calls this hook."""
        return None

    def load_state(self, state: Any) -> None:
        """Restore a value that ``state`` returned. The trainer calls this hook if a checkpoint has such a value."""

    def needs_all_cases(self, task: EpisodeTask) -> bool:
        """Whether each program must meet all cases of its question, for ``after_verdicts``. A worker calls it."""
        return False

    def after_verdicts(self, judged: JudgedQuestion) -> Any:
        """Study a judged question without changing it. A worker calls this hook.

        Returns:
            Data that the worker sends to the trainer for ``after_step``, or None.
        """
        return None

    def metrics(self, episode: Episode) -> Iterable[tuple[str, float]]:
        """Pairs of a metric's name and value. A step shows the mean of the values. A worker calls this hook."""
        return ()

    def extra_groups(self, episode: Episode) -> Iterable[ExtraGroup]:
        """Groups that train a policy in addition to the paper's groups. A worker calls this hook."""
        return ()

    def imitated(self, task: EpisodeTask) -> Iterable[Imitated]:
        """Suites that the Test LLM imitates in this step. The suites may be of any question. A worker calls this hook.

        The hook needs a Test LLM. The hook does not work with ``algorithm.rollout_correction.bypass_mode``, because
        this mode takes log-probs from servers, and no server sampled these suites.
        """
        return ()
