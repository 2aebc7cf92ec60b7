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

# How often a mistake is drawn, compared with a mistake of weight 1. Mistakes that show on few inputs weigh more,
# so that a suite without boundary inputs misses most buggy programs.
_BOUNDARY_WEIGHT = 6
_SUBTLE_WEIGHT = 2

_PAIRS = (("even", "odd"), ("add", "subtract"), ("negate", "keep"), ("max", "min"))
_OPPOSITES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""A kind and the kind that is written in its place by mistake."""


@dataclass(frozen=True)
class Mistake:
    """A wrong operation in place of the right one."""

    operation: Operation
    weight: int = 1
    """Relative frequency among the mistakes of a question."""


def mistakes_of(operation: Operation) -> Iterator[Mistake]:
    """All typical mistakes of ``operation``, in a fixed order. Some of them may still give only right answers."""
    for path, part in parts_of(operation):
        slips = _condition_slips(part) if isinstance(part, Condition) else _action_slips(part)
        for slipped, weight in slips:
            yield Mistake(with_part(operation, path, slipped), weight)
    yield from _slips_of_structure(operation)


def draw_mistake(rng: random.Random, mistakes: tuple[Mistake, ...]) -> Operation:
    """A wrong operation, drawn by weight from ``mistakes``, which must not be empty."""
    return rng.choices(mistakes, [mistake.weight for mistake in mistakes])[0].operation


def misread(rng: random.Random, operation: Operation, *, chance: float) -> Operation:
    """Misread ``operation`` in systematic ways, each with probability ``chance``.

    "At most" and "at least" become strict, and the empty selection is forgotten. Since the same mistakes come again
    and again, a model that learns from such programs is wrong even in its most likely answer.
    """
    for path, part in parts_of(operation):
        if isinstance(part, Condition) and part.relation in ("<=", ">=") and rng.random() < chance:
            strict = replace(part, relation=OTHER_SIDE_OF_THE_BOUND[part.relation])
            operation = with_part(operation, path, strict)
    if isinstance(operation, Selection) and operation.default is not None and rng.random() < chance:
        operation = replace(operation, default=None)
    return operation


def _condition_slips(condition: Condition) -> Iterator[tuple[Condition, int]]:
    relation, bound = condition.relation, condition.bound
    if bound is None:
        yield Condition(_OPPOSITES[relation]), 2  # even and odd confused
    elif relation in OTHER_SIDE_OF_THE_BOUND:
        slipped = replace(condition, relation=OTHER_SIDE_OF_THE_BOUND[relation])
        yield slipped, _BOUNDARY_WEIGHT  # the bound on the wrong side
    else:
        yield replace(condition, bound=bound + 1), 1  # off by one in the comparison
        yield replace(condition, relation="<="), 1  # equality read as a bound


def _action_slips(action: Action) -> Iterator[tuple[Action, int]]:
    if action.kind in _OPPOSITES:
        yield replace(action, kind=_OPPOSITES[action.kind]), 1  # the wrong sign, of the amount or of x
    if action.kind in ("add", "subtract", "constant"):
        yield replace(action, amount=action.amount + 1), 1  # off by one in the amount or the constant


def _slips_of_structure(operation: Operation) -> Iterator[Mistake]:
    if isinstance(operation, Decision):
        if isinstance(operation.then, Decision):
            yield Mistake(replace(operation, then=_swapped(operation.then)))  # inner branches swapped
        elif isinstance(operation.otherwise, Decision):
            forgotten = replace(operation, otherwise=operation.otherwise.otherwise)
            yield Mistake(forgotten)  # the second decision forgotten
        else:
            yield Mistake(_swapped(operation))  # branches swapped
    elif operation.kind in ORDERS:
        for order in ORDERS:
            if order != operation.kind:
                yield Mistake(replace(operation, kind=order), _SUBTLE_WEIGHT)  # the wrong order
    elif operation.kind != "len":
        yield Mistake(replace(operation, kind=_OPPOSITES[operation.kind]))  # largest and smallest confused
        yield Mistake(replace(operation, default=None), _SUBTLE_WEIGHT)  # the empty selection forgotten
        wrong = replace(operation, default=0 if operation.default else 1)
        yield Mistake(wrong, _SUBTLE_WEIGHT)  # the wrong default


def _swapped(decision: Decision) -> Decision:
    return replace(decision, then=decision.otherwise, otherwise=decision.then)
