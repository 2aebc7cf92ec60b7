"""Settings of the micro assets. The settings decide the content of all built files."""

from itertools import islice
from typing import Annotated, Literal

from pydantic import Field

from ..algorithm.settings_block import Amount, Block, Count, Rate, one_of
from ..files import fingerprint
from .difficulty import WORLDS
from .world import Split, draw_questions

FORMAT_VERSION = 8
"""Raise this number whenever the code of this package would train other models on the same demonstrations."""
_NUM_DIGESTED = 100
"""Number of questions, and of demonstrations for each model, that go into the digest. They are drawn in a moment, and
a change of the world or of the prompts changes some of them."""
HEAD_SIZE = 32
"""Width of an attention head. vLLM's attention on CPUs accepts no smaller width."""

LearningRate = Annotated[float, Field(gt=0)]


class ModelSettings(Block):
    """Shape and warm start of a tiny model."""

    hidden_size: Annotated[Count, Field(multiple_of=HEAD_SIZE)]
    """Width of the model: a multiple of the width of an attention head."""
    num_layers: Count
    intermediate_size: Count
    num_steps: Count
    """Optimizer steps of the supervised warm start."""
    batch_size: Count = 32
    """Demonstrations in each step."""
    muon_lr: LearningRate = 0.02
    """Peak learning rate of Muon, which trains the matrices inside the layers."""
    adamw_lr: LearningRate = 3e-3
    """Peak learning rate of AdamW, which trains the embeddings, the output matrix and the norms."""


class NoiseSettings(Block):
    """Rates of mistakes in the demonstrations. The rates are high, because rewards must differ within a group."""

    misread_chance: Rate = 0.6
    """Chance of each systematic misreading in a demonstrated program."""
    mistake_chance: Rate = 0.25
    """Chance that a demonstrated program has a typical mistake, besides its misreadings."""
    shown_mistake_chance: Rate = 0.45
    """Chance that the candidate in a Test LLM's prompt has a typical mistake."""
    trust_chance: Rate = 0.2
    """Chance that a demonstrated expected output is the return value of the shown candidate, right or wrong."""
    slip_chance: Rate = 0.12
    """Chance that a demonstrated expected output gets a small error."""
    boundary_chance: Rate | None = None
    """Chance that a demonstrated input is a boundary input, where branches change or nothing is selected. The chance is
    low, so that the Test LLM knows boundary inputs but seldom chooses them. None takes ``World.boundary_chance``."""


VARIANTS = {
    "": ("code", "test"),
    "black_box": ("test",),
    "self_play": ("both",),
    "sft": ("test",),
}
"""Maps each variant to the roles of the models that it trains. The variant "" is the base, with the questions, a Code
LLM and a Test LLM. Every other variant replaces models of the base:

- ``black_box``: a Test LLM whose prompts do not show the program.
- ``self_play``: one model for both roles, whose test prompts do not show the program.
- ``sft``: a Test LLM that learned from more tests with fewer mistakes (a cold start)."""


class MicroSettings(Block):
    """Settings of the assets. Equal settings give equal files, except for rounding in torch."""

    variant: Annotated[str, one_of(VARIANTS)] = ""
    """A name of ``VARIANTS``."""
    world: Annotated[str, one_of(WORLDS)] = "narrow"
    """A name of ``WORLDS``. The world decides the ranges of bounds and inputs."""
    kind: Literal["functions", "stdin"] = "functions"
    """Kind of the programs: "functions", or "stdin" for programs that read standard input and print the answer."""
    seed: Amount = 0
    num_train: Count = 3000
    num_heldout: Count = 200
    suite_sizes: Annotated[tuple[Annotated[int, Field(ge=1, le=8)], ...], Field(strict=False, min_length=1)] = (
        1,
        2,
        3,
        4,
    )
    """Numbers of asserts in a suite (K) that the Test LLM learns. Few questions allow more than 8 distinct asserts."""
    # The Code LLM has 0.45 million parameters and the Test LLM 0.57 million. The Test LLM needs more parameters,
    # because it must predict the return values of the program in its prompt.
    code: ModelSettings = ModelSettings(hidden_size=96, num_layers=3, intermediate_size=288, num_steps=350)
    test: ModelSettings = ModelSettings(hidden_size=96, num_layers=4, intermediate_size=288, num_steps=520)
    # The model for both roles has 0.57 million parameters. This model trains for as many steps as the two models above
    # together.
    both: ModelSettings = test.model_copy(update={"num_steps": 870})
    sft: ModelSettings = test.model_copy(update={"num_steps": 1040})
    noise: NoiseSettings = NoiseSettings()

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of the trained models."""
        return VARIANTS[self.variant]

    def split(self) -> Split:
        """Draw the questions of these settings. Every machine and every hash seed gives the same questions."""
        number = self.num_heldout + self.num_train
        drawn = draw_questions(seed=self.seed, num_questions=number, world=self.world, kind=self.kind)
        return Split(heldout=drawn[: self.num_heldout], train=drawn[self.num_heldout :])

    def model_settings(self, role: str) -> ModelSettings:
        """Return shape and warm start of the model for ``role``: "code", "test" or "both"."""
        if self.variant == "sft":
            return self.sft
        model: ModelSettings = getattr(self, role)
        return model

    @property
    def test_noise(self) -> NoiseSettings:
        """Noise of the demonstrated tests."""
        if self.variant == "sft":
            return self.noise.model_copy(update={"trust_chance": 0.0, "slip_chance": 0.0})
        return self.noise

    @property
    def black_box(self) -> bool:
        """True if the prompts of the Test LLM leave out the program."""
        return self.variant in ("black_box", "self_play")

    def digest(self) -> str:
        """Return the assets' name in the cache: 16 hex digits.

        They are hashed from the settings, and from questions and demonstrations that the code makes of the settings.
        """
        from .demonstrations import draw_demonstrations  # which imports this module

        questions = draw_questions(seed=self.seed, num_questions=_NUM_DIGESTED, world=self.world, kind=self.kind)
        content: list[object] = [FORMAT_VERSION, self.model_dump(), WORLDS[self.world]]
        content += [question.row(buggy_programs=[question.mutant]) for question in questions]
        for role in self.roles:
            content += islice(draw_demonstrations(role, self, questions), _NUM_DIGESTED)
        return fingerprint(*map(repr, content))
