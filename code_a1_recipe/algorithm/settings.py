"""The recipe's own configuration: one frozen block of keys for each block of ``config/code_a1.yaml``.

Each field has its bounds, and its docstring is the hint in the message about a value out of bounds. Rules about several
blocks are in ``config/rules.py``.
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
"""Value of ``sandbox.runner`` for programs that run in a service; with "local" they run in the judge processes."""


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
        raise ValueError("a block of keys")  # pydantic collects ValueErrors as problems
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
    """How often a program that failed a case is written again with that case in the prompt."""
    max_refills: Amount = 0
    """Rounds in which other questions of the training set replace those whose programs all earned the same."""
    tester: str | None = None
    """``pkg://module:function`` or ``FILE.py:function`` that writes the suites; null: the Test LLM."""
    generation_timeout_seconds: Seconds = 3600.0
    """Seconds a response may take from its request on, the server's queue included."""
    max_probs_diff: Rate | None = 0.1
    """Mean difference between a token's probabilities at its server and in training, above which a run stops."""


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
    """The place where programs run."""
    url: str | None = None
    """Address of the service, with runner "fusion"."""
    tier: Annotated[int, Field(ge=0, le=2)] = 0
    """Strength of the confinement on the run's own nodes; a service has its own confinement."""
    # YAML has lists where a strict block wants a tuple.
    allow_missing: Annotated[tuple[Annotated[str, one_of(OPTIONAL_FEATURES)], ...], Field(strict=False)] = ()
    """Protections that the kernel may lack."""
    num_workers: Count
    """Judge processes."""
    programs_per_worker: Count
    """Programs that one judge process runs at once."""
    judge_timeout_seconds: Seconds
    """Seconds a program may wait for its verdict, the queue included, before it counts as an outage."""
    max_outage_rate: Rate
    """Share of a step's candidates that the sandbox may fail to run before the step stops."""
    limits: Annotated[Limits, PlainValidator(_read_limits)] = Limits()


class ValidationSettings(Block):
    num_candidates: Count
    """Programs sampled per held-out question."""
    num_suites: Amount
    """Suites sampled per program; 0: none."""
    greedy: bool = False
    """Also sample one program per question at temperature 0."""
    num_buggy_program_suites: Amount = 0
    """Suites for each of a question's ``buggy_programs``, which are the same programs for every Test LLM."""
    until_timeout: bool = True
    """A program that times out in one hidden test skips the others; it is incorrect in any case."""
    hidden_in_training: bool = False
    """In training, also judge programs on the hidden tests; metrics then show how often full reward is undeserved."""


class CheckpointSettings(Block):
    keep_best: Annotated[str, AfterValidator(_validation_metric)] | None = None
    """Validation metric, as in ``metrics.jsonl``, whose best checkpoint is kept beside the newest; larger is better."""
    allow_new_questions: bool = False
    """A run may resume on other questions; their order then begins anew."""
    leave_within_seconds: Seconds = 120.0
    """Most seconds from Ctrl-C or SIGTERM to the end of the process."""


class SeedSettings(Block):
    """The keys of the block ``data`` that the algorithm needs."""

    seed: Amount
    """The seed that fixes the order of questions and every sample."""


class RecipeSettings(Block):
    """All blocks of the recipe; all other keys belong to verl."""

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
    """One model has both roles: the Code LLM also writes the suites, and learns from both rewards."""

    @property
    def seed(self) -> int:
        return self.data.seed

    @property
    def user_files(self) -> dict[str, Path]:
        """The user's own templates and reward functions, by key."""
        return self.prompts.user_files | self.rewards.user_files

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The policies of a run: both, or "code" alone."""
        has_tester = self.episode.num_suites and not self.self_play and self.episode.tester is None
        return ("code", "test") if has_tester else ("code",)
