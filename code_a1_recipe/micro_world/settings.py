"""Settings of the micro assets: everything that decides what the built files contain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

# Raised whenever the code of this package would build different files from the same settings.
FORMAT_VERSION = 4

HEAD_SIZE = 32
"""Width of an attention head; the smallest that vLLM's CPU attention accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strict:
    """``from_mapping`` refuses unknown keys, so that a typo cannot build something else."""

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], *, where: str) -> Self:
        """Settings of what JSON or YAML hold: blocks of keys and lists included."""
        known = {entry.name for entry in fields(cls)}
        if unknown := sorted(set(raw) - known):
            raise ValueError(f"unknown keys under {where}: {unknown}; known: {sorted(known)}")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}
        for name, value in raw.items():
            if isinstance(value, Mapping):
                block = NoiseSettings if name == "noise" else ModelSettings
                values[name] = block.from_mapping(value, where=f"{where}.{name}")
        return cls(**values)


def _require_positive(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if type(value) is not int or value < 1:
            raise ValueError(f"micro: {name} must be an integer of at least 1, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(_Strict):
    """Shape and warm start of one tiny model."""

    hidden_size: int
    """A multiple of HEAD_SIZE."""
    num_layers: int
    intermediate_size: int
    num_steps: int
    """Optimizer steps of the supervised warm start."""
    batch_size: int = 32
    """Demonstrations a step."""
    muon_lr: float = 0.02
    """Peak learning rate of Muon, which moves the matrices inside the layers."""
    adamw_lr: float = 3e-3
    """Peak learning rate of AdamW, which moves embeddings, the output matrix and the norms."""

    def __post_init__(self) -> None:
        _require_positive(self, "hidden_size", "num_layers", "intermediate_size", "num_steps", "batch_size")
        if self.hidden_size % HEAD_SIZE:
            raise ValueError(
                f"micro: hidden_size must be a multiple of {HEAD_SIZE} (one attention head), got {self.hidden_size}"
            )
        for name in ("muon_lr", "adamw_lr"):
            if not getattr(self, name) > 0:
                raise ValueError(f"micro: {name} must be above 0, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSettings(_Strict):
    """How bad the demonstrations are. Mediocre on purpose: rewards need spread within a group."""

    misread_chance: float = 0.6
    """Chance of each systematic misunderstanding in a demonstrated program."""
    mistake_chance: float = 0.25
    """Chance of one more typical mistake in a demonstrated program."""
    shown_mistake_chance: float = 0.45
    """Chance that the candidate shown to the tester carries a typical mistake."""
    trust_chance: float = 0.2
    """Chance that a demonstrated expected output is what the shown candidate returns, right or wrong."""
    slip_chance: float = 0.12
    """Chance that a demonstrated expected output is then changed a little."""
    boundary_chance: float = 0.2
    """Chance that a demonstrated input is one where branches change or nothing is selected: a habit that the Test LLM
    knows and mostly does not follow."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"micro: {name} is a chance and must be in [0, 1], got {value!r}")


VARIANTS: dict[str, tuple[str, ...]] = {
    "": ("code", "test"),
    "black_box": ("test",),
    "self_play": ("both",),
    "sft": ("test",),
}
"""What is trained, by ``MicroSettings.variant``. "" is the base: the questions, a Code LLM and a Test LLM. The others
replace a model of the base: a Test LLM that is not shown the program; one model for both roles, which writes tests
without a look at the program; a Test LLM that was shown more and cleaner tests (a cold start)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroSettings(_Strict):
    """What the assets are made of. Equal settings give equal files, apart from rounding in torch."""

    variant: str = ""
    """A name of ``VARIANTS``."""
    seed: int = 0
    num_train: int = 3000
    num_heldout: int = 200
    num_hard: int = 100
    """Held-out questions of the families that no model was shown: decisions in decisions, changed and then searched."""
    suite_sizes: tuple[int, ...] = (1, 2, 3, 4)
    """Values of K (asserts asked for) that the Test LLM learns; others are strange to it."""
    # 0.45 and 0.57 million parameters. The tester needs more: it must execute what it reads.
    code: ModelSettings = field(
        default_factory=lambda: ModelSettings(hidden_size=96, num_layers=3, intermediate_size=288, num_steps=350)
    )
    test: ModelSettings = field(
        default_factory=lambda: ModelSettings(hidden_size=96, num_layers=4, intermediate_size=288, num_steps=520)
    )
    # 0.57 million parameters, as many steps as the two above together.
    both: ModelSettings = field(
        default_factory=lambda: ModelSettings(hidden_size=96, num_layers=4, intermediate_size=288, num_steps=870)
    )
    sft: ModelSettings = field(
        default_factory=lambda: ModelSettings(hidden_size=96, num_layers=4, intermediate_size=288, num_steps=1040)
    )
    noise: NoiseSettings = field(default_factory=NoiseSettings)

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ValueError(f"micro: unknown variant {self.variant!r}; known: {', '.join(map(repr, VARIANTS))}")
        _require_positive(self, "num_train", "num_heldout", "num_hard")
        if type(self.seed) is not int or self.seed < 0:
            raise ValueError(f"micro: seed must be an integer of at least 0, got {self.seed!r}")
        if not self.suite_sizes or not all(1 <= size <= 8 for size in self.suite_sizes):
            raise ValueError(
                "micro: suite_sizes must hold integers in [1, 8] (few inputs are distinct beyond that), "
                f"got {self.suite_sizes!r}"
            )

    @property
    def roles(self) -> tuple[str, ...]:
        """The models that are trained."""
        return VARIANTS[self.variant]

    def model_settings(self, role: str) -> ModelSettings:
        """Shape and warm start of the model for ``role``: "code", "test" or "both"."""
        if self.variant == "sft":
            return self.sft
        return {"code": self.code, "test": self.test, "both": self.both}[role]

    @property
    def test_noise(self) -> NoiseSettings:
        """Of the tests that are demonstrated."""
        return replace(self.noise, trust_chance=0.0, slip_chance=0.0) if self.variant == "sft" else self.noise

    @property
    def black_box(self) -> bool:
        """The prompts that testers learn leave out the program."""
        return self.variant in ("black_box", "self_play")

    def digest(self, *, templates: tuple[str, ...]) -> str:
        """Name of the assets in the cache, 16 hex digits: settings, format version, prompts learned."""
        content = json.dumps([FORMAT_VERSION, asdict(self), list(templates)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of ``to_json``."""
        return cls.from_mapping(json.loads(text), where="micro")
