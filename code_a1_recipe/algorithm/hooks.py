"""Hooks by which an extension, an idea beside the paper, adds to an episode, a step and a checkpoint.

The paper needs no extension. ``code_a1_recipe.extensions`` has the shipped ones, and the key ``extensions`` adds a
user's own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .episode_types import CandidateResult, Episode, EpisodeTask, ExtraProgram, SuiteResult
from .mistake_book import MistakeBook


class Runner(Protocol):
    """The methods of ``EpisodeRunner`` that an extension may call."""

    async def write(self, task: EpisodeTask, name: str, template: str, fields: Mapping[str, Any]) -> CandidateResult:
        """Let the Code LLM write a program; each program of a question has a sampling seed of its own, by ``name``.

        Raises:
            PromptTooLongError: the rendered template exceeds the configured length.
        """
        ...

    async def hidden(self, task: EpisodeTask, written: CandidateResult) -> dict[str, Any]:
        """Fields of the program's result: its verdict on the hidden tests, where the task asks for it."""
        ...

    async def judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        """The program with its verdict on ``result.suites`` and the replays, or with an outage."""
        ...

    async def pooled(
        self, task: EpisodeTask, result: CandidateResult, among: Sequence[CandidateResult]
    ) -> CandidateResult:
        """The judged program with a second verdict, in ``pooled``, on all cases written for the programs ``among``."""
        ...

    def rewarded(self, task: EpisodeTask, results: Sequence[CandidateResult]) -> Sequence[CandidateResult]:
        """Judged programs with the run's rewards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """One question of an episode, with all its programs judged and rewarded."""

    runner: Runner
    task: EpisodeTask
    candidates: Sequence[CandidateResult]
    """C candidates, with ``pooled`` where an extension or the reward needs all cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An extension's result for one judged question."""

    programs: tuple[ExtraProgram, ...] = ()
    """Programs written beside the candidates, for records and metrics."""
    kept: Any = None
    """Data for ``Extension.after_step``; it travels from a worker to the trainer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraGroup:
    """A GRPO group beside the paper's."""

    policy: str
    """The policy that it trains, "code" or "test"."""
    name: str
    """A name of letters and digits, different from those of the question's other extra groups."""
    members: Sequence[tuple[int, CandidateResult | SuiteResult]]
    """Pairs of a number in the group and a sample. A group with fewer than two rewards is left out."""

    def __post_init__(self) -> None:
        # The name becomes a part of the key of each row in the batch.
        if self.policy not in ("code", "test") or not self.name.isalnum():
            rule = "policy must be code or test, and name letters and digits"
            raise ValueError(f"ExtraGroup: {rule}, got policy={self.policy!r}, name={self.name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imitated:
    """One suite that the Test LLM imitates, a supervised term of its update."""

    fields: Mapping[str, Any]
    """Fields of the Test LLM's prompt template: ``prompt``, ``entry_points``, ``reads_input`` and ``candidate``."""
    asserts: tuple[str, ...]
    weight: float
    """Advantage of the suite's tokens. Advantages in a GRPO group have standard deviation 1."""


class Extension:
    """One idea beside the paper. A subclass overrides the hooks that it needs; the base does nothing.

    The trainer has one instance, which keeps the state. Each episode worker has another, which knows only what its
    constructor and the tasks tell it.
    """

    name = ""
    """A name of letters, digits and ``_`` that no other extension has. The extension's part of a checkpoint, of
    ``EpisodeTask.extras`` and of ``Episode.found`` stands under it."""

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        """Change a task before a worker gets it, also one of validation (``task.is_validation``). The trainer calls it.

        Returns:
            The task, or a changed copy.
        """
        return task

    def after_step(self, found: Sequence[Any]) -> dict[str, float]:
        """Learn from a step whose Mistake Book is updated. The trainer calls it.

        Args:
            found: ``Found.kept`` of the step's questions in their order, without None.

        Returns:
            Metrics by their whole names.
        """
        return {}

    def state(self) -> Any:
        """JSON values that a checkpoint keeps, or None. The trainer calls it."""
        return None

    def load_state(self, state: Any) -> None:
        """Take back what ``state`` returned. The trainer calls it at a resume, if the checkpoint has such a state."""

    def needs_all_cases(self, task: EpisodeTask) -> bool:
        """Whether each program must meet all cases of its question (``CandidateResult.pooled``). A worker calls it."""
        return False

    async def after_verdicts(self, judged: JudgedQuestion) -> Found:
        """Look at a judged question, and perhaps write more programs. A worker calls it."""
        return Found()

    def metrics(self, episode: Episode) -> Iterable[tuple[str, float]]:
        """Pairs of name and value; a step shows the means. A worker calls it."""
        return ()

    def extra_groups(self, episode: Episode) -> Iterable[ExtraGroup]:
        """Groups that train a policy beside the paper's groups. A worker calls it."""
        return ()

    def imitated(self, task: EpisodeTask) -> Iterable[Imitated]:
        """Suites, of any question, that the Test LLM imitates in this step. A worker calls it.

        This needs a Test LLM. It does not work with ``algorithm.rollout_correction.bypass_mode``, which takes the
        log-probs of servers, because no server sampled these suites.
        """
        return ()
