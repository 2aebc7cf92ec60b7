"""The plugin as pytest loads it: options, marker, fixture. It imports pytest; the rest comes when a test uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ...errors import CodeA1Error


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("code-a1", "calls on which functions break (fixture code_a1)")
    text = "small changes of known calls fill up to so many (300)"
    group.addoption("--code-a1-max-calls", metavar="N", type=int, default=300, help=text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "code_a1(**options): options of code_a1.check for a test, class or module")


@pytest.fixture
def code_a1(request: pytest.FixtureRequest) -> Iterator[Checker]:
    """``code_a1.check(function, reference=...)`` looks for calls on which a function breaks."""
    checker = Checker(request.node)
    yield checker
    if checker.problem:  # an error beside the skipped test, not its failure: nothing is known about the function
        pytest.fail(checker.problem, pytrace=False)


class Checker:
    """Looks for calls on which functions break, for one test."""

    def __init__(self, item: pytest.Item) -> None:
        self.problem = ""
        """Why a check could not be made."""
        self._item = item

    def check(self, function: Callable[..., Any], **options: Any) -> None:
        """Fail the test where a call is found on which ``function`` breaks; skip it where there is no call to make.

        Calls come from asserts ``function(literals) == literal`` and from small changes of them; what asserts expect
        decides nothing. They are made in forks of this process. An iterator's items are its result, and so is what a
        coroutine returns.

        Args:
            function: with a name; takes and returns plain values.
            reference: a function whose answer is the right one. Calls on which it raises are left out.
            holds: the property instead: ``holds(result, *arguments)`` is true where the result is right.
            raises: with ``holds``: exceptions by which the function refuses arguments, one or a tuple.
            suites: files with asserts, paths from rootdir; the test's own file if none is named.

        The marker ``code_a1`` takes the same options for all checks of a test, class or module.
        """
        __tracebackhide__ = True
        from sandbox import SandboxError

        from .check import Check, CheckOptions

        for mark in self._item.iter_markers("code_a1"):
            options = {**mark.kwargs, **options}
        try:
            found = Check(CheckOptions(function=function, **options), self._item).run()
        except (CodeA1Error, SandboxError) as error:
            self.problem = f"code-a1: {error}"
            pytest.skip(self.problem)
        if found:
            raise AssertionError(found)
        if found is None:
            pytest.skip("code-a1: no call to make; write asserts of the function, or name them: suites=...")
