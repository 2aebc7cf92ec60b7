"""Typical mistakes: named ways in which a program for an operation goes slightly wrong."""

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

# How often a mistake is drawn compared with one of weight 1. Slips that show on few inputs weigh
# more: tests that look away from the boundaries must be able to miss most buggy programs.
_BOUNDARY_WEIGHT = 6
_SUBTLE_WEIGHT = 2


@dataclass(frozen=True)
class Mistake:
    """A wrong operation beside the right one."""

    name: str
    """What went wrong, in words; not unique within a question."""
    operation: Operation
    weight: int = 1
    """Relative frequency among the mistakes of a question."""


def mistakes_of(operation: Operation) -> Iterator[Mistake]:
    """All typical mistakes of ``operation``, in a fixed order; some may answer everything rightly."""
    for path, part in parts_of(operation):
        slips = _condition_slips(part) if isinstance(part, Condition) else _action_slips(part)
        for words, slipped, weight in slips:
            yield Mistake(words, with_part(operation, path, slipped), weight)
    yield from _slips_of_structure(operation)


def draw_mistake(rng: random.Random, mistakes: tuple[Mistake, ...]) -> Mistake:
    """One of ``mistakes`` (at least one), by weight."""
    return rng.choices(mistakes, [mistake.weight for mistake in mistakes])[0]


def misread(rng: random.Random, operation: Operation, *, chance: float) -> Operation:
    """Misunderstand ``operation`` the way a whole class does, each misunderstanding with ``chance``.

    "at most" and "at least" are written strictly, and the empty selection is forgotten. Because the
    same thing goes wrong every time, a model of such programs is wrong in its most likely answer too.
    """
    for path, part in parts_of(operation):
        if isinstance(part, Condition) and part.relation in ("<=", ">=") and rng.random() < chance:
            strict = replace(part, relation=OTHER_SIDE_OF_THE_BOUND[part.relation])
            operation = with_part(operation, path, strict)
    if isinstance(operation, Selection) and operation.default is not None and rng.random() < chance:
        operation = replace(operation, default=None)
    return operation


def _condition_slips(condition: Condition) -> Iterator[tuple[str, Condition, int]]:
    relation, bound = condition.relation, condition.bound
    if bound is None:
        yield "even and odd confused", Condition("odd" if relation == "even" else "even"), 2
    elif relation in OTHER_SIDE_OF_THE_BOUND:
        slipped = replace(condition, relation=OTHER_SIDE_OF_THE_BOUND[relation])
        yield "the bound on the wrong side", slipped, _BOUNDARY_WEIGHT
    else:
        yield "off by one in the comparison", replace(condition, bound=bound + 1), 1
        yield "equality read as a bound", replace(condition, relation="<="), 1


def _action_slips(action: Action) -> Iterator[tuple[str, Action, int]]:
    if action.kind in ("add", "subtract"):
        other = "subtract" if action.kind == "add" else "add"
        yield "the wrong sign", replace(action, kind=other), 1
        yield "off by one in the amount", replace(action, amount=action.amount + 1), 1
    elif action.kind == "constant":
        yield "off by one in the constant", replace(action, amount=action.amount + 1), 1
    else:
        other = "keep" if action.kind == "negate" else "negate"
        yield "the sign of x", replace(action, kind=other), 1


def _slips_of_structure(operation: Operation) -> Iterator[Mistake]:
    if isinstance(operation, Decision):
        if isinstance(operation.then, Decision):
            yield Mistake("inner branches swapped", replace(operation, then=_swapped(operation.then)))
        elif isinstance(operation.otherwise, Decision):
            forgotten = replace(operation, otherwise=operation.otherwise.otherwise)
            yield Mistake("the second decision forgotten", forgotten)
        else:
            yield Mistake("branches swapped", _swapped(operation))
    elif operation.kind in ORDERS:
        for order in ORDERS:
            if order != operation.kind:
                yield Mistake("the wrong order", replace(operation, kind=order), _SUBTLE_WEIGHT)
    elif operation.kind != "len":
        other = "min" if operation.kind == "max" else "max"
        yield Mistake("largest and smallest confused", replace(operation, kind=other))
        yield Mistake("the empty selection forgotten", replace(operation, default=None), _SUBTLE_WEIGHT)
        wrong = replace(operation, default=0 if operation.default else 1)
        yield Mistake("the wrong default", wrong, _SUBTLE_WEIGHT)


def _swapped(decision: Decision) -> Decision:
    return replace(decision, then=decision.otherwise, otherwise=decision.then)
