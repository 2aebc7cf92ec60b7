"""One check of a function: kept calls first, then those of asserts, then a Test LLM's; each found failure is shrunk."""

import contextlib
import copy
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from filelock import FileLock

from sandbox import Call, Case, Gate, Limits, encode

from ...errors import InputError
from ...files import fingerprint, write_whole
from ...stats.tables import counted, counts_text
from ..bug_finder.expectations import TIME_OUT, Expectation, Expected, ReferenceExpectation
from ..bug_finder.inputs import read_suites, suites_in
from ..bug_finder.literal_calls import take_apart
from ..bug_finder.output import group_lines
from ..bug_finder.search import Attack, FailureGroup
from .function_runner import FunctionRunner, settled

FOLDER = ".code_a1"
"""Below rootdir: failing calls, and responses of models."""
_LIMITS = Limits(reference_cpu_seconds_per_case=1.0, total_seconds=60.0)
_MAX_BUGS = 4
_CASES = 8
_Sequences = list[list[str]]
"""Texts of calls to make in this order; the last of each fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """What ``code_a1.check`` takes."""

    function: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    holds: Callable[..., bool] | None = None
    raises: type[BaseException] | tuple[type[BaseException], ...] = ()
    suites: str | Path | Sequence[str | Path] = ()
    question: str | None = None

    def __post_init__(self) -> None:
        if not getattr(self.function, "__name__", "").isidentifier():
            raise InputError(f"check needs a function that asserts can call by its name, got {self.function!r}")
        if (self.reference is None) == (self.holds is None) or (self.raises and not self.holds):
            raise InputError("check needs either reference=FUNCTION or holds=PROPERTY; raises= goes with holds= alone")
        if not callable(self.reference or self.holds):
            raise InputError(f"reference= and holds= take functions, got {self.reference or self.holds!r}")
        kinds = self.raises if isinstance(self.raises, tuple) else (self.raises,)
        if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
            raise InputError(f"raises= takes exception classes, one or a tuple, got {self.raises!r}")

    def checked(self, *positional: Any, **named: Any) -> bool:
        """True where the property holds, or the function refuses its arguments; raises what the function raises."""
        assert self.holds is not None, "__post_init__ has seen that"
        with contextlib.suppress(ValueError):  # the signature of a built-in function may not be known
            try:
                inspect.signature(self.function).bind(*positional, **named)
            except TypeError:  # a simpler call that lost an argument says nothing
                return True
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a check found."""

    num_calls: int
    failure: str = ""
    """Lines that say on which calls the function breaks; empty where none was found."""
    notes: list[str] = field(default_factory=list)


class _PropertyExpectation(Expectation):
    def expect(self, calls: Sequence[Call], *, alone: bool = False) -> dict[Call, Expected]:
        return {call: Expected(value=encode(True), literal="") for call in calls}


