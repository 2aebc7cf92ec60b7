"""What an attack reports: lines for the terminal, and a pytest file with one test for each minimal call."""

import ast
import math
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from sandbox import LIBRARY_MODULES, LIBRARY_NAMES, Call

from ...stats.tables import counted
from .expectations import TIME_OUT, show_answer
from .findings import HANG_SECONDS, Bug, Finding

MARK = "# Written by `code-a1 attack`."
"""First words of the file; a file that begins otherwise is not overwritten."""
ALONE_KINDS = (TIME_OUT, "the process ends", "raises MemoryError")
"""Kinds of failure (``Failure.kind``) that would take pytest, or the machine, with them."""
_MODULES = ("asyncio", "collections", "math", "numbers", "os", "subprocess")
"""What the functions below and awaited calls need."""
_LONGEST_LINE = 300
"""Characters of an assert on the terminal; the file has all of it."""
_HASH_SEEDS = 16
"""A call that is right under every other seed passes all of them once in 65536 times."""
_HEAD = '''\
{mark} A further run writes it anew.
"""Calls on which {entry} of {program} was wrong, shrunk as far as they fail; the answers are {reference}'s."""

{imports}

PROGRAM = Path(__file__).resolve().parent / {path!r}


def load():
    """The program, freshly imported: no test sees what another one changed."""
    spec = importlib.util.spec_from_file_location("program_under_attack", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
'''
_SAME = '''

def same(answer, expected):
    """Equal, floats within 1e-6 + 1e-7 * |expected| at any depth, NaN like NaN."""
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
    """A key, with NaN as one object: it equals itself inside containers."""
    if isinstance(key, (tuple, frozenset)):
        return type(key)(map(plain, key)) if type(key) in (tuple, frozenset) else key
    return math.nan if key != key else key
'''
_ALONE = '''

def passes_alone(statement, *, seconds, hash_seed=os.environ.get("PYTHONHASHSEED", "random")):
    """Whether a statement passes in a process of its own, with so many seconds of CPU time and 2 GiB of memory."""
    limits = f"from resource import *; setrlimit(RLIMIT_CPU, ({seconds},) * 2); setrlimit(RLIMIT_AS, (2**31,) * 2)"
    start = f"import runpy; globals().update(runpy.run_path({str(Path(__file__))!r})); program = load()"
    command = [sys.executable, "-c", f"{limits}\\n{start}\\n{statement}\\nprint('passed')"]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * seconds)
    return done.stdout.endswith("passed\\n")
'''


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Failures by kind, each minimal call as an assert that can be pasted; without a reference call and answers."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.kind} ({counted(finding.num_calls, 'call')})")
        for bug in finding.bugs:
            votes = _votes(bug)
            seed = " (depends on the hash seed, or on chance)" * bug.depends_on_seed
            after = f"{bug.earlier[0].text}; " if bug.earlier else ""
            text = bug.call.text if bug.expected.votes else bug.text  # without a reference nobody says who is right
            lines.append(f"  {after}{_cut(text)}  # your function: {bug.failure.shown}{seed}{votes}")
        if not finding.bugs:
            lines.append("  (no minimal call: it fails only after several others, or others took the room)")
    return lines


def pytest_text(
    bugs: Sequence[Bug], *, entry_points: Collection[str], program: Path, output: Path, reference: str
) -> str:
    """The source of a test file that fails on the program as it is and passes on a right one.

    Each test imports the program anew, by its path from the test file. A call that hangs, ends its process or takes all
    memory is made in a process of its own, which the kernel ends after ``HANG_SECONDS`` of CPU time or ten times what
    the reference needs; twice that on the clock for one that sleeps. So is a call whose answer depends on the hash
    seed, under several of them. A call that is slow but answers rightly is written as a comment: whether it passes
    would depend on the machine.

    Args:
        bugs: at least one.
        entry_points: names under test.
        program: its file.
        output: where the text will be written.
        reference: the name of the reference's file.
    """
    tests = [_test_text(number, bug, entry_points) for number, bug in enumerate(bugs, start=1)]
    body = "".join(f"\n\n{test}" for test in tests)
    parts = [part for part, word in ((_SAME, "same("), (_ALONE, "passes_alone(")) if word in body]
    head = _HEAD.format(
        mark=MARK,
        entry=", ".join(sorted(entry_points)),
        program=program.name,
        reference=reference,
        imports=_imports(bugs, entry_points, "".join(parts) + body),
        path=os.path.relpath(program.resolve(), output.resolve().parent),
    )
    return "".join([head, *parts, body])


