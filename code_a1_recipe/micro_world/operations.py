"""The small language of the micro world: conditions, actions and the four operations built from them.

An operation knows three things about itself: how it is asked for in English, how it is written in
Python, and what it answers. The answer is computed here, from the operation, so no program has to be
executed to know what is right.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Value = int | list[int]

_COMPARISONS: Mapping[str, tuple[str, Callable[[int, int], bool]]] = MappingProxyType(
    {
        "<": ("less than", operator.lt),
        "<=": ("at most", operator.le),
        ">": ("more than", operator.gt),
        ">=": ("at least", operator.ge),
        "==": ("equal to", operator.eq),
    }
)
_PARITIES: Mapping[str, int] = MappingProxyType({"even": 0, "odd": 1})

# The comparison that differs on the bound itself and nowhere else.
OTHER_SIDE_OF_THE_BOUND: Mapping[str, str] = MappingProxyType({"<": "<=", "<=": "<", ">": ">=", ">=": ">"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A question about one integer ``x``: a comparison with ``bound``, or its parity."""

    relation: str
    """One of ``< <= > >= ==`` (with a bound) or ``even odd`` (without)."""
    bound: int | None = None

    def __post_init__(self) -> None:
        if (self.relation in _COMPARISONS) is (self.bound is None) or (
            self.relation not in _COMPARISONS and self.relation not in _PARITIES
        ):
            raise ValueError(
                f"a condition is a comparison {sorted(_COMPARISONS)} with a bound or a parity "
                f"{sorted(_PARITIES)} without one, got relation={self.relation!r}, bound={self.bound!r}"
            )

    @property
    def english(self) -> str:
        return self.relation if self.bound is None else f"{_COMPARISONS[self.relation][0]} {self.bound}"

    @property
    def python(self) -> str:
        if self.bound is None:
            return f"x % 2 == {_PARITIES[self.relation]}"
        return f"x {self.relation} {self.bound}"

    def holds(self, x: int) -> bool:
        if self.bound is None:
            return x % 2 == _PARITIES[self.relation]
        return _COMPARISONS[self.relation][1](x, self.bound)