class Check:
    """A search for calls on which a function breaks, for one test."""

    def __init__(self, options: CheckOptions, item: pytest.Item) -> None:
        self._options = options
        self._item = item
        self._entry: str = options.function.__name__
        self._folder = item.config.rootpath / FOLDER
        self._failures = self._folder / "failures.json"
        self._source = ""
        with contextlib.suppress(OSError, TypeError):  # built in, or made by code that is in no file
            self._source = textwrap.dedent(inspect.getsource(options.function))
        functions = {"function": options.checked}
        if options.reference is not None:
            functions = {"function": options.function, "reference": options.reference}
        runner = FunctionRunner(functions, entry=self._entry, limits=_LIMITS)
        expectation: Expectation = _PropertyExpectation()
        if options.reference is not None:
            expectation = ReferenceExpectation("reference", runner, limits=_LIMITS)
        gate = Gate(self._source, (self._entry,), assert_chars=_LIMITS.assert_chars)
        self._attack = Attack(source="function", expectation=expectation, runner=runner, limits=_LIMITS, gate=gate)
        self._made: dict[Call, None] = {}

    def run(self) -> Outcome:
        """Search until something is found.

        Raises:
            InputError: an option cannot be used, or no call has an answer of the reference.
            OutageError, SandboxUnavailableError: a model, or a fork of this process, is down.
        """
        before = self._read_kept().get(self._item.nodeid, [])
        kept = [texts for texts in before if texts and all(take_apart(text, (self._entry,)) for text in texts)]
        bugs = [bug for texts in kept if (bug := self._attack.replay(texts)) is not None]
        if bugs:
            groups = [FailureGroup(kind=bug.failure.kind, num_calls=1, bugs=(bug,)) for bug in bugs]
            return self._failed(groups, "which an earlier run has found")
        groups = self._search([[f"assert {texts[-1]} == 0" for texts in kept], *self._suites()])
        if not groups and self._item.config.getoption("code_a1"):
            groups = self._search(self._asked_suites())
        if groups:
            return self._failed(groups, f"of {counted(len(self._made), 'call')} that were made")
        return self._passed(kept)

    def _search(self, suites: Sequence[Sequence[str]]) -> list[FailureGroup]:
        """Make the calls of asserts, and small changes of them, as far as they were not made before."""
        gate = self._attack.gate
        owner = re.compile(rf"\b(?:[^\W\d]\w*\.)+(?={self._entry}\()")  # `module.f(1)`: f(1)
        tested: dict[Call, None] = {}
        for suite in suites:
            texts = [owner.sub("", text) for text in suite]
            for case in gate.suite(texts).cases:
                plain = gate.call(self._plain(case.call.text))
                if isinstance(plain, Case):
                    tested[plain.call] = None
        asked = self._attack.calls_near(list(tested), max_calls=self._item.config.getoption("code_a1_max_calls"))
        failures = self._attack.failures([call for call in asked if call not in self._made])
        self._made |= dict.fromkeys(asked)
        groups = self._attack.shrink_all(failures, max_bugs=_MAX_BUGS)
        # A call that is slow but right in the end is no failure: that would depend on the machine.
        return [group for group in groups if group.bugs or group.kind != TIME_OUT]

    def _plain(self, text: str) -> str:
        """The call of the function alone, without what an assert reads of its result; empty if it has no literals."""
        call = take_apart(text, (self._entry,))
        if call is None:
            return ""
        own = tuple(argument for argument in call.arguments if not argument.place)
        return replace(call, pieces=(self._entry, ""), arguments=own).text

    def _suites(self) -> Sequence[Sequence[str]]:
        named = self._options.suites
        paths = [named] if isinstance(named, (str, Path)) else list(named)
        if paths:
            return read_suites([self._item.config.rootpath / path for path in paths]).suites
        with contextlib.suppress(InputError):  # the test's own file need not have asserts
            return read_suites([self._item.path]).suites
        return ()

    def _asked_suites(self) -> Sequence[Sequence[str]]:
        # Here: the imports take seconds.
        from ...algorithm.prompts import render, template_for
        from ...algorithm.question import entry_points_text
        from ...evaluation.models.options import ModelOptions, run_of, usual_prompt
        from ..bug_finder.command import sample_suites
        from ..bug_finder.options import AttackOptions

        option = self._item.config.getoption
        named = {name: option(f"code_a1_{name}") for name in ("model", "endpoint", "endpoint_model", "max_tokens")}
        model = ModelOptions(**named, prefix="code-a1-")
        run = run_of(model)
        messages = render(
            template_for("test", usual_prompt(run, "test")),
            prompt=self._options.question or inspect.getdoc(self._options.function) or "What the program below does.",
            entry_points=entry_points_text(self._source, (self._entry,)),
            candidate=self._source.strip(),
            num_cases=run.episode.cases_per_suite if run else _CASES,
        )
        amount = {"num_suites": option("code_a1_num_suites"), "seed": option("code_a1_seed")}
        how = AttackOptions(solution=self._item.path, model=model, **amount)
        # A file for each test: other tests may run in other processes.
        responses = self._folder / "responses" / f"{fingerprint(self._item.nodeid)}.jsonl"
        return suites_in(sample_suites(how, messages, responses)).suites

    def _failed(self, groups: Sequence[FailureGroup], what: str) -> Outcome:
        bugs = [bug for group in groups for bug in group.bugs]
        found = [list(bug.texts) for bug in bugs]
        self._change_kept(lambda kept: [*kept, *(texts for texts in found if texts not in kept)])
        lines = [f"{self._entry} breaks on these calls, {what}", *group_lines(groups)]
        if bugs:
            lines.append(f"kept in {FOLDER}/failures.json: the next run of {self._item.nodeid} begins with them")
        return Outcome(num_calls=1, failure="\n".join(lines))

    def _passed(self, kept: _Sequences) -> Outcome:
        expectation = self._attack.expectation
        if self._made and not expectation.expect(list(self._made)):
            raise InputError(
                f"nothing to compare: the reference of {self._entry} answers none of "
                f"{counted(len(self._made), 'call')} with a plain value ({counts_text(expectation.refusals)}); write "
                "asserts with valid arguments, or wrap both functions so that they return plain values"
            )
        notes = [f"fails no more, kept no longer: {'; '.join(texts)}" for texts in kept]
        if kept:
            self._change_kept(lambda now: [texts for texts in now if texts not in kept])
        if num_unasked := len(self._attack.unasked | expectation.unasked):
            notes.append(f"{counted(num_unasked, 'call')} of {self._entry} could not be made in the time there is")
        return Outcome(num_calls=len(self._made), notes=notes)

    def _change_kept(self, change: Callable[[_Sequences], _Sequences]) -> None:
        """Change what the file of failing calls has of this test. InputError: it cannot be read or written."""
        try:
            self._folder.mkdir(exist_ok=True)
            with FileLock(self._failures.with_suffix(".lock")):  # other processes run other tests
                tests = self._read_kept()
                tests[self._item.nodeid] = change(tests.get(self._item.nodeid, []))
                left = {test: sequences for test, sequences in sorted(tests.items()) if sequences}
                write_whole(self._failures, json.dumps(left, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise InputError(f"{self._failures} cannot be written: {error}; make room for it") from error

    def _read_kept(self) -> dict[str, _Sequences]:
        """Read the calls of all tests. InputError: the file is none of this class."""
        try:
            data = self._failures.read_bytes() if self._failures.exists() else b"{}"
            return msgspec.json.decode(data, type=dict[str, _Sequences])
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{self._failures} cannot be read: {error}; mend it, or remove it") from error
