"""One check of a function: calls of asserts and small changes of them; what fails is shrunk."""

import ast
import contextlib
import copy
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox import Call, Case, Gate, Limits

from ...errors import InputError
from ...stats.tables import counted, counts_text
from ..bug_finder.failures import TIME_OUT
from ..bug_finder.inputs import read_suites
from ..bug_finder.literal_calls import take_apart
from ..bug_finder.output import group_lines
from ..bug_finder.search import Attack
from .function_runner import FunctionRunner, settled

_LIMITS = Limits(reference_cpu_seconds_per_case=1.0, total_seconds=60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """What ``code_a1.check`` takes."""

    function: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    holds: Callable[..., bool] | None = None
    raises: type[BaseException] | tuple[type[BaseException], ...] = ()
    suites: str | Path | Sequence[str | Path] = ()

    def __post_init__(self) -> None:
        if not getattr(self.function, "__name__", "").isidentifier():
            raise InputError(f"check needs a function that asserts can call by its name, got {self.function!r}")
        if (self.reference is None) == (self.holds is None) or (self.raises and not self.holds):
            raise InputError("check needs either reference=FUNCTION or holds=PROPERTY; raises= goes with holds= alone")
        kinds = self.raises if isinstance(self.raises, tuple) else (self.raises,)
        if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
            raise InputError(f"raises= takes exception classes, one or a tuple, got {self.raises!r}")

    def checked(self, *positional: Any, **named: Any) -> bool:
        """True where the property holds, or the function refuses its arguments; raises what the function raises."""
        assert self.holds is not None, "__post_init__ has seen that"
        given, given_by_name = copy.deepcopy((positional, named))
        try:
            result = settled(self.function(*positional, **named))
        except self.raises:
            return True
        try:
            holds = self.holds(result, *given, **given_by_name)
        except Exception as error:
            raise AssertionError(f"holds= raises {type(error).__name__}: {error} for the result {result!r}") from error
        if not holds:
            hint = "; holds= must return whether it is right" if holds is None else ""
            raise AssertionError(f"not so for the result {result!r}{hint}")
        return True


class Check:
    """A search for calls on which a function breaks, for one test."""

    def __init__(self, options: CheckOptions, item: pytest.Item) -> None:
        self._options = options
        self._item = item
        self._entry: str = options.function.__name__
        self._source = ""
        with contextlib.suppress(OSError, TypeError):  # built in, or made by code that is in no file
            self._source = textwrap.dedent(inspect.getsource(options.function))
        functions = {"function": options.function, "reference": options.reference}
        if options.reference is None:  # the right answer of a property is True
            functions = {"function": options.checked, "reference": lambda *_, **__: True}
        runner = FunctionRunner(functions, entry=self._entry)
        gate = Gate(self._source, (self._entry,), assert_chars=_LIMITS.assert_chars)
        self._attack = Attack(source="function", reference="reference", runner=runner, limits=_LIMITS, gate=gate)
        self._made: dict[Call, None] = {}

    def run(self) -> str | None:
        """Search until something is found.

        Returns:
            Lines that say on which calls the function breaks; empty where none was found, None where none was made.

        Raises:
            InputError: an option cannot be used, or no call has an answer of the reference.
            SandboxUnavailableError: a fork of this process ended early.
        """
        found = self._search(self._suites())
        if found or not self._made:
            return found or None
        if not self._attack.expect(self._made):
            raise InputError(
                f"nothing to compare: the reference of {self._entry} answers none of "
                f"{counted(len(self._made), 'call')} with a plain value ({counts_text(self._attack.refusals)}); write "
                "asserts with valid arguments, or wrap both functions so that they return plain values"
            )
        if num_unasked := len(self._attack.unasked):
            told = f"code-a1: {counted(num_unasked, 'call')} of {self._entry} could not be made in the time there is"
            warnings.warn(pytest.PytestWarning(told), stacklevel=1)
        return ""

    def _search(self, suites: Iterable[Sequence[str]]) -> str:
        """Make the calls of asserts, and small changes of them, as far as they were not made before."""
        gate = self._attack.gate
        owner = re.compile(rf"\b(?:[^\W\d]\w*\.)+(?={self._entry}\()")  # `module.f(1)`: f(1)
        tested: dict[Call, None] = {}
        for suite in suites:
            for case in gate.suite(owner.sub("", text) for text in suite).cases:
                # The call of the function alone, without what an assert reads of its result.
                literal = take_apart(case.call.text, (self._entry,))
                plain = gate.call(ast.unparse(literal.lists[0])) if literal else None
                if isinstance(plain, Case):
                    tested[plain.call] = None
        near = self._attack.calls_near(list(tested), max_calls=self._item.config.getoption("code_a1_max_calls"))
        new = [call for call in near if call not in self._made]
        self._made |= dict.fromkeys(new)
        groups = self._attack.find(new)
        # A call that is slow but right in the end is no failure: that would depend on the machine.
        groups = [group for group in groups if group.bug or group.kind != TIME_OUT]
        if not groups:
            return ""
        head = f"{self._entry} breaks on these calls, of {counted(len(self._made), 'call')} that were made"
        return "\n".join([head, *group_lines(groups, shows_expected=self._options.holds is None)])

    def _suites(self) -> Iterable[Sequence[str]]:
        named = self._options.suites
        paths = [named] if isinstance(named, (str, Path)) else list(named)
        if paths:
            return read_suites([self._item.config.rootpath / path for path in paths]).suites
        with contextlib.suppress(InputError):  # the test's own file need not have asserts
            return read_suites([self._item.path]).suites
        return ()
