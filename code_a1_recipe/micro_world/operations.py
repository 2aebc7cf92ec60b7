"""The small language of the micro world: conditions, actions, and two kinds of operations made of them.

Every operation has an English question (``english``), a Python program (``python``) and an answer for each input
(``answer``). The answer follows from the operation itself, so no program is executed to know the right result.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

Value = int | list[int]

_COMPARISONS: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    "<": ("less than", operator.lt),
    "<=": ("at most", operator.le),
    ">": ("more than", operator.gt),
    ">=": ("at least", operator.ge),
    "==": ("equal to", operator.eq),
}
_PARITIES = {"even": 0, "odd": 1}

OTHER_SIDE_OF_THE_BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
"""A comparison and its partner, which differs for the bound itself and for no other integer."""


@dataclass(frozen=True)
class Condition:
    """A condition on an integer ``x``: a comparison with ``bound``, or a parity."""

    relation: str
    """A comparison (``<``, ``<=``, ``>``, ``>=``, ``==``) needs a bound; ``even`` and ``odd`` have none."""
    bound: int | None = None

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


_ACTIONS: dict[str, tuple[str, str, Callable[[int, int], int]]] = {
    "add": ("x plus {}", "x + {}", lambda x, amount: x + amount),
    "subtract": ("x minus {}", "x - {}", lambda x, amount: x - amount),
    "constant": ("{}", "{}", lambda _x, amount: amount),
    "negate": ("minus x", "-x", lambda x, _amount: -x),
    "keep": ("x", "x", lambda x, _amount: x),
}


@dataclass(frozen=True)
class Action:
    """A function of an integer ``x``. Only add, subtract and constant use ``amount``."""

    kind: str
    amount: int = 0

    @property
    def english(self) -> str:
        return _ACTIONS[self.kind][0].format(self.amount)

    @property
    def python(self) -> str:
        return _ACTIONS[self.kind][1].format(self.amount)

    def answer(self, x: int) -> int:
        return _ACTIONS[self.kind][2](x, self.amount)


@dataclass(frozen=True)
class Decision:
    """An if-else about an integer. One of its branches may be another decision."""

    condition: Condition
    then: "Action | Decision"
    otherwise: "Action | Decision"
    takes_list = False

    @property
    def english(self) -> str:
        if isinstance(inner := self.then, Decision):
            return (
                f"If x is {self.condition.english}, then if x is {inner.condition.english}, return "
                f"{inner.then.english}, if not, return {inner.otherwise.english}. "
                f"Otherwise return {self.otherwise.english}."
            )
        if isinstance(self.otherwise, Decision):
            rest = self.otherwise.english.replace("If", "if", 1)
        else:
            rest = f"otherwise {self.otherwise.english}."
        return f"If x is {self.condition.english}, return {self.then.english}, {rest}"

    @property
    def python(self) -> str:
        return "\n".join(["def f(x):", *_lines(self, "    ")])

    def answer(self, x: Value) -> Value:
        assert isinstance(x, int)
        return (self.then if self.condition.holds(x) else self.otherwise).answer(x)


def _lines(branch: Action | Decision, indent: str) -> list[str]:
    if isinstance(branch, Action):
        return [f"{indent}return {branch.python}"]
    inside = _lines(branch.then, f"{indent}    ")
    return [f"{indent}if {branch.condition.python}:", *inside, *_lines(branch.otherwise, indent)]


_RESULTS: dict[str, tuple[str, str, Callable[[list[int]], Value]]] = {
    "len": ("Return how many x in v are {condition}.", "len(w)", len),
    "max": ("Return the largest of {items}, or {default} if there are none.", "max(w)", max),
    "min": ("Return the smallest of {items}, or {default} if there are none.", "min(w)", min),
    "kept": ("List {items}.", "w", lambda w: w),
    "reversed": ("List {items}, reversed.", "w[::-1]", lambda w: w[::-1]),
    "sorted": ("List {items}, sorted.", "sorted(w)", sorted),
}
ORDERS = ("kept", "reversed", "sorted")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Take the elements of a list that fulfil ``condition``, change each by ``action``, and reduce them by ``kind``."""

    kind: str
    """``len``, ``max`` and ``min`` give a number; the ``ORDERS`` give a list."""
    action: Action | None = None
    """Change of each element. None: no change, and no word about it in the English question."""
    condition: Condition
    default: int | None = None
    """The answer for an empty selection. None: the program has no guard, which is a mistake for ``max`` and ``min``."""
    takes_list = True

    @property
    def english(self) -> str:
        fitting = f"all x in v that are {self.condition.english}"
        items = f"{self.action.english} for {fitting}" if self.action else fitting
        return _RESULTS[self.kind][0].format(condition=self.condition.english, items=items, default=self.default)

    @property
    def python(self) -> str:
        item = self.action.python if self.action else "x"
        guard = "" if self.default is None else f" if w else {self.default}"
        return (
            f"def f(v):\n    w = [{item} for x in v if {self.condition.python}]\n"
            f"    return {_RESULTS[self.kind][1]}{guard}"
        )

    def answer(self, x: Value) -> Value:
        """The program's answer. ValueError: it takes ``max`` or ``min`` of nothing, without a guard."""
        assert isinstance(x, list)
        fitting = [element for element in x if self.condition.holds(element)]
        if not fitting and self.default is not None:
            return self.default
        return _RESULTS[self.kind][2]([self.action.answer(element) for element in fitting] if self.action else fitting)


Operation = Decision | Selection
PartPath = tuple[str, ...]
"""Names of fields that lead from an operation to a part of it."""


def parts_of(operation: Operation) -> Iterator[tuple[PartPath, Condition | Action]]:
    """The conditions and actions of ``operation`` with their paths, in reading order."""
    for name in operation.__dataclass_fields__:
        part = getattr(operation, name)
        if isinstance(part, Condition | Action):
            yield (name,), part
        elif isinstance(part, Decision):
            yield from (((name, *path), inner) for path, inner in parts_of(part))


def conditions_of(operation: Operation) -> list[Condition]:
    """The conditions among the parts, in the same order."""
    return [part for _, part in parts_of(operation) if isinstance(part, Condition)]


def with_part(operation: Operation, path: PartPath, part: Condition | Action) -> Operation:
    """A copy of ``operation`` with another part at a path of ``parts_of``."""
    name, *rest = path
    changed: Any = {name: with_part(getattr(operation, name), tuple(rest), part) if rest else part}
    return replace(operation, **changed)


def answer_or_none(operation: Operation, x: Value) -> Value | None:
    """The answer of ``operation`` for ``x``; None if its program would raise an error."""
    try:
        return operation.answer(x)
    except ValueError:
        return None
