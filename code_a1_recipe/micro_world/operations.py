"""The small language of the micro world: conditions, actions, and operations that consist of them.

Every operation has an English question (``english``), a Python program (``python``) and an answer for each input
(``answer``). The operation computes the answer itself, so the right answer is known without running a program.
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
"""Maps a comparison to the comparison whose result differs only for the bound itself."""


@dataclass(frozen=True)
class Condition:
    """A condition on an integer ``x``: a comparison with ``bound``, or a parity."""

    relation: str
    """A comparison (``<``, ``<=``, ``>``, ``>=``, ``==``) or a parity (``even``, ``odd``)."""
    bound: int | None = None
    """Bound of a comparison. A parity has no bound."""

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
    """An operation on a list: select elements by ``condition``, change each by ``action``, then apply ``kind``."""

    kind: str
    """``len``, ``max`` and ``min`` give a number, and the ``ORDERS`` give a list."""
    action: Action | None = None
    """Change of each element. With None, elements stay as they are, and the English question mentions no change."""
    condition: Condition
    default: int | None = None
    """The answer for an empty selection. Without a default, the program has no branch for an empty selection. For
    ``max`` and ``min`` a missing branch is a mistake."""
    takes_list = True

    @property
    def english(self) -> str:
        template, _, _ = _RESULTS[self.kind]
        items = f"all x in v that are {self.condition.english}"
        if self.action:
            items = f"{self.action.english} for {items}"
        return template.format(condition=self.condition.english, items=items, default=self.default)

    @property
    def python(self) -> str:
        item = self.action.python if self.action else "x"
        guard = "" if self.default is None else f" if w else {self.default}"
        return (
            f"def f(v):\n    w = [{item} for x in v if {self.condition.python}]\n"
            f"    return {_RESULTS[self.kind][1]}{guard}"
        )

    def answer(self, x: Value) -> Value:
        """Return the program's answer.

        Raises:
            ValueError: the program takes ``max`` or ``min`` of an empty selection and has no default.
        """
        assert isinstance(x, list)
        selected = [element for element in x if self.condition.holds(element)]
        if not selected and self.default is not None:
            return self.default
        if self.action:
            selected = [self.action.answer(element) for element in selected]
        _, _, reduce = _RESULTS[self.kind]
        return reduce(selected)


Operation = Decision | Selection
PartPath = tuple[str, ...]
"""Names of the fields that lead from an operation to one of its parts."""


def parts_of(operation: Operation) -> Iterator[tuple[PartPath, Condition | Action]]:
    """Yield each condition and action of ``operation`` with its path, in reading order."""
    for name in operation.__dataclass_fields__:
        part = getattr(operation, name)
        if isinstance(part, Condition | Action):
            yield (name,), part
        elif isinstance(part, Decision):
            for path, inner in parts_of(part):
                yield (name, *path), inner


def conditions_of(operation: Operation) -> list[Condition]:
    """Return the conditions among the parts of ``operation``, in reading order."""
    return [part for _, part in parts_of(operation) if isinstance(part, Condition)]


def with_part(operation: Operation, path: PartPath, part: Condition | Action) -> Operation:
    """Return a copy of ``operation`` with ``part`` at ``path``. ``parts_of`` yields the paths."""
    name, *rest = path
    changed: Any = part
    if rest:
        changed = with_part(getattr(operation, name), tuple(rest), part)
    return replace(operation, **{name: changed})


def answer_or_none(operation: Operation, x: Value) -> Value | None:
    """Return the answer of ``operation`` for ``x``, or None if its program would raise an error."""
    try:
        return operation.answer(x)
    except ValueError:
        return None
