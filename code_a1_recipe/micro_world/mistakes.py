"""Typical mistakes: named ways in which a program for an operation goes slightly wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .operations import (
    ORDERS,
    OTHER_SIDE_OF_THE_BOUND,
    Action,
    Aggregate,
    Collect,
    Condition,
    Nested,
    Operation,
    Search,
    ThreeWay,
    TwoWay,
)

# How often a mistake is drawn compared with one of weight 1. Slips that show on few inputs weigh
# more: tests that look away from the boundaries must be able to miss most buggy programs.
_BOUNDARY_WEIGHT = 6
_SUBTLE_WEIGHT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A wrong operation beside the right one."""

    name: str
    """What went wrong, in words; not unique within a question."""
    operation: Operation
    weight: int = 1
    """Relative frequency among the mistakes of a question."""


def mistakes_of(operation: Operation) -> tuple[Mistake, ...]:
    """All typical mistakes of ``operation``, in a fixed order; some may answer everything rightly."""
    return tuple(_slips_in_parts(operation)) + tuple(_slips_of_structure(operation))


def draw_mistake(rng: random.Random, mistakes: tuple[Mistake, ...]) -> Mistake:
    """One of ``mistakes`` (at least one), by weight."""
    return rng.choices(mistakes, [mistake.weight for mistake in mistakes])[0]


def misread(rng: random.Random, operation: Operation, *, chance: float) -> Operation:
    """Misunderstand ``operation`` the way a whole class does, each misunderstanding with ``chance``.

    "at most" and "at least" are written strictly, and the empty selection is forgotten. Because the
    same thing goes wrong every time, a model of such programs is wrong in its most likely answer too.
    """
    for name, part in _parts(operation):
        if isinstance(part, Condition) and part.relation in ("<=", ">=") and rng.random() < chance:
            strict = replace(part, relation=OTHER_SIDE_OF_THE_BOUND[part.relation])
            operation = _with_part(operation, name, strict)
    if isinstance(operation, Aggregate | Search) and operation.default is not None and rng.random() < chance:
        operation = replace(operation, default=None)
    return operation


def _parts(operation: Operation) -> Iterator[tuple[str, Condition | Action]]:
    for name in operation.__dataclass_fields__:
        part = getattr(operation, name)
        if isinstance(part, Condition | Action):
            yield name, part


def _with_part(operation: Operation, name: str, part: Condition | Action) -> Operation:
    changed: Any = {name: part}  # the type of a part by its name is beyond what a checker can see
    return replace(operation, **changed)


def _slips_in_parts(operation: Operation) -> Iterator[Mistake]:
    for name, part in _parts(operation):
        slips = _condition_slips(part) if isinstance(part, Condition) else _action_slips(part)
        for words, slipped, weight in slips:
            yield Mistake(name=words, operation=_with_part(operation, name, slipped), weight=weight)


def _condition_slips(condition: Condition) -> Iterator[tuple[str, Condition, int]]:
    relation, bound = condition.relation, condition.bound
    if bound is None:
        yield "even and odd confused", Condition(relation="odd" if relation == "even" else "even"), 2
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
    if isinstance(operation, TwoWay):
        swapped = replace(operation, then=operation.otherwise, otherwise=operation.then)
        yield Mistake(name="branches swapped", operation=swapped)
    elif isinstance(operation, ThreeWay):
        yield Mistake(name="the second decision forgotten", operation=replace(operation, second=None))
    elif isinstance(operation, Nested):
        inner = replace(operation, then=operation.inner_otherwise, inner_otherwise=operation.then)
        yield Mistake(name="inner branches swapped", operation=inner)
    elif isinstance(operation, Search) or (isinstance(operation, Aggregate) and operation.kind != "len"):
        other = "min" if operation.kind == "max" else "max"
        yield Mistake(name="largest and smallest confused", operation=replace(operation, kind=other))
        wrong = 0 if operation.default else 1
        for words, default in (("the empty selection forgotten", None), ("the wrong default", wrong)):
            yield Mistake(name=words, operation=replace(operation, default=default), weight=_SUBTLE_WEIGHT)
    elif isinstance(operation, Collect):
        for order in ORDERS:
            if order != operation.order:
                wrong_order = replace(operation, order=order)
                yield Mistake(name="the wrong order", operation=wrong_order, weight=_SUBTLE_WEIGHT)