def may_be_written(output: Path) -> bool:
    """No file is there, or one of an earlier attack."""
    if not output.exists():
        return True
    try:
        with output.open(encoding="utf-8") as handle:
            return handle.read(len(MARK)) == MARK
    except (OSError, ValueError):
        return False


def _test_text(number: int, bug: Bug, entry_points: Collection[str]) -> str:
    name = f"test_{number}_{_identifier(bug.failure.kind)}"
    was = f"  # was: {bug.failure.shown}"
    if bug.failure.kind == TIME_OUT and not bug.hangs:
        return (
            f"# {name}: {bug.call.text} answers rightly, but took more than ten times the reference's\n# time. "
            "No test, for its verdict would depend on the machine.\n"
        )
    call = _on_program(bug.call, entry_points)
    expected = bug.expected.literal
    check = f"{call} == {expected}" if _is_compared_plainly(expected) else f"same({call}, {expected})"
    if bug.failure.kind in ALONE_KINDS or bug.fails_late or bug.depends_on_seed:
        seconds = math.ceil(max(HANG_SECONDS, 10 * bug.expected.cpu_seconds))
        statement = "\n".join([*(_on_program(one, entry_points) for one in bug.earlier), f"assert {check}"])
        alone = f"passes_alone({statement!r}, seconds={seconds}"
        if not bug.depends_on_seed:
            return f"def {name}():{was}\n    assert {alone})\n"
        seeds = f"for seed in range({_HASH_SEEDS}))"
        return f"def {name}():{was}, under some hash seeds\n    assert all({alone}, hash_seed=seed) {seeds}\n"
    lines = [f"def {name}():", "    program = load()"]
    lines += [f"    {_on_program(one, entry_points)}  # changes later answers" for one in bug.earlier]
    return "\n".join([*lines, f"    assert {check}{was}\n"])


def _is_compared_plainly(literal: str) -> bool:
    """No float is in it, nor a Decimal, of which NaN matters."""
    for node in ast.walk(ast.parse(literal, mode="eval")):
        if isinstance(node, ast.Name) and node.id in ("float", "complex", "Decimal"):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return False
    return True


def _on_program(call: Call, entry_points: Collection[str]) -> str:
    """``f([1])`` -> ``program.f([1])``, with its awaitable awaited."""
    data = call.expression.encode()
    names = [node for node in ast.walk(ast.parse(call.expression, mode="eval")) if isinstance(node, ast.Name)]
    for node in sorted(names, key=lambda node: -node.col_offset):
        if node.id in entry_points:
            data = data[: node.col_offset] + b"program." + data[node.col_offset :]
    return f"asyncio.run({data.decode()})" if call.awaited else data.decode()


def _imports(bugs: Sequence[Bug], entry_points: Collection[str], body: str) -> str:
    used = {
        node.id
        for bug in bugs
        for text in (bug.expected.literal, bug.call.expression, *(one.expression for one in bug.earlier))
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, ast.Name) and node.id not in entry_points
    }
    modules = {"importlib.util", "sys"} | (used & set(LIBRARY_MODULES))
    modules |= {name for name in _MODULES if re.search(rf"\b{name}\.", body)}
    sources = {"pathlib": ["Path"]}
    for name in sorted(used & set(LIBRARY_NAMES)):
        sources.setdefault(LIBRARY_NAMES[name].__module__, []).append(name)
    lines = [f"import {module}" for module in sorted(modules)]
    return "\n".join(
        [*lines, *(f"from {module} import {', '.join(names)}" for module, names in sorted(sources.items()))]
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}... ({len(text)} characters)"


def _identifier(kind: str) -> str:
    return re.sub(r"\W+", "_", kind).strip("_").lower()


def _votes(bug: Bug) -> str:
    return "".join(f" | {counted(count, 'other')}: {show_answer(answer)}" for answer, count in bug.expected.votes)
