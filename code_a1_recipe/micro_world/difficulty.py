"""Worlds of questions: ranges of numbers, and frequencies that decide how hard the questions are."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class World:
    """Ranges of integers in questions and tests, and frequencies that decide how hard the questions are."""

    inputs: range
    bounds: range
    nested_chance: float = 0.0
    """Chance that a question has a second condition inside the first one."""
    boundary_chance: float
    """Chance that a demonstrated test has a boundary input, where branches change."""
    num_boundary_lessons: int = 0
    """Number of demonstrations at the start of a Test LLM's training in which all inputs are boundary inputs. Boundary
    inputs teach the model to copy numbers out of a program. Later demonstrations teach that testers seldom use boundary
    inputs. RL training alone cannot teach copying, because a model that never copies earns no reward for it."""


WORLDS = {
    "narrow": World(
        inputs=range(-2, 10),
        bounds=range(8),
        boundary_chance=0.2,
    ),
    "wide": World(
        inputs=range(-5, 45),
        bounds=range(40),
        nested_chance=0.25,
        boundary_chance=0.1,
        num_boundary_lessons=12_600,
    ),
}
"""Maps names, as in ``MicroSettings.world``, to worlds. In the narrow world a few random asserts detect nearly every
mistake. In the wide world most mistakes show on only one input of fifty, so a suite must choose its inputs. The
arithmetic is equally easy in both worlds."""
