"""Coverage of a reference, call by call: the lines and branches that coverage.py counts.

coverage.py's parser runs in this process and finds statements and branches in the text of the reference. coverage.py's
tracer runs in the sandbox with the reference. In the sandbox, each call returns the jumps between lines that the tracer
recorded. The jumps come from an untrusted process, so this module checks them. A call that hangs or dies loses only its
own lines.
"""

import ast
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from coverage.config import DEFAULT_EXCLUDE, DEFAULT_PARTIAL, DEFAULT_PARTIAL_ALWAYS
from coverage.exceptions import CoverageException
from coverage.misc import join_regex
from coverage.parser import PythonParser

from sandbox import Call, CallResult, CallStatus, Program, Role, Runner, ValueFormatError
from sandbox.text import (
    LIBRARY_MODULES,
    LIBRARY_NAMES,
    Case,
    Interface,
    decode,
    parse_assert,
    parse_call,
    parse_untrusted,
)

from ...algorithm.question import Question
from ...errors import PARSE_ERRORS

Arc = tuple[int, int]
"""A jump from line to line. The number -n stands for the entry or the exit of the code that begins in line n."""

_FILE = "/reference-under-coverage.py"
# Ignore the compiler's warnings about a reference. The warnings would fill our log or become errors. coverage.py
# compiles the reference under the first of these names, and parses the reference under the second name.
for _name in (_FILE.removesuffix(".py"), "<unknown>"):
    warnings.filterwarnings("ignore", module=_name)
_CALLS_AT_ONCE = 512
_LIBRARY = {name: value.__module__ for name, value in LIBRARY_NAMES.items()}
# This program runs in the sandbox in place of the reference. The program chooses the tracer "ctrace". The default
# tracer of newer Pythons would report a line only for the first call that runs the line.
_WRAPPER = """\
def _make_arcs_of(scope):
    import coverage, importlib
    recorder = coverage.Coverage(data_file=None, branch=True, config_file=False, include=[{file!r}])
    recorder.set_option("run:core", "ctrace")
    recorder.set_option("run:disable_warnings", ["no-data-collected", "no-ctracer"])
    library = {{name: importlib.import_module(name) for name in {modules!r}}}
    library |= {{name: getattr(importlib.import_module(home), name) for name, home in {names!r}.items()}}
    def record(action):
        recorder.erase()
        recorder.start()
        try:
            action()
        finally:
            recorder.stop()
        return set(recorder.get_data().arcs({file!r}) or ())
    at_load = record(lambda: exec(compile({source!r}, {file!r}, "exec", dont_inherit=True), scope))
    def arcs_of(expression, awaited, uses_library):
        def call():
            try:
                value = eval(expression, scope, library if uses_library else None)
                if awaited:
                    import asyncio
                    async def wait():
                        return await value
                    asyncio.run(wait())
            except BaseException:
                pass
        return sorted(at_load | record(call))
    return arcs_of
_arcs_of_call = _make_arcs_of(globals())
"""


@dataclass(frozen=True, kw_only=True)
class CallCoverage:
    """The lines and branches that each call covers.

    Lines that run when the program is loaded, such as its ``def`` lines, count for every call that returns or raises.
    """

    lines: frozenset[int]
    """First lines of all statements."""
    branches: frozenset[Arc]
    """All jumps from lines with several exits."""
    lines_of_call: tuple[frozenset[int], ...]
    """[calls] covered lines. Empty for a test without a call, and for a call that timed out or ended its process."""
    branches_of_call: tuple[frozenset[Arc], ...]
    """[calls] covered branches."""


