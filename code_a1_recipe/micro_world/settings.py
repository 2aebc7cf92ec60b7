"""Settings of the micro assets: everything that decides what the built files contain."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import Field

from sandbox import Kind

from ..algorithm.prompts import FIELDS, render
from ..algorithm.settings_block import Amount, Block, Count, Rate, one_of
from .world import WORLDS, Split, draw_questions

# Raised whenever the code of this package would build different files from the same settings.
FORMAT_VERSION = 7

HEAD_SIZE = 32
"""Width of an attention head; the smallest that vLLM's CPU attention accepts."""

LearningRate = Annotated[float, Field(gt=0)]


class ModelSettings(Block):
    """Shape and warm start of one tiny model."""

    hidden_size: Annotated[Count, Field(multiple_of=HEAD_SIZE)]
    """Whole attention heads of this width."""
    num_layers: Count
    intermediate_size: Count
    num_steps: Count
    """Optimizer steps of the supervised warm start."""
    batch_size: Count = 32
    """Demonstrations a step."""
    muon_lr: LearningRate = 0.02
    """Peak learning rate of Muon, which moves the matrices inside the layers."""
    adamw_lr: LearningRate = 3e-3
    """Peak learning rate of AdamW, which moves embeddings, the output matrix and the norms."""


class NoiseSettings(Block):
    """How bad the demonstrations are. Mediocre on purpose: rewards need spread within a group."""

    misread_chance: Rate = 0.6
    """Chance of each systematic misunderstanding in a demonstrated program."""
    mistake_chance: Rate = 0.25
    """Chance of one more typical mistake in a demonstrated program."""
    shown_mistake_chance: Rate = 0.45
    """Chance that the candidate shown to the tester carries a typical mistake."""
    trust_chance: Rate = 0.2
    """Chance that a demonstrated expected output is what the shown candidate returns, right or wrong."""
    slip_chance: Rate = 0.12
    """Chance that a demonstrated expected output is then changed a little."""
    boundary_chance: Rate | None = None
    """Chance that a demonstrated input is one where branches change or nothing is selected: a habit that the Test LLM
    knows and mostly does not follow. None: the world's."""


VARIANTS = {
    "": ("code", "test"),
    "black_box": ("test",),
    "self_play": ("both",),
    "sft": ("test",),
    "repair": ("code",),
}
"""What is trained, by ``MicroSettings.variant``. "" is the base: the questions, a Code LLM and a Test LLM. The others
replace a model of the base: a Test LLM that is not shown the program; one model for both roles, which writes tests
without a look at the program; a Test LLM that was shown more and cleaner tests (a cold start); a Code LLM that was
shown as many repairs as programs."""


class MicroSettings(Block):
    """What the assets are made of. Equal settings give equal files, apart from rounding in torch."""

    variant: Annotated[str, one_of(VARIANTS)] = ""
    """A name of ``VARIANTS``."""
    world: Annotated[str, one_of(WORLDS)] = "narrow"
    """How far bounds and inputs reach (``WORLDS``)."""
    kind: Annotated[str, one_of((Kind.FUNCTIONS.value, Kind.STDIN.value))] = Kind.FUNCTIONS.value
    """What programs do: "functions", or "stdin", the same tasks for programs that read standard input and print."""
    seed: Amount = 0
    num_train: Count = 3000
    num_heldout: Count = 200
    num_hard: Count = 100
    """Held-out questions of the families that no model was shown: decisions in decisions, changed and then searched."""
    suite_sizes: Annotated[tuple[Annotated[int, Field(ge=1, le=8)], ...], Field(strict=False, min_length=1)] = (
        1,
        2,
        3,
        4,
    )
    """Values of K (asserts asked for) that the Test LLM learns; few inputs are distinct beyond 8."""
    # 0.45 and 0.57 million parameters. The tester needs more: it must execute what it reads.
    code: ModelSettings = ModelSettings(hidden_size=96, num_layers=3, intermediate_size=288, num_steps=350)
    test: ModelSettings = ModelSettings(hidden_size=96, num_layers=4, intermediate_size=288, num_steps=520)
    # 0.57 million parameters, as many steps as the two above together.
    both: ModelSettings = test.model_copy(update={"num_steps": 870})
    sft: ModelSettings = test.model_copy(update={"num_steps": 1040})
    noise: NoiseSettings = NoiseSettings()

    @property
    def roles(self) -> tuple[str, ...]:
        """The models that are trained."""
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
        """Of the tests that are demonstrated."""
        quiet = {"trust_chance": 0.0, "slip_chance": 0.0}
        return self.noise.model_copy(update=quiet) if self.variant == "sft" else self.noise

    @property
    def black_box(self) -> bool:
        """The prompts that testers learn leave out the program."""
        return self.variant in ("black_box", "self_play")

    def digest(self) -> str:
        """Name of the assets in the cache, 16 hex digits: settings, format version, prompts learned."""
        content = json.dumps([FORMAT_VERSION, self.model_dump(), template_texts(self.variant)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def template_texts(variant: str) -> list[str]:
    """The templates of the prompts with their placeholders left in; part of the identity of the assets."""
    fields: dict[str, Any] = {name: f"{{{{{name}}}}}" for name in FIELDS}
    templates = ["micro_code", "micro_test", "micro_black_box_test"]
    if variant == "repair":
        templates.append("micro_repair")
    messages = [message for template in templates for message in render(template, **fields)]
    return [f"[{message['role']}]{message['content']}" for message in messages]