_ACTIONS: Mapping[str, tuple[str, str, Callable[[int, int], int]]] = MappingProxyType(
    {
        "add": ("x plus {}", "x + {}", lambda x, amount: x + amount),
        "subtract": ("x minus {}", "x - {}", lambda x, amount: x - amount),
        "constant": ("{}", "{}", lambda _x, amount: amount),
        "negate": ("minus x", "-x", lambda x, _amount: -x),
        "keep": ("x", "x", lambda x, _amount: x),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is done with one integer ``x``; ``amount`` counts for add, subtract and constant only."""

    kind: str
    amount: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _ACTIONS:
            raise ValueError(f"unknown action {self.kind!r}; known: {', '.join(_ACTIONS)}")

    @property
    def english(self) -> str:
        return _ACTIONS[self.kind][0].format(self.amount)

    @property
    def python(self) -> str:
        return _ACTIONS[self.kind][1].format(self.amount)

    def apply(self, x: int) -> int:
        return _ACTIONS[self.kind][2](x, self.amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWay:
    """One decision about an integer."""

    condition: Condition
    then: Action
    otherwise: Action
    takes_list = False

    @property
    def english(self) -> str:
        return f"If x is {self.condition.english}, return {self.then.english}, otherwise {self.otherwise.english}."

    @property
    def python(self) -> str:
        return (
            f"def f(x):\n    if {self.condition.python}:\n        return {self.then.python}\n"
            f"    return {self.otherwise.python}"
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (self.condition,)

    def answer(self, x: Value) -> Value:
        assert isinstance(x, int)
        return (self.then if self.condition.holds(x) else self.otherwise).apply(x)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeWay:
    """Two decisions about an integer, in order. ``second`` is None in programs that forgot it."""

    first: Condition
    then: Action
    second: Condition | None
    second_then: Action
    otherwise: Action
    takes_list = False

    @property
    def english(self) -> str:
        middle = f"if x is {self.second.english}, return {self.second_then.english}, " if self.second else ""
        return f"If x is {self.first.english}, return {self.then.english}, {middle}otherwise {self.otherwise.english}."

    @property
    def python(self) -> str:
        middle = f"    if {self.second.python}:\n        return {self.second_then.python}\n" if self.second else ""
        return (
            f"def f(x):\n    if {self.first.python}:\n        return {self.then.python}\n{middle}"
            f"    return {self.otherwise.python}"
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (self.first, self.second) if self.second else (self.first,)

    def answer(self, x: Value) -> Value:
        assert isinstance(x, int)
        if self.first.holds(x):
            return self.then.apply(x)
        if self.second and self.second.holds(x):
            return self.second_then.apply(x)
        return self.otherwise.apply(x)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """A decision inside a decision about an integer."""

    outer: Condition
    inner: Condition
    then: Action
    inner_otherwise: Action
    otherwise: Action
    takes_list = False

    @property
    def english(self) -> str:
        return (
            f"If x is {self.outer.english}, then if x is {self.inner.english}, return {self.then.english}, "
            f"if not, return {self.inner_otherwise.english}. Otherwise return {self.otherwise.english}."
        )

    @property
    def python(self) -> str:
        return (
            f"def f(x):\n    if {self.outer.python}:\n        if {self.inner.python}:\n"
            f"            return {self.then.python}\n        return {self.inner_otherwise.python}\n"
            f"    return {self.otherwise.python}"
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (self.outer, self.inner)

    def answer(self, x: Value) -> Value:
        assert isinstance(x, int)
        if not self.outer.holds(x):
            return self.otherwise.apply(x)
        return (self.then if self.inner.holds(x) else self.inner_otherwise).apply(x)


_PICKS: Mapping[str, tuple[str, Callable[[list[int]], int]]] = MappingProxyType(
    {"max": ("largest", max), "min": ("smallest", min)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One integer out of a list: a count, or the largest or smallest element that fits.

    ``default`` answers for an empty selection; None means that nothing guards against it, which is
    right for a count and a mistake for the others.
    """

    kind: str
    condition: Condition
    default: int | None = None
    takes_list = True

    @property
    def english(self) -> str:
        if self.kind == "len":
            return f"Return how many x in v are {self.condition.english}."
        return (
            f"Return the {_PICKS[self.kind][0]} of all x in v that are {self.condition.english}, "
            f"or {self.default} if there are none."
        )

    @property
    def python(self) -> str:
        guard = "" if self.default is None else f" if w else {self.default}"
        return f"def f(v):\n    w = [x for x in v if {self.condition.python}]\n    return {self.kind}(w){guard}"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (self.condition,)

    def answer(self, x: Value) -> Value:
        """Raises ValueError where the program would: ``max`` or ``min`` of nothing, without a guard."""
        assert isinstance(x, list)
        selected = [element for element in x if self.condition.holds(element)]
        if self.kind == "len":
            return len(selected)
        if not selected and self.default is not None:
            return self.default
        return _PICKS[self.kind][1](selected)


_ORDERS: Mapping[str, tuple[str, str, Callable[[list[int]], list[int]]]] = MappingProxyType(
    {
        "kept": ("", "w", lambda w: w),
        "reversed": (", reversed", "w[::-1]", lambda w: w[::-1]),
        "sorted": (", sorted", "sorted(w)", sorted),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """A list out of a list: filter, change each element, put in order."""

    action: Action
    condition: Condition
    order: str = "kept"
    takes_list = True

    @property
    def english(self) -> str:
        return f"List {self.action.english} for all x in v that are {self.condition.english}{_ORDERS[self.order][0]}."

    @property
    def python(self) -> str:
        return (
            f"def f(v):\n    w = [{self.action.python} for x in v if {self.condition.python}]\n"
            f"    return {_ORDERS[self.order][1]}"
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (self.condition,)

    def answer(self, x: Value) -> Value:
        assert isinstance(x, list)
        chosen = [self.action.apply(element) for element in x if self.condition.holds(element)]
        return _ORDERS[self.order][2](chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The largest or smallest of a changed selection."""

    kind: str
    action: Action
    condition: Condition
    default: int | None = None
    takes_list = True

    @property
    def english(self) -> str:
        return (
            f"Return the {_PICKS[self.kind][0]} of {self.action.english} for all x in v that are "
            f"{self.condition.english}, or {self.default} if there are none."
        )

    @property
    def python(self) -> str:
        guard = "" if self.default is None else f" if w else {self.default}"
        return (
            f"def f(v):\n    w = [{self.action.python} for x in v if {self.condition.python}]\n"
            f"    return {self.kind}(w){guard}"
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (self.condition,)

    def answer(self, x: Value) -> Value:
        """Raises ValueError where the program would: the largest of nothing, without a guard."""
        assert isinstance(x, list)
        selected = [self.action.apply(element) for element in x if self.condition.holds(element)]
        if not selected and self.default is not None:
            return self.default
        return _PICKS[self.kind][1](selected)


Operation = TwoWay | ThreeWay | Aggregate | Collect | Nested | Search
ORDERS = tuple(_ORDERS)


def answer_or_none(operation: Operation, x: Value) -> Value | None:
    """What ``operation`` answers for ``x``; None where its program would raise."""
    try:
        return operation.answer(x)
    except ValueError:
        return None
