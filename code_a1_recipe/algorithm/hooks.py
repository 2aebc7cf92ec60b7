"""Hooks: what an idea beside the paper may add to an episode, to a step and to a checkpoint.

The paper needs none of them. ``code_a1_recipe.extensions`` has the shipped ones, the key ``extensions`` adds a user's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .episode_types import CandidateResult, Episode, EpisodeTask, ExtraProgram, SuiteResult
from .mistake_book import MistakeBook


class Runner(Protocol):
    """What an extension may ask of the ``EpisodeRunner`` whose episode it extends."""

    async def write(self, task: EpisodeTask, name: str, template: str, fields: Mapping[str, Any]) -> CandidateResult:
        """Have the Code LLM write a program; ``name`` tells its sampling seed from those of the question's others.

        Raises:
            PromptTooLongError: the rendered template exceeds the configured length.
        """
        ...

    async def hidden(self, task: EpisodeTask, written: CandidateResult) -> dict[str, Any]:
        """Fields of the program's result: its verdict on the hidden tests, where the task asks for one."""
        ...

    async def judged(self, task: EpisodeTask, result: CandidateResult) -> CandidateResult:
        """The program with its verdict on ``result.suites`` and the replays, or with an outage."""
        ...

    async def pooled(
        self, task: EpisodeTask, result: CandidateResult, among: Sequence[CandidateResult]
    ) -> CandidateResult:
        """The judged program with its verdict on all cases that were written for the programs ``among``."""
        ...

    def rewarded(self, task: EpisodeTask, results: Sequence[CandidateResult]) -> Sequence[CandidateResult]:
        """Judged programs with the run's rewards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """One question of an episode when all its programs are judged and rewarded."""

    runner: Runner
    task: EpisodeTask
    candidates: Sequence[CandidateResult]
    """[C], with ``pooled`` where an extension or the reward needs all cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What an extension made of a judged question."""

    programs: tuple[ExtraProgram, ...] = ()
    """Programs written beside the candidates, for records and metrics."""
    kept: Any = None
    """What ``Extension.after_step`` gets of this question; it travels from a worker to the trainer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraGroup:
    """A GRPO group beside the paper's."""

    policy: str
    """"code" or "test": whom it trains."""
    name: str
    """Letters and digits; no other extra group of the question has it."""
    members: Sequence[tuple[int, CandidateResult | SuiteResult]]
    """Number in the group, and what was sampled. A group of which fewer than two have a reward is left out."""

    def __post_init__(self) -> None:
        if self.policy not in ("code", "test") or not self.name.isalnum():
            rule = "policy must be code or test, and name letters and digits"
            raise ValueError(f"ExtraGroup: {rule}, got policy={self.policy!r}, name={self.name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imitated:
    """One suite that the Test LLM imitates, a supervised term of its update."""

    fields: Mapping[str, Any]
    """Of its prompt template: ``prompt``, ``entry_points``, ``reads_input``, ``candidate``."""
    asserts: tuple[str, ...]
    weight: float
    """Advantage of the suite's tokens, where those of a group's suites spread by 1."""


class Extension:
    """One idea beside the paper. A subclass overrides what it needs; the base does nothing.

    The trainer has one instance, which keeps the state; each episode worker has another, which knows only what its
    constructor and the tasks tell it.
    """

    name = ""
    """Letters, digits and ``_``. It names the extension's part of a checkpoint, of ``EpisodeTask.extras`` and of
    ``Episode.found``, so no other extension has it."""

    def before_episode(self, task: EpisodeTask, book: MistakeBook) -> EpisodeTask:
        """The trainer: change a task of training or validation (``task.is_validation``) before a worker gets it."""
        return task

    def after_step(self, found: Sequence[Any]) -> dict[str, float]:
        """The trainer, once the Mistake Book is updated: learn from a step; returns metrics by their whole names.

        Args:
            found: ``Found.kept`` of the step's questions in their order, None left out.
        """
        return {}

    def state(self) -> Any:
        """The trainer: JSON values that a checkpoint keeps; None for nothing."""
        return None

    def load_state(self, state: Any) -> None:
        """The trainer, when a run resumes: what ``state`` returned. Not called where a checkpoint has nothing of it."""

    def needs_all_cases(self, task: EpisodeTask) -> bool:
        """A worker: whether each program must meet all cases of its question (``CandidateResult.pooled``)."""
        return False

    async def after_verdicts(self, work: JudgedQuestion) -> Found:
        """A worker: look at a judged question, and perhaps write more programs."""
        return Found()

    def metrics(self, episode: Episode) -> Iterable[tuple[str, float]]:
        """A worker: names and values, of which a step shows the means."""
        return ()

    def extra_groups(self, episode: Episode) -> Iterable[ExtraGroup]:
        """A worker: groups that train a policy beside the paper's."""
        return ()

    def imitated(self, task: EpisodeTask) -> Iterable[Imitated]:
        """A worker: suites that the Test LLM imitates in this step. They may belong to any question.

        There must be a Test LLM, and no ``algorithm.rollout_correction.bypass_mode``: no server sampled these suites.
        """
        return ()
