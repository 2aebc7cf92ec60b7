"""Coverage of a reference, call by call: the lines and branches that coverage.py counts.

coverage.py's parser finds statements and branches in the text of the reference, in this process. Its tracer runs in the
sandbox with the reference, and each call returns the jumps between lines that it made. These values come from an
untrusted process and are checked. A call that hangs or dies loses its own lines only.
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
"""A jump from line to line. A negative number -n means the entry to the code that begins in line n, or its exit."""

_FILE = "/reference-under-coverage.py"
# The compiler's warnings about a reference are not for our log, and must not become errors under -W error. coverage.py
# compiles the text under this name and parses it under no name.
for _name in (_FILE.removesuffix(".py"), "<unknown>"):
    warnings.filterwarnings("ignore", module=_name)
_CALLS_AT_ONCE = 512
_LIBRARY = {name: value.__module__ for name, value in LIBRARY_NAMES.items()}
# This program runs in the sandbox in place of the reference. It names the tracer, because the default of newer Pythons
# reports a line only when it first runs, and not for every call.
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

    Every call also covers the lines that run when the program is loaded, such as its ``def`` lines.
    """

    lines: frozenset[int]
    """First lines of all statements."""
    branches: frozenset[Arc]
    """All jumps from lines that have several exits."""
    lines_of_call: tuple[frozenset[int], ...]
    """[calls] covered lines. Empty without a call, and for a call that timed out or ended its process."""
    branches_of_call: tuple[frozenset[Arc], ...]
    """[calls] covered branches."""


def measure_coverage(runner: Runner, source: str, calls: Sequence[Call | None], *, prelude: str = "") -> CallCoverage:
    """Make calls of a program, one after the other in one process, and measure what each call covers.

    A call that raises covers what ran before.

    Args:
        runner: a ``LocalRunner``; the sandbox loads coverage.py from this Python environment.
        source: the reference.
        calls: calls as the judge makes them. None stands for a test without a call, which covers nothing.
        prelude: runs before the source; its lines do not count.

    Raises:
        ValueError: the source is no Python program, or does not load.
        SandboxUnavailableError: the sandbox could not run the program.
    """
    scheme = _Scheme(source)
    made = [(index, call) for index, call in enumerate(calls) if call is not None]
    covered = [(frozenset[int](), frozenset[Arc]())] * len(calls)
    for start in range(0, len(made), _CALLS_AT_ONCE):
        chunk = made[start : start + _CALLS_AT_ONCE]
        answers = _run(runner, source, [call for _, call in chunk], prelude=prelude)
        for (index, _), answer in zip(chunk, answers, strict=True):
            if (arcs := _read_arcs(answer)) is not None:
                covered[index] = scheme.covered_by(arcs)
    return CallCoverage(
        lines=scheme.lines,
        branches=scheme.branches,
        lines_of_call=tuple(lines for lines, _ in covered),
        branches_of_call=tuple(branches for _, branches in covered),
    )


def calls_in(question: Question, asserts: Sequence[str]) -> list[Call | None]:
    """Find the call of the function under test in each assert; None where an assert has no usable call.

    Asserts count even if the judge refuses their form (``assert f(3) > 0``), because a test runner would run them.
    """
    interface = Interface.of(question.reference, question.entry_points)
    return [_call_in(text, interface) for text in asserts]


def _call_in(text: str, interface: Interface) -> Call | None:
    parsed = parse_assert(text, interface)
    if isinstance(parsed, Case):
        return parsed.call
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
    """The lines and branches of a program by coverage.py's defaults. It also translates recorded jumps."""

    def __init__(self, source: str) -> None:
        text = source.replace("\r\n", "\n").replace("\r", "\n")
        self._parser = PythonParser(text=f"{text}\n", filename=_FILE, exclude=join_regex(DEFAULT_EXCLUDE))
        try:
            self._parser.parse_source()
            possible = self._parser.arcs()
        except (CoverageException, *PARSE_ERRORS) as error:
            raise ValueError(f"only Python programs can be covered: {error}") from error
        self.lines = frozenset(self._parser.statements)
        exits = self._parser.exit_counts()
        self.branches = frozenset(
            (line, to) for line, to in possible if exits.get(line, 0) > 1 and to not in self._parser.excluded
        )
        one_way = self._parser.lines_matching(join_regex([*DEFAULT_PARTIAL, *DEFAULT_PARTIAL_ALWAYS]))
        self._never_missed = frozenset(branch for branch in self.branches if branch[0] in one_way)

    def covered_by(self, arcs: Iterable[Arc]) -> tuple[frozenset[int], frozenset[Arc]]:
        """Return the statements and branches that the recorded jumps cover."""
        arcs = set(arcs)
        lines = self._parser.translate_lines(line for arc in arcs for line in arc if line > 0)
        # coverage.py translates twice too: it knows the exits of a `with` by the first lines of its statements.
        jumps = self._parser.translate_arcs(self._parser.translate_arcs(arcs))
        return self.lines & lines, (self.branches & jumps) | self._never_missed


def _run(runner: Runner, source: str, calls: Sequence[Call], *, prelude: str) -> tuple[CallResult, ...]:
    asked = (f"_arcs_of_call({call.expression!r}, {call.awaited}, {call.uses_library})" for call in calls)
    program = Program(
        prelude=prelude,
        source=_WRAPPER.format(modules=LIBRARY_MODULES, names=_LIBRARY, source=source, file=_FILE),
        calls=tuple(Call(expression=expression) for expression in asked),
        limits=runner.limits.for_reference(),
        max_timeouts_without_result=len(calls) + 1,
    )
    result = runner.run(program, role=Role.REFERENCE)
    if not result.loaded:
        raise ValueError(f"the program does not load: {result.load_error}")
    return result.results


def _read_arcs(answer: CallResult) -> list[Arc] | None:
    """Read the jumps of an answer; None if the answer holds none."""
    if answer.status is not CallStatus.VALUE:
        return None
    try:
        return msgspec.convert(decode(answer.value), list[Arc])
    except (ValueFormatError, msgspec.ValidationError):
        return None
