"""The pytest file that ``attack`` writes, and untrusted answers as text."""

import ast
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from sandbox import CaseOutcome, CaseResult

MARK = "# Written by `code-a1 attack`."
"""The first words of the pytest file. A file with another beginning is not overwritten."""
_ALONE = (CaseOutcome.TIMED_OUT, CaseOutcome.DIED)
"""Outcomes whose test runs in a separate process, to protect pytest and the machine. So does a MemoryError."""
_SECONDS = 10
"""CPU seconds of a test in a separate process: ten times the time that the reference may take for a call."""
_LONGEST_SHOWN = 120
_HEAD = '''\
{mark} The next attack overwrites this file.
"""Valid tests for {program}."""

# ruff: noqa: F401
import asyncio
import collections
import decimal
import fractions
import importlib.util
import math
import numbers
import os
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / {path!r}


def load():
    """Import the program anew, so that no test sees the changes of another test."""
    spec = importlib.util.spec_from_file_location("program_under_attack", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
'''
_HELPERS = '''

def same(answer, expected):
    """Compare two values. Floats may differ by 1e-6 + 1e-7 * |expected| at any depth, and NaN equals NaN."""
    for kind in (list, tuple, collections.deque):
        if isinstance(expected, kind):
            alike = isinstance(answer, kind) and len(answer) == len(expected)
            return alike and all(map(same, answer, expected))
    if isinstance(expected, dict):
        if not isinstance(answer, dict) or len(answer) != len(expected):
            return False
        values = {plain(key): value for key, value in answer.items()}
        return all(plain(key) in values and same(values[plain(key)], expected[key]) for key in expected)
    if isinstance(expected, (set, frozenset)):
        return same_sets(answer, expected)
    if isinstance(expected, numbers.Number):
        return isinstance(answer, numbers.Number) and same_numbers(answer, expected)
    return bool(answer == expected)


def same_sets(answer, expected):
    if not isinstance(answer, (set, frozenset, type({}.keys()))) or len(answer) != len(expected):
        return False
    floats = sorted(one for one in expected if isinstance(one, float) and one == one)
    exact = set(map(plain, expected)) - set(floats)
    others = [one for one in answer if plain(one) not in exact]
    if len(others) != len(floats) or not all(isinstance(one, (int, float)) for one in others):
        return False
    return all(map(same, sorted(others), floats))


def same_numbers(answer, expected):
    if answer != answer or expected != expected:
        return answer != answer and expected != expected
    if answer == expected:
        return True
    if isinstance(expected, complex) and isinstance(answer, (int, float, complex)):
        return same_numbers(answer.real, expected.real) and same_numbers(answer.imag, expected.imag)
    if not isinstance(expected, float) or isinstance(answer, complex) or not math.isfinite(expected):
        return False
    try:
        return abs(float(answer) - expected) <= 1e-6 + 1e-7 * abs(expected)
    except (OverflowError, ValueError):
        return False


def plain(key):
    """Replace each NaN in a key by the same object, because containers find a NaN only by its identity."""
    if isinstance(key, (tuple, frozenset)):
        return type(key)(map(plain, key)) if type(key) in (tuple, frozenset) else key
    return math.nan if key != key else key


def passes_alone(statement, *, seconds):
    """Run a statement in a separate process, with ``seconds`` of CPU time and 2 GiB of memory. Say if it passes."""
    limits = f"from resource import *; setrlimit(RLIMIT_CPU, ({seconds},) * 2); setrlimit(RLIMIT_AS, (2**31,) * 2)"
    start = f"import runpy; globals().update(runpy.run_path({str(Path(__file__))!r})); program = load()"
    command = [sys.executable, "-c", f"{limits}\\n{start}\\n{statement}\\nprint('passed')"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * seconds)
    return done.stdout.endswith("passed\\n")
'''


def pytest_text(cases: Iterable[CaseResult], names: Collection[str], *, program: Path, output: Path) -> str:
    """Write the source of a test file with one test for each case. A correct program passes all tests.

    Each test imports the program again, by a path relative to the test file. If the program hung, ended its process or
    took all memory in a call, the test makes this call in a separate process, which ends after ``_SECONDS`` of CPU time
    or twice as much real time.

    Args:
        cases: valid cases, judged on the program.
        names: the functions and classes of the program that tests may call.
        program: the file of the program.
        output: the file to which the text will be written.
    """
    path = os.path.relpath(program.resolve(), output.resolve().parent)
    parts = [_HEAD.format(mark=MARK, program=program.name, path=path), _HELPERS]
    for number, case in enumerate(cases, start=1):
        parts.append(_test_text(number, case, names))
    return "".join(parts)


def may_be_written(output: Path) -> bool:
    """Say whether the file does not exist, or was written by an earlier attack."""
    try:
        return not output.exists() or output.read_text(encoding="utf-8").startswith(MARK)
    except (OSError, ValueError):
        return False


def shown_answer(case: CaseResult) -> str:
    """Show the program's answer in a failed case, as one printable line."""
    if case.outcome in (CaseOutcome.WRONG_VALUE, CaseOutcome.RAISED):
        return shown_text(case.detail.rstrip(": ") or "an exception")
    if not case.detail:
        return case.outcome
    return shown_text(f"{case.outcome} ({case.detail})")


def shown_text(text: str) -> str:
    """Make untrusted text safe for a terminal or a comment: one line of at most 120 printable characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[: 2 * _LONGEST_SHOWN])
    return plain if len(plain) <= _LONGEST_SHOWN else plain[: _LONGEST_SHOWN - 3] + "..."


def _test_text(number: int, case: CaseResult, names: Collection[str]) -> str:
    answer = _on_program(case.call, names)
    check = f"assert same({answer}, {case.reference_value})"
    body = ["program = load()", check]
    if case.outcome in _ALONE or case.detail.startswith("MemoryError"):
        body = [f"assert passes_alone({check!r}, seconds={_SECONDS})"]
    if case.outcome.failed:
        body.insert(0, f"# was: {shown_answer(case)}")
    lines = [f"\n\ndef test_{number}():", *body]
    return "\n    ".join(lines) + "\n"


def _on_program(call: str, names: Collection[str]) -> str:
    """Make the call on the module ``program``: ``f([1])`` becomes ``program.f([1])``. An awaitable is awaited."""
    tree = ast.parse(call, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = f"program.{node.id}"
    if isinstance(tree, ast.Await):
        return f"asyncio.run({ast.unparse(tree.value)})"
    return ast.unparse(tree)
