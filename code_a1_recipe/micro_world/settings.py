"""Settings of the micro assets: everything that decides the content of the built files."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field

from ..algorithm.prompts import FIELDS, render
from ..algorithm.settings_block import Amount, Block, Count, Rate, one_of
from .world import WORLDS, Split, draw_questions

FORMAT_VERSION = 7
"""Raise it whenever the code of this package would build other files from the same settings."""
HEAD_SIZE = 32
"""Width of an attention head. vLLM's CPU attention accepts none that is smaller."""

LearningRate = Annotated[float, Field(gt=0)]


class ModelSettings(Block):
    """Shape and warm start of a tiny model."""

    hidden_size: Annotated[Count, Field(multiple_of=HEAD_SIZE)]
    """Whole attention heads of this width."""
    num_layers: Count
    intermediate_size: Count
    num_steps: Count
    """Optimizer steps of the supervised warm start."""
    batch_size: Count = 32
    """Demonstrations in each step."""
    muon_lr: LearningRate = 0.02
    """Peak learning rate of Muon, which trains the matrices inside the layers."""
    adamw_lr: LearningRate = 3e-3
    """Peak learning rate of AdamW, which trains embeddings, the output matrix and the norms."""


class NoiseSettings(Block):
    """Rates of mistakes in the demonstrations. They are high on purpose: rewards must differ within a group."""

    misread_chance: Rate = 0.6
    """Chance of each systematic misreading in a demonstrated program."""
    mistake_chance: Rate = 0.25
    """Chance of one more typical mistake in a demonstrated program."""
    shown_mistake_chance: Rate = 0.45
    """Chance that the candidate shown to the tester has a typical mistake."""
    trust_chance: Rate = 0.2
    """Chance that a demonstrated expected output is the return value of the shown candidate, right or wrong."""
    slip_chance: Rate = 0.12
    """Chance that a demonstrated expected output is then changed a little."""
    boundary_chance: Rate | None = None
    """Chance that a demonstrated input is a boundary input, where branches change or nothing is selected. Kept low: the
    Test LLM is to know such inputs and seldom choose them. None: the world's."""


VARIANTS = {
    "": ("code", "test"),
    "black_box": ("test",),
    "self_play": ("both",),
    "sft": ("test",),
    "repair": ("code",),
}
"""Trained models by ``MicroSettings.variant``. The variant "" is the base: the questions, a Code LLM and a Test LLM.
Every other variant replaces a model of the base. ``black_box``: a Test LLM whose prompts do not show the program.
``self_play``: one model for both roles, with such prompts. ``sft``: a Test LLM that learned from more and cleaner tests
(a cold start). ``repair``: a Code LLM that learned from as many repairs as programs."""


class MicroSettings(Block):
    """Settings of the assets. Equal settings give equal files, apart from rounding in torch."""

    variant: Annotated[str, one_of(VARIANTS)] = ""
    """A name of ``VARIANTS``."""
    world: Annotated[str, one_of(WORLDS)] = "narrow"
    """Ranges of bounds and inputs (``WORLDS``)."""
    kind: Literal["functions", "stdin"] = "functions"
    """Kind of programs: "functions", or "stdin" for the same tasks with programs that read standard input and print."""
    seed: Amount = 0
    num_train: Count = 3000
    num_heldout: Count = 200
    num_hard: Count = 100
    """Held-out questions of families that no model has learned: decisions inside decisions, and the largest or smallest
    of changed elements."""
    suite_sizes: Annotated[tuple[Annotated[int, Field(ge=1, le=8)], ...], Field(strict=False, min_length=1)] = (
        1,
        2,
        3,
        4,
    )
    """Values of K (asserts asked for) that the Test LLM learns. A question has few distinct inputs beyond 8."""
    # 0.45 and 0.57 million parameters. The tester needs more, since it must execute the program that it reads.
    code: ModelSettings = ModelSettings(hidden_size=96, num_layers=3, intermediate_size=288, num_steps=350)
    test: ModelSettings = ModelSettings(hidden_size=96, num_layers=4, intermediate_size=288, num_steps=520)
    # 0.57 million parameters, and as many steps as the two models above together.
    both: ModelSettings = test.model_copy(update={"num_steps": 870})
    sft: ModelSettings = test.model_copy(update={"num_steps": 1040})
    noise: NoiseSettings = NoiseSettings()

    @property
    def roles(self) -> tuple[str, ...]:
        """Models that are trained."""
        return VARIANTS[self.variant]

    def split(self) -> Split:
        """The questions of these settings, the same on every machine and for every hash seed."""
        number, seed, world = self.num_heldout + self.num_train, self.seed, self.world
        drawn = draw_questions(seed=seed, num_questions=number, world=world, kind=self.kind)
        hard = draw_questions(seed=seed, num_questions=self.num_hard, hard=True, world=world, kind=self.kind)
        return Split(drawn[self.num_heldout :], drawn[: self.num_heldout], hard)

    def model_settings(self, role: str) -> ModelSettings:
        """Shape and warm start of the model for ``role``: "code", "test" or "both"."""
        if self.variant == "sft":
            return self.sft
        if self.variant == "repair":
            return self.code.model_copy(update={"num_steps": 2 * self.code.num_steps})
        model: ModelSettings = getattr(self, role)
        return model

    @property
    def test_noise(self) -> NoiseSettings:
        """Noise of the demonstrated tests."""
        quiet = {"trust_chance": 0.0, "slip_chance": 0.0}
        return self.noise.model_copy(update=quiet) if self.variant == "sft" else self.noise

    @property
    def black_box(self) -> bool:
        """Whether the prompts of the Test LLM leave out the program."""
        return self.variant in ("black_box", "self_play")

    def digest(self) -> str:
        """The assets' name in the cache: 16 hex digits, from settings, format version and prompt templates."""
        content = json.dumps([FORMAT_VERSION, self.model_dump(), template_texts(self.variant)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def template_texts(variant: str) -> list[str]:
    """Prompt templates with their placeholders, since another template makes other assets."""
    fields: dict[str, Any] = {name: f"{{{{{name}}}}}" for name in FIELDS}
    templates = ["micro_code", "micro_test", "micro_black_box_test"]
    if variant == "repair":
        templates.append("micro_repair")
    messages = [message for template in templates for message in render(template, **fields)]
    return [f"[{message['role']}]{message['content']}" for message in messages]