def measure_coverage(runner: Runner, source: str, calls: Sequence[Call | None], *, prelude: str = "") -> CallCoverage:
    """Make calls of a program's functions, and measure the lines and branches that each call covers.

    A call that raises covers the lines that ran before the exception.

    Args:
        runner: must be a ``LocalRunner``, because the sandbox loads coverage.py from this Python environment.
        source: the reference.
        calls: calls as the judge makes them. None stands for a test without a call, which covers nothing.
        prelude: code that runs before the source. The lines of the prelude do not count.

    Raises:
        ValueError: the source is no Python program, or does not load.
        SandboxUnavailableError: the sandbox could not run the program.
    """
    scheme = _Scheme(source)
    made = [call for call in calls if call is not None]
    answers: list[CallResult] = []
    for start in range(0, len(made), _CALLS_AT_ONCE):
        answers += _run(runner, source, made[start : start + _CALLS_AT_ONCE], prelude=prelude)
    next_answer = iter(answers)
    lines_of_call = []
    branches_of_call = []
    for call in calls:
        arcs = None if call is None else _read_arcs(next(next_answer))
        lines, branches = (frozenset(), frozenset()) if arcs is None else scheme.covered_by(arcs)
        lines_of_call.append(lines)
        branches_of_call.append(branches)
    return CallCoverage(
        lines=scheme.lines,
        branches=scheme.branches,
        lines_of_call=tuple(lines_of_call),
        branches_of_call=tuple(branches_of_call),
    )


def calls_in(question: Question, asserts: Sequence[str]) -> list[Call | None]:
    """Find the call of the function under test in each assert. None stands for an assert without a usable call.

    An assert counts even if the judge refuses its form (``assert f(3) > 0``), because a test runner would run it.
    """
    interface = Interface.of(question.reference, question.entry_points)
    return [_call_in(text, interface) for text in asserts]


def _call_in(text: str, interface: Interface) -> Call | None:
    case = parse_assert(text, interface)
    if isinstance(case, Case):
        return case.call
    try:
        tree = parse_untrusted(text.strip())
    except PARSE_ERRORS:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            case = parse_call(ast.unparse(node), interface)
            if isinstance(case, Case):
                return case.call
    return None


class _Scheme:
    """The lines and branches of a program, as coverage.py counts them by default."""

    def __init__(self, source: str) -> None:
        text = source.replace("\r\n", "\n").replace("\r", "\n")
        self._parser = PythonParser(text=f"{text}\n", filename=_FILE, exclude=join_regex(DEFAULT_EXCLUDE))
        try:
            self._parser.parse_source()
            possible = self._parser.arcs()
        except (CoverageException, *PARSE_ERRORS) as error:
            raise ValueError(f"only Python programs can be covered: {error}") from error
        self.lines = frozenset(self._parser.statements)
        num_exits = self._parser.exit_counts()
        one_way = self._parser.lines_matching(join_regex([*DEFAULT_PARTIAL, *DEFAULT_PARTIAL_ALWAYS]))
        branches = set()
        for line, target in possible:
            if num_exits.get(line, 0) > 1 and target not in self._parser.excluded:
                branches.add((line, target))
        self.branches = frozenset(branches)
        self._never_missed = frozenset(branch for branch in branches if branch[0] in one_way)

    def covered_by(self, arcs: Iterable[Arc]) -> tuple[frozenset[int], frozenset[Arc]]:
        """Return the statements and branches that the recorded jumps cover."""
        arcs = set(arcs)
        lines = self._parser.translate_lines(line for arc in arcs for line in arc if line > 0)
        # Translate twice, as coverage.py does. The first pass maps lines to the first lines of statements, from which
        # the second pass finds the exits of `with`.
        jumps = self._parser.translate_arcs(self._parser.translate_arcs(arcs))
        return self.lines & lines, (self.branches & jumps) | self._never_missed


def _run(runner: Runner, source: str, calls: Sequence[Call], *, prelude: str) -> tuple[CallResult, ...]:
    recorded = []
    for call in calls:
        expression = f"_arcs_of_call({call.expression!r}, {call.awaited}, {call.uses_library})"
        recorded.append(Call(expression=expression))
    program = Program(
        prelude=prelude,
        source=_WRAPPER.format(modules=LIBRARY_MODULES, names=_LIBRARY, source=source, file=_FILE),
        calls=tuple(recorded),
        limits=runner.limits.for_reference(),
        max_timeouts_without_result=len(calls) + 1,
    )
    result = runner.run(program, role=Role.REFERENCE)
    if not result.loaded:
        raise ValueError(f"the program does not load: {result.load_error}")
    return result.results


def _read_arcs(answer: CallResult) -> list[Arc] | None:
    """Read the list of jumps that a call returned as its value. Returns None if the value is no such list."""
    if answer.status is not CallStatus.VALUE:
        return None
    try:
        return msgspec.convert(decode(answer.value), list[Arc])
    except (ValueFormatError, msgspec.ValidationError):
        return None
