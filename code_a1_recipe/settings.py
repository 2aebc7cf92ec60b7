"""The recipe's own configuration as frozen types; hydra is read here and nowhere else.

Each class mirrors one block of ``config/code_a1.yaml``. Unknown keys and values out of range are refused with the
key, the rule and the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeVar, cast, get_type_hints

from reward_fns.registry import ADVERSARIAL_READINGS
from sandbox import Limits
from sandbox.confine import OPTIONAL_FEATURES

from .prompts import PROMPT_PAIRS
from .replay import REPLAY_SAMPLERS
from .schedule import UpdateSchedule
from .selection import GROUP_SELECTORS

Block = TypeVar("Block")

CODE_TESTS: Mapping[str, str] = {
    "suites": "those written for this very program (the paper)",
    "pooled": "every valid case written for any program of the question",
    "golden": "the question's golden tests",
    "hidden": "the question's hidden tests: an upper bound",
}
"""What the Code LLM may be rewarded on (``rewards.code_tests``)."""


class SettingsError(ValueError):
    """A configuration that cannot work; raised before Ray starts, shown to the user as it is."""


def _require(condition: bool, key: str, rule: str, value: object) -> None:
    if not condition:
        raise SettingsError(f"{key} must be {rule}, got {value!r}")


def _require_name(name: str, known: Mapping[str, object], key: str) -> None:
    if name not in known:
        raise SettingsError(f"{key}: unknown name {name!r}; known: {', '.join(sorted(known))}")


def _strict(cls: type[Block], raw: Mapping[str, Any], *, where: str) -> Block:
    known = {entry.name for entry in fields(cast("type[Any]", cls))}
    if not isinstance(raw, Mapping):
        raise SettingsError(f"{where} must be a block of keys, got {raw!r}; known: {sorted(known)}")
    if unknown := sorted(set(raw) - known):
        raise SettingsError(f"unknown keys under {where}: {unknown}; known: {sorted(known)}")
    types = get_type_hints(cls)
    for key, value in raw.items():
        _require_type(value, types[key], f"{where}.{key}")
    return cls(**raw)


_KINDS = {int: "an integer", float: "a number", bool: "true or false", str: "a name"}


def _require_type(value: object, wanted: object, key: str) -> None:
    """YAML gives what it reads; `nope` is a true string and 2.5 no count."""
    if wanted not in _KINDS:
        return
    allowed = (int, float) if wanted is float else (wanted,)
    fits = type(value) in allowed
    _require(fits, key, _KINDS[cast("type[Any]", wanted)], value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """One block of keys; ``from_mapping`` is strict about their names."""

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], *, where: str) -> Self:
        return _strict(cls, raw, where=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSettings(_Block):
    num_candidates: int
    """C: programs the Code LLM writes for one question."""
    num_suites: int
    """S: suites the Test LLM writes for one program; 0 where only the Code LLM trains."""
    cases_per_suite: int
    """K: asserts a suite should hold."""
    num_workers: int
    barrier: bool = False
    """No suite before the step's last program, no verdict before its last suite: to compare with streaming."""
    share_suites: bool = False
    """Identical programs of a question share the suites, and the verdict, of the first of them."""
    generation_timeout_seconds: float = 3600.0
    """Seconds a response may take, the wait for a place at its server included."""

    def __post_init__(self) -> None:
        group = "at least 2 (an advantage is relative to the other members of its group)"
        _require(self.num_candidates >= 2, "episode.num_candidates", group, self.num_candidates)
        suites = f"{group}, or 0: no Test LLM (rewards.code_tests: golden or hidden)"
        _require(self.num_suites == 0 or self.num_suites >= 2, "episode.num_suites", suites, self.num_suites)
        _require(self.cases_per_suite >= 1, "episode.cases_per_suite", "at least 1", self.cases_per_suite)
        _require(self.num_workers >= 1, "episode.num_workers", "at least 1", self.num_workers)
        streams = "false with episode.barrier (who is identical is known while programs stream)"
        _require(not (self.barrier and self.share_suites), "episode.share_suites", streams, self.share_suites)
        seconds = self.generation_timeout_seconds
        _require(seconds > 0, "episode.generation_timeout_seconds", "above 0", seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings(_Block):
    name: str
    black_box: bool = False
    """The Test LLM is not shown the program."""

    def __post_init__(self) -> None:
        _require_name(self.name, PROMPT_PAIRS, "prompts.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSettings(_Block):
    alpha: float
    adversarial: str
    nonprintable_penalty: bool
    code_tests: str = "suites"
    """What the Code LLM is rewarded on: a name of ``CODE_TESTS``."""
    num_golden: int = 1
    """With "golden": how many of the question's golden tests, from the first one on."""

    def __post_init__(self) -> None:
        rule = "in [0, 1] (weight of validity against adversarial difficulty)"
        _require(0.0 <= self.alpha <= 1.0, "rewards.alpha", rule, self.alpha)
        _require_name(self.adversarial, ADVERSARIAL_READINGS, "rewards.adversarial")
        _require_name(self.code_tests, CODE_TESTS, "rewards.code_tests")
        _require(self.num_golden >= 1, "rewards.num_golden", "at least 1", self.num_golden)

    @property
    def uses_given_tests(self) -> bool:
        """The Code LLM is rewarded on tests of the dataset, not on the Test LLM's."""
        return self.code_tests in ("golden", "hidden")


@dataclass(frozen=True, slots=True, kw_only=True)
class MistakeBookSettings(_Block):
    enabled: bool
    replay_limit: int
    sampler: str

    def __post_init__(self) -> None:
        _require(self.replay_limit >= 0, "mistake_book.replay_limit", "at least 0", self.replay_limit)
        _require_name(self.sampler, REPLAY_SAMPLERS, "mistake_book.sampler")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings(_Block):
    name: str
    update_n: int

    def __post_init__(self) -> None:
        _require_name(self.name, GROUP_SELECTORS, "selection.name")
        _require(self.update_n >= 1, "selection.update_n", "at least 1", self.update_n)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings(_Block):
    runner: str = "local"
    """Where programs run: a name of ``runners.RUNNERS``."""
    url: str | None = None
    """Of the remote service, for the runner that uses one."""
    tier: int = 0
    """Confinement on our own nodes, see ``sandbox``'s README."""
    allow_missing: tuple[str, ...] = ()
    """Protections to do without where the kernel lacks them."""
    num_workers: int
    programs_per_worker: int
    judge_timeout_seconds: float
    """Seconds a program may wait for its verdict, the queue included; then it is an outage."""
    max_outage_share: float
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        _require(self.num_workers >= 1, "sandbox.num_workers", "at least 1", self.num_workers)
        _require(self.programs_per_worker >= 1, "sandbox.programs_per_worker", "at least 1", self.programs_per_worker)
        _require(self.url is None or type(self.url) is str, "sandbox.url", "a text or null", self.url)
        seconds = self.judge_timeout_seconds
        _require(seconds > 0, "sandbox.judge_timeout_seconds", "above 0", seconds)
        _require(0.0 <= self.max_outage_share <= 1.0, "sandbox.max_outage_share", "in [0, 1]", self.max_outage_share)

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], *, where: str) -> Self:
        _require(isinstance(raw, Mapping), where, "a block of keys", raw)
        limits = Limits.from_mapping(raw.get("limits") or {}, where=f"{where}.limits")
        allowed = raw.get("allow_missing") or ()
        names = isinstance(allowed, (list, tuple)) and all(name in OPTIONAL_FEATURES for name in allowed)
        _require(names, f"{where}.allow_missing", f"a list of names among {list(OPTIONAL_FEATURES)}", allowed)
        values = {**raw, "limits": limits, "allow_missing": tuple(allowed)}
        return super(SandboxSettings, cls).from_mapping(values, where=where)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSettings(_Block):
    num_candidates: int
    """Programs sampled per held-out question."""
    num_suites: int
    """Suites sampled per program; 0: none."""
    greedy: bool = False
    """Also one program per question at temperature 0."""
    num_probe_suites: int = 0
    """Suites for each of a question's ``wrong_programs``, which measure every Test LLM on the same programs."""
    hidden_in_training: bool = False
    """Judge training's programs on the hidden tests too, for metrics only: how often is full reward undeserved?"""

    def __post_init__(self) -> None:
        _require(self.num_candidates >= 1, "validation.num_candidates", "at least 1", self.num_candidates)
        _require(self.num_suites >= 0, "validation.num_suites", "at least 0", self.num_suites)
        _require(self.num_probe_suites >= 0, "validation.num_probe_suites", "at least 0", self.num_probe_suites)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings(_Block):
    keep_best: str | None = None
    """Validation metric, as in ``metrics.jsonl``, whose best checkpoint is kept beside the newest; larger is better."""
    leave_within_seconds: float = 120.0
    """From Ctrl-C or SIGTERM to the end of the process, at most."""

    def __post_init__(self) -> None:
        named = self.keep_best is None or str(self.keep_best).startswith("val/")
        _require(named, "checkpoint.keep_best", "a validation metric (val/...) or null", self.keep_best)
        _require(self.leave_within_seconds > 0, "checkpoint.leave_within_seconds", "above 0", self.leave_within_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSettings:
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
    self_play: bool
    """One model in both roles: the Code LLM writes the suites too, and learns from both."""
    seed: int
    """``data.seed``: fixes the order of questions and every sampling seed."""

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> RecipeSettings:
        """Read the blocks from a resolved configuration (plain dictionaries).

        Raises:
            SettingsError: an unknown key, or a value out of its range.
        """
        blocks: dict[str, type[_Block]] = {
            "episode": EpisodeSettings,
            "prompts": PromptSettings,
            "rewards": RewardSettings,
            "mistake_book": MistakeBookSettings,
            "selection": SelectionSettings,
            "sandbox": SandboxSettings,
            "validation": ValidationSettings,
            "checkpoint": CheckpointSettings,
        }
        try:
            values: dict[str, Any] = {name: block.from_mapping(raw[name], where=name) for name, block in blocks.items()}
            values["schedule"] = _strict(UpdateSchedule, raw["schedule"], where="schedule")
        except SettingsError:
            raise
        except (TypeError, ValueError) as error:
            raise SettingsError(str(error)) from error
        values["self_play"] = raw.get("self_play", False)
        _require_type(values["self_play"], bool, "self_play")
        seed = raw["data"]["seed"]
        _require(isinstance(seed, int), "data.seed", "an integer (runs are reproducible by it)", seed)
        settings = cls(**values, seed=seed)
        _require(
            settings.selection.update_n <= settings.episode.num_candidates,
            "selection.update_n",
            f"at most episode.num_candidates = {settings.episode.num_candidates}",
            settings.selection.update_n,
        )
        settings._check_roles()
        return settings

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The policies that are started: both, or "code" alone."""
        return ("code", "test") if self.episode.num_suites and not self.self_play else ("code",)

    def _check_roles(self) -> None:
        """Blocks that must agree about who writes tests."""
        given, key = self.rewards.uses_given_tests, f"with rewards.code_tests: {self.rewards.code_tests}"
        if given:
            counts = {
                "episode.num_suites": self.episode.num_suites,
                "validation.num_suites": self.validation.num_suites,
                "validation.num_probe_suites": self.validation.num_probe_suites,
                "schedule.test_every": self.schedule.test_every,
            }
            for name, count in counts.items():
                _require(count == 0, name, f"0 {key} (no Test LLM takes part)", count)
            _require(not self.self_play, "self_play", f"false {key}", self.self_play)
        else:
            _require(self.episode.num_suites > 0, "episode.num_suites", f"at least 2 {key}", self.episode.num_suites)
        if self.self_play:
            same = f"episode.num_candidates = {self.episode.num_candidates} with self_play (groups of one size)"
            suites, candidates = self.episode.num_suites, self.episode.num_candidates
            _require(suites == candidates, "episode.num_suites", same, suites)
            black_box = "true with self_play (a model that sees its own program would agree with it)"
            _require(self.prompts.black_box, "prompts.black_box", black_box, self.prompts.black_box)
            every = f"schedule.code_every = {self.schedule.code_every} with self_play (one model)"
            test_every = self.schedule.test_every
            _require(test_every == self.schedule.code_every, "schedule.test_every", every, test_every)
