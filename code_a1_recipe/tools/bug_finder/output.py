"""The results of an attack: lines for the terminal, and a pytest file with one test for each minimal call."""

import ast
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

from sandbox import Call

from ...stats.tables import counted
from .failures import TIME_OUT
from .search import HANG_SECONDS, Bug, FailureGroup

MARK = "# Written by `code-a1 attack`."
"""The first words of the pytest file. A file with another beginning is not overwritten."""
_ALONE_KINDS = (TIME_OUT, "the process ends", "raises MemoryError")
"""Kinds of failure (``Failure.kind``) whose test runs in a separate process, to protect pytest and the machine."""
_HEAD = '''\
{mark} The next attack overwrites this file.
"""Minimal calls on which {entry} of {program} failed. The expected outputs are the answers of {reference}."""

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
    if set(map(plain, answer)) == set(map(plain, expected)):
        return True
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (*answer, *expected)):
        return False
    return all(map(same, sorted(answer), sorted(expected)))


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


def group_lines(groups: Sequence[FailureGroup]) -> list[str]:
    """List the kinds of failure, each with its minimal call as an assert that can be copied."""
    lines = []
    for group in groups:
        lines.append(f"{group.kind} ({counted(group.num_calls, 'call')})")
        bug = group.bug
        if bug is None:
            lines.append("  (no minimal call: the call is slow but correct, or fails only after several other calls)")
            continue
        earlier = "".join(f"{call.text}; " for call in bug.earlier)
        text = f"assert {bug.call.text} == {bug.expected.literal}"
        lines.append(f"  {earlier}{text}  # your function: {bug.failure.shown}")
    return lines


def pytest_text(bugs: Sequence[Bug], *, entry: str, program: Path, output: Path, reference: str) -> str:
    """Write the source of a test file that fails on the present program and passes on a correct program.

    Each test imports the program again, by a path relative to the test file. A call that hangs, ends its process or
    takes all memory is made in a separate process. The kernel ends the separate process after ``HANG_SECONDS`` of CPU
    time, or after ten times the reference's time if that is longer. If the separate process only sleeps, the test ends
    it after twice its CPU limit in real time.

    Args:
        bugs: at least one bug.
        entry: name of the function or class under test.
        program: the file of the program.
        output: the file to which the text will be written.
        reference: the name of the reference's file.
    """
    path = os.path.relpath(program.resolve(), output.resolve().parent)
    parts = [
        _HEAD.format(mark=MARK, entry=entry, program=program.name, reference=reference, path=path),
        _HELPERS,
    ]
    for number, bug in enumerate(bugs, start=1):
        parts.append(_test_text(number, bug, entry))
    return "".join(parts)


def may_be_written(output: Path) -> bool:
    """Say whether the file does not exist, or was written by an earlier attack."""
    try:
        return not output.exists() or output.read_text(encoding="utf-8").startswith(MARK)
    except (OSError, ValueError):
        return False


def _test_text(number: int, bug: Bug, entry: str) -> str:
    kind = re.sub(r"\W+", "_", bug.failure.kind).strip("_").lower()
    earlier = [_on_program(call, entry) for call in bug.earlier]
    check = f"assert same({_on_program(bug.call, entry)}, {bug.expected.literal})"
    if bug.failure.kind in _ALONE_KINDS or bug.is_late:
        seconds = math.ceil(max(HANG_SECONDS, 10 * bug.expected.cpu_seconds))
        statements = "\n".join([*earlier, check])
        body = [f"assert passes_alone({statements!r}, seconds={seconds})"]
    else:
        before = [f"{call}  # changes later answers" for call in earlier]
        body = ["program = load()", *before, check]
    lines = [
        f"\n\ndef test_{number}_{kind}():",
        f"# was: {bug.failure.shown}",
        *body,
    ]
    return "\n    ".join(lines) + "\n"


def _on_program(call: Call, entry: str) -> str:
    """Make the call on the module ``program``: ``f([1])`` becomes ``program.f([1])``. An awaitable is awaited."""
    tree = ast.parse(call.expression, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == entry:
            node.id = f"program.{entry}"
    text = ast.unparse(tree)
    return f"asyncio.run({text})" if call.awaited else text
