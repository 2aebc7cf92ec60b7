"""Runs inside the sandbox: a BigCodeBench program, its unit tests, and what became of each of them.

The text of this file is put in front of program and tests, so it imports the standard library only. The tests find
the names and the module that BigCodeBench's own harness gives them.
"""

import os  # noqa: F401 - for the tests
import sys
import unittest
from os import environ  # noqa: F401 - for the tests

__file__ = "__test__.py"
sys.modules["__test__"] = sys.modules[__name__]


def run_unit_tests(cases: type[unittest.TestCase]) -> list[list[str]]:
    """Run all tests of a class, in the order of their names.

    Returns:
        ``[name, outcome, remark]`` of each, outcome "passed" or "failed"; at the end failures of a whole class.
    """
    loader = unittest.TestLoader()
    result = unittest.TestResult()
    loader.loadTestsFromTestCase(cases).run(result)
    remarks: dict[str, str] = {}
    for test, trace in result.failures + result.errors:
        name = test.id().partition(" ")[0].rpartition(".")[2]
        remarks.setdefault(name, _what_was_raised(trace)[:200])
    names = [*loader.getTestCaseNames(cases)]
    names += [name for name in remarks if name not in names]
    return [[name, "failed" if name in remarks else "passed", remarks.get(name, "")] for name in names]


def _what_was_raised(trace: str) -> str:
    """The line of a traceback that names the exception; others may follow it."""
    lines = trace.splitlines()
    last_frame = max((place for place, line in enumerate(lines) if line.startswith("  File ")), default=0)
    return next((line for line in lines[last_frame:] if line and not line.startswith(" ")), "")
