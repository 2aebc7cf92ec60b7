"""The recipe's own configuration: one frozen block of keys for each block of ``config/code_a1.yaml``.

Bounds stand beside the fields, and a field's docstring is the hint that a user reads about a value out of bounds. Rules
about several blocks are in ``config/rules.py``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator

from sandbox import OPTIONAL_FEATURES, Limits

from .prompts import PromptSettings
from .rewards import RewardSettings
from .schedule import UpdateSchedule
from .selection import GROUP_SELECTORS
from .settings_block import Amount, Block, Count, Rate, Seconds, one_of

FUSION = "fusion"
"""Programs run in a service; else, with "local", in the judge processes' own pools (``training.runners``)."""


def _group_or_none(size: int) -> int:
    if size < 0 or size == 1:
        raise ValueError("at least 2, or 0: no Test LLM (rewards.code_tests=golden or hidden)")
    return size


def _validation_metric(name: str) -> str:
    if not name.startswith("val/"):
        raise ValueError("a validation metric (val/...)")
    return name


def _read_limits(raw: Any) -> Limits:
    if isinstance(raw, Limits):
        return raw
    if not isinstance(raw, Mapping):
        raise ValueError("a block of keys")  # pydantic collects ValueErrors
    return Limits.from_mapping(raw, where="sandbox.limits")


class EpisodeSettings(Block):
    num_candidates: Annotated[int, Field(ge=2)]
    """C: programs the Code LLM writes for one question; an advantage is relative to the other members of its group."""
    num_suites: Annotated[int, AfterValidator(_group_or_none)]
    """S: suites the Test LLM writes for one program; an advantage is relative to the other members of its group."""
    cases_per_suite: Count
    """K: asserts a suite should hold."""
    num_workers: Count
    """Processes that run episodes."""
    repair_turns: Annotated[int, Field(ge=0, le=8)] = 0
    """How often a program that failed a case is shown it and written again; a batch has room for all turns."""
    max_refills: Amount = 0
    """Rounds in which questions whose programs all earned the same give way to others of the training set."""
    tester: str | None = None
    """``pkg://module:function`` or ``FILE.py:function`` that writes the suites; null: the Test LLM."""
    generation_timeout_seconds: Seconds = 3600.0
    """Seconds a response may take once its server is asked for it, the server's own queue included."""
    max_probs_diff: Rate | None = 0.1
    """Mean difference between the probability of a token at its server and in training, above which a run stops."""


class MistakeBookSettings(Block):
    enabled: bool
    replay_limit: Amount
    """Cases replayed for one question."""


class SelectionSettings(Block):
    name: Annotated[str, one_of(GROUP_SELECTORS)]
    update_n: Count
    """Programs of a question whose suites train the Test LLM, with "topvar"."""


class SandboxSettings(Block):
    runner: Annotated[str, one_of(("local", FUSION))] = "local"
    """Where programs run."""
    url: str | None = None
    """Address of the remote service, for the runner that uses one."""
    tier: Annotated[int, Field(ge=0, le=2)] = 0
    """Confinement on our own nodes; a service's is its own."""
    allow_missing: Annotated[tuple[Annotated[str, one_of(OPTIONAL_FEATURES)], ...], Field(strict=False)] = ()
    """Protections to do without where the kernel lacks them."""
    num_workers: Count
    """Judge processes."""
    programs_per_worker: Count
    """Programs that one judge process runs at once."""
    judge_timeout_seconds: Seconds
    """Seconds a program may wait for its verdict, the queue included; then it is an outage."""
    max_outage_rate: Rate
    """Candidates of a step that the sandbox may fail to run before the step stops."""
    limits: Annotated[Limits, PlainValidator(_read_limits)] = Limits()


class ValidationSettings(Block):
    num_candidates: Count
    """Programs sampled per held-out question."""
    num_suites: Amount
    """Suites sampled per program; 0: none."""
    greedy: bool = False
    """Also one program per question at temperature 0."""
    num_buggy_program_suites: Amount = 0
    """Suites for each of a question's ``buggy_programs``, which measure every Test LLM on the same programs."""
    until_timeout: bool = True
    """A program that times out in a hidden test is asked no further one: it is incorrect whatever they say."""
    hidden_in_training: bool = False
    """Judge training's programs on the hidden tests too, for metrics only: how often is full reward undeserved?"""


class CheckpointSettings(Block):
    keep_best: Annotated[str, AfterValidator(_validation_metric)] | None = None
    """Validation metric, as in ``metrics.jsonl``, whose best checkpoint is kept beside the newest; larger is better."""
    allow_new_questions: bool = False
    """Resume also on other questions; their order then begins anew."""
    leave_within_seconds: Seconds = 120.0
    """Seconds from Ctrl-C or SIGTERM to the end of the process, at most."""


class SeedSettings(Block):
    """The part of the block ``data`` that the algorithm needs."""

    seed: Amount
    """Fixes the order of questions and every sampling seed."""


class RecipeSettings(Block):
    """All blocks of the recipe; what is not here belongs to verl."""

    episode: EpisodeSettings
    prompts: PromptSettings
    rewards: RewardSettings
    mistake_book: MistakeBookSettings
    selection: SelectionSettings
    schedule: UpdateSchedule
    sandbox: SandboxSettings
    validation: ValidationSettings
    checkpoint: CheckpointSettings
    data: SeedSettings
    self_play: bool = False
    """One model in both roles: the Code LLM writes the suites too, and learns from both."""

    @property
    def seed(self) -> int:
        return self.data.seed

    @property
    def user_files(self) -> dict[str, Path]:
        """Templates and reward functions of the user's own, by key."""
        return self.prompts.user_files | self.rewards.user_files

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The policies that are started: both, or "code" alone."""
        has_tester = self.episode.num_suites and not self.self_play and self.episode.tester is None
        return ("code", "test") if has_tester else ("code",)
