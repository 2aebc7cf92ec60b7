"""Typical mistakes: slightly wrong versions of an operation."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .operations import (
    ORDERS,
    OTHER_SIDE_OF_THE_BOUND,
    Action,
    Condition,
    Decision,
    Operation,
    Selection,
    parts_of,
    with_part,
)

# A mistake of weight 6 is drawn six times as often as a mistake of weight 1. A mistake that shows on few inputs has a
# greater weight. So a suite without boundary inputs misses most buggy programs.
_BOUNDARY_WEIGHT = 6
_SUBTLE_WEIGHT = 2

_PAIRS = (
    ("even", "odd"),
    ("add", "subtract"),
    ("negate", "keep"),
    ("max", "min"),
)
_OPPOSITES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Maps each kind to the kind that a mistake puts in its place."""


@dataclass(frozen=True)
class Mistake:
    """A wrong operation in place of the right one."""

    operation: Operation
    weight: int = 1
    """Relative frequency among the mistakes of a question."""


def mistakes_of(operation: Operation) -> Iterator[Mistake]:
    """Yield all typical mistakes of ``operation``, in a fixed order. Some mistakes may change no answer."""
    for path, part in parts_of(operation):
        slips = _condition_slips(part) if isinstance(part, Condition) else _action_slips(part)
        for slipped, weight in slips:
            wrong = with_part(operation, path, slipped)
            yield Mistake(wrong, weight)
    yield from _slips_of_structure(operation)


def draw_mistake(rng: random.Random, mistakes: tuple[Mistake, ...]) -> Operation:
    """Draw a wrong operation by weight from ``mistakes``, which must not be empty."""
    weights = [mistake.weight for mistake in mistakes]
    (drawn,) = rng.choices(mistakes, weights)
    return drawn.operation


def misread(rng: random.Random, operation: Operation, *, chance: float) -> Operation:
    """Misread ``operation`` in systematic ways, each with probability ``chance``.

    "At most" is read as "less than", "at least" as "more than", and the default for an empty selection is forgotten.
    Because these mistakes are frequent, a model that learns from misread programs makes the same mistakes in its most
    likely answer.
    """
    for path, part in parts_of(operation):
        if isinstance(part, Condition) and part.relation in ("<=", ">=") and rng.random() < chance:
            operation = with_part(operation, path, _beyond_the_bound(part))
    if isinstance(operation, Selection) and operation.default is not None and rng.random() < chance:
        operation = replace(operation, default=None)
    return operation


def _beyond_the_bound(condition: Condition) -> Condition:
    """Change a condition so that only a value equal to the bound gives another result, such as ``<`` to ``<=``."""
    return replace(condition, relation=OTHER_SIDE_OF_THE_BOUND[condition.relation])


def _condition_slips(condition: Condition) -> Iterator[tuple[Condition, int]]:
    """Yield wrong conditions and their weights."""
    relation, bound = condition.relation, condition.bound
    if bound is None:
        yield Condition(_OPPOSITES[relation]), 2  # even and odd are confused
    elif relation in OTHER_SIDE_OF_THE_BOUND:
        yield _beyond_the_bound(condition), _BOUNDARY_WEIGHT
    else:
        yield replace(condition, bound=bound + 1), 1  # The bound is wrong by one.
        yield replace(condition, relation="<="), 1  # The equality is read as "at most".


def _action_slips(action: Action) -> Iterator[tuple[Action, int]]:
    """Yield wrong actions and their weights."""
    if action.kind in _OPPOSITES:
        yield replace(action, kind=_OPPOSITES[action.kind]), 1  # the amount or x has the wrong sign
    if action.kind in ("add", "subtract", "constant"):
        yield replace(action, amount=action.amount + 1), 1  # the amount or the constant is wrong by one


def _slips_of_structure(operation: Operation) -> Iterator[Mistake]:
    if isinstance(operation, Decision):
        if isinstance(operation.then, Decision):
            yield Mistake(replace(operation, then=_swapped(operation.then)))
        elif isinstance(operation.otherwise, Decision):
            # The second decision is forgotten.
            yield Mistake(replace(operation, otherwise=operation.otherwise.otherwise))
        else:
            yield Mistake(_swapped(operation))
    elif operation.kind in ORDERS:
        for order in ORDERS:
            if order != operation.kind:
                yield Mistake(replace(operation, kind=order), _SUBTLE_WEIGHT)
    elif operation.kind != "len":
        yield Mistake(replace(operation, kind=_OPPOSITES[operation.kind]))  # The largest and the smallest are confused.
        # The default for an empty selection is forgotten, or wrong.
        for default in (None, 0 if operation.default else 1):
            yield Mistake(replace(operation, default=default), _SUBTLE_WEIGHT)


def _swapped(decision: Decision) -> Decision:
    """Return the decision with its two branches swapped."""
    return replace(decision, then=decision.otherwise, otherwise=decision.then)
