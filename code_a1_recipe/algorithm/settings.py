"""The recipe's own configuration: one frozen block of keys for each block of ``config/code_a1.yaml``.

Each field has its bounds. The first line of a field's docstring is the hint in the message about a value out of bounds.
Rules about several blocks are in ``config/rules.py``.
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
"""Value of ``sandbox.runner`` with which programs run in a SandboxFusion service, and not on the run's own nodes."""


def _group_or_none(size: int) -> int:
    if size < 0 or size == 1:
        raise ValueError("at least 2, or 0 for no Test LLM (with rewards.code_tests=golden or hidden)")
    return size


def _validation_metric(name: str) -> str:
    if not name.startswith("val/"):
        raise ValueError("a validation metric (val/...)")
    return name


def _read_limits(raw: Any) -> Limits:
    if isinstance(raw, Limits):
        return raw
    if not isinstance(raw, Mapping):
        raise ValueError("a block of keys")  # pydantic collects ValueErrors as problems
    return Limits.from_mapping(raw, where="sandbox.limits")


class EpisodeSettings(Block):
    num_candidates: Annotated[int, Field(ge=2)]
    """C: programs that the Code LLM writes for one question; an advantage needs a group of at least 2."""
    num_suites: Annotated[int, AfterValidator(_group_or_none)]
    """S: suites that the Test LLM writes for one program; an advantage needs a group of at least 2."""
    cases_per_suite: Count
    """K: asserts that a suite should hold."""
    num_workers: Count
    """Number of processes that run episodes."""
    max_refills: Amount = 0
    """Number of rounds in which a step may replace questions whose programs all earned the same reward."""
    tester: str | None = None
    """``pkg://module:function`` or ``FILE.py:function`` that writes the suites; null: the Test LLM."""
    generation_timeout_seconds: Seconds = 3600.0
    """Seconds that a response may take, including its time in the server's queue."""
    max_log_probs_diff: Annotated[float, Field(ge=0)] | None = 0.15
    """The run stops if a response's log-probabilities differ by more than this on average (server and training)."""


class MistakeBookSettings(Block):
    enabled: bool
    replay_limit: Amount
    """Cases of one question that are replayed in a step."""


class SelectionSettings(Block):
    name: Annotated[str, one_of(GROUP_SELECTORS)]
    update_n: Count
    """With "topvar": number of a question's programs whose suites train the Test LLM."""


class SandboxSettings(Block):
    runner: Annotated[str, one_of(("local", FUSION))] = "local"
    """The place where programs run."""
    url: str | None = None
    """Address of the service, with runner "fusion"."""
    tier: Annotated[int, Field(ge=0, le=1)] = 0
    """Strength of the confinement on the run's own nodes; a service has its own confinement."""
    # YAML gives a list, and a strict block would refuse a list where the field is a tuple.
    allow_missing: Annotated[tuple[Annotated[str, one_of(OPTIONAL_FEATURES)], ...], Field(strict=False)] = ()
    """Protections that the kernel may lack."""
    num_workers: Count
    """Number of judge processes."""
    programs_per_worker: Count
    """Programs that one judge process runs at once."""
    judge_timeout_seconds: Seconds
    """Seconds until a program without a verdict counts as an outage, including its time in the queue."""
    max_outage_rate: Rate
    """Largest share of a step's candidates that may meet an outage of the sandbox; above it, the run stops."""
    limits: Annotated[Limits, PlainValidator(_read_limits)] = Limits()


class ValidationSettings(Block):
    num_candidates: Count
    """Programs sampled for one held-out question."""
    num_suites: Amount
    """Suites sampled for one program; 0: none."""
    greedy: bool = False
    """Also sample one program for each question at temperature 0."""
    num_buggy_program_suites: Amount = 0
    """Suites for each of a question's ``buggy_programs``, which are the same programs for every Test LLM."""
    until_timeout: bool = True
    """After a program's first time-out in a hidden test, its other hidden tests are skipped and count as failed."""
    hidden_in_training: bool = False
    """In training, also judge programs on the hidden tests. Metrics then show full rewards of incorrect programs."""


class CheckpointSettings(Block):
    keep_best: Annotated[str, AfterValidator(_validation_metric)] | None = None
    """Validation metric of ``metrics.jsonl``. The checkpoint with the largest value is kept too."""
    allow_new_questions: bool = False
    """A run may resume with other questions; their order then starts from the beginning."""
    leave_within_seconds: Seconds = 120.0
    """Longest time in seconds from Ctrl-C or SIGTERM to the end of the process."""


class SeedSettings(Block):
    """The keys of the block ``data`` that the algorithm needs."""

    seed: Amount
    """The seed of the order of questions and of all samples."""


class RecipeSettings(Block):
    """All blocks of the recipe. The configuration's other keys belong to verl."""

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
    """One model has both roles: it writes programs and suites, and learns from both rewards."""

    @property
    def seed(self) -> int:
        return self.data.seed

    @property
    def user_files(self) -> dict[str, Path]:
        """The user's own templates and reward functions, by key."""
        return self.prompts.user_files | self.rewards.user_files

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The policies that a run trains: both, or only "code"."""
        has_tester = self.episode.num_suites and not self.self_play and self.episode.tester is None
        return ("code", "test") if has_tester else ("code",)
