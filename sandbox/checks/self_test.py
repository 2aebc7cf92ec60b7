"""Quick checks of a runner that depend on the machine. Each check runs a program and compares its calls' results.

``tests/conformance`` checks everything that a runner promises: these checks and some eighty more.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from ..cases.case import Call
from ..limits import Limits
from ..runners.base import CallResult, CallStatus, Program, Role, Runner
from ..values.encoding import encode

LIMITS = Limits(cpu_seconds_per_case=0.2, wall_seconds_per_case=1.5, load_cpu_seconds=0.8)
"""Short limits, so that hanging programs take little time. The limits suffice on a busy machine, because they limit CPU
time."""


@dataclass(frozen=True)
class Ends:
    """An expected result: the call returns no value, but has this status and this word in its detail."""

    status: CallStatus
    word: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """One program that must load, and the expected results of its calls."""

    name: str
    """Statement of the tested behaviour, with underscores between the words."""
    source: str
    expected: Mapping[Any, object]
    """Maps each call to its expected result. A call is an expression or a ``Call``. A result is a value, a
    ``CallStatus`` or an ``Ends``."""
    needs: tuple[str, ...] = ()
    """Names of attributes of the runner. The check does not apply if one of these attributes is False or 0."""
    role: Role = Role.CANDIDATE
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the ``Program``."""

    def not_applicable(self, runner: Runner) -> str:
        """Return the reason why the check does not apply to a runner, or "" if it applies."""
        for name in self.needs:
            if not getattr(runner, name, True):
                return f"{type(runner).__name__} declares {name} = {getattr(runner, name)}"
        return ""

    def failure(self, runner: Runner) -> str:
        """Run the program and describe the first unexpected result. Return "" if all results are as expected.

        Raises:
            SandboxUnavailableError: the runner could not run the program.
        """
        calls = tuple(call if isinstance(call, Call) else Call(expression=call) for call in self.expected)
        program = replace(Program(source=self.source, calls=calls, limits=LIMITS), **self.changes)
        result = runner.run(program, role=self.role)
        if not result.loaded:
            return f"did not load: {result.load_error}"
        if len(result.results) != len(calls):
            return f"{len(result.results)} results of {len(calls)} calls"
        for call, answer, wanted in zip(calls, result.results, self.expected.values(), strict=True):
            if not _is_as_expected(answer, wanted):
                return f"{call.expression[:80]}: expected {str(wanted)[:200]}, got {str(answer)[:400]}"
        return ""


def _is_as_expected(answer: CallResult, wanted: object) -> bool:
    if isinstance(wanted, Ends):
        return answer.status is wanted.status and wanted.word in answer.detail
    if isinstance(wanted, CallStatus):
        return answer.status is wanted
    return answer.status is CallStatus.VALUE and answer.value == encode(wanted)


_SAMPLES: tuple[object, ...] = (
    *(None, True, False, 0, -1, 2**70, 1.5, 2 + 3j, "text", "", b"bytes"),
    *([], [1, [2]], (), (1, "a"), {}, {"a": [1]}, {3, 1, 2}, set()),
    *(range(2, 9, 3), deque([1, 2]), Fraction(2, 6), Decimal("1.50")),
)

_CALLERS = """
import sys
def f():
    frame, names = sys._getframe(1), set()
    while frame:
        names |= {*frame.f_locals, *frame.f_globals}
        frame = frame.f_back
    return sorted(names & {'expected', 'answer', 'claim', 'spec'})
"""

_HANGING = """
def f(x):
    if x: return x
    while True: pass
"""

_IMPORTING = """
import time
def f(seconds):
    import wave
    end = time.process_time() + seconds
    while time.process_time() < end: pass
    return 1
"""

_LEAVING = """
import os, sys
def f(x):
    if x == 1: sys.exit(3)
    if x == 2: os._exit(3)
    return x
"""

_THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
def f(n):
    with ThreadPoolExecutor(4) as pool: return sum(pool.map(abs, range(n)))
"""

_WRITING = """
def f(path):
    with open(path, 'w') as file: file.write('x')
"""

_STARTING = """
import os, subprocess
def f(): return os.fork()
def g(): return subprocess.run(['true']).returncode
"""

_FILLING = """
import os
def f(): return open('big', 'wb').write(bytes(1 << 28))
def g(): return open(os.__file__, 'r+b').name
"""

_KEEPING = """
import os, tempfile
def f(n):
    if os.path.exists('left'): return 'found'
    with open('/tmp/left', 'w') as file: file.write('x' * n)
    if n == 2: os._exit(0)
    with tempfile.TemporaryFile() as copy:
        copy.write(open('left', 'rb').read() * 2)
        return copy.tell()
"""

_Confined = partial(Check, needs=("confines",))

_RAISED, _DIED, _UNENCODABLE = CallStatus.RAISED, CallStatus.DIED, CallStatus.UNENCODABLE
_VALUES = (
    Check(
        name="every_builtin_kind_of_value_has_its_canonical_bytes",
        source="from collections import deque\nfrom decimal import Decimal\nfrom fractions import Fraction\n",
        expected={repr(sample): sample for sample in _SAMPLES},
    ),
    Check(
        name="what_is_no_builtin_value_is_unencodable_and_named",
        source="class Thing: pass\ndef g(): yield 1\n",
        expected={"Thing()": Ends(_UNENCODABLE, "Thing"), "g()": _UNENCODABLE, "[lambda: 0]": _UNENCODABLE, "7": 7},
    ),
)
_EARLY_ENDS = (
    Check(
        name="a_busy_hang_is_timed_out_and_the_next_call_answered",
        source=_HANGING,
        expected={"f(0)": Ends(CallStatus.TIMED_OUT, "CPU time"), "f(1)": 1},
    ),
    Check(
        name="an_import_inside_a_function_is_no_time_out",
        source=_IMPORTING,
        # Both keys spell the same call, but only the first call gets time for imports.
        expected={"f(0.7)": 1, "f(0.70)": CallStatus.TIMED_OUT},
    ),
    Check(
        name="leaving_by_exit_is_raised_or_died_and_costs_one_call",
        source=_LEAVING,
        expected={"f(0)": 0, "f(1)": Ends(_RAISED, "SystemExit"), "f(2)": Ends(_DIED, "3"), "f(4)": 4},
    ),
    Check(
        name="running_out_of_memory_is_raised_and_costs_one_call",
        source="def f(n):\n    x = bytearray(n)\n    return len(x)\n",
        expected={"f(1000)": 1000, "f(1 << 29)": Ends(_RAISED, "MemoryError"), "f(1 << 40)": _RAISED, "f(2000)": 2000},
        changes={"limits": replace(LIMITS, memory_bytes=256 << 20)},
    ),
    Check(name="a_program_may_use_threads", source=_THREADS, expected={"f(10)": 45}),
    Check(name="programs_find_no_expected_value_in_their_callers", source=_CALLERS, expected={"f()": []}),
)
_CONFINEMENT = (
    _Confined(
        name="programs_cannot_read_files_of_the_machine",
        source="def f(path): return open(path).read(1)",
        expected=dict.fromkeys(("f('/etc/passwd')", "f('/proc/self/status')", "f('/proc/1/environ')"), _RAISED),
    ),
    _Confined(
        name="programs_cannot_write_files_of_the_machine",
        source=_WRITING,
        expected=dict.fromkeys(("f('/etc/left')", "f('/var/tmp/left')", "f('/dev/shm/left')"), _RAISED),
    ),
    _Confined(
        name="programs_cannot_start_processes",
        source=_STARTING,
        expected={"f()": _RAISED, "g()": _RAISED},
    ),
    _Confined(
        name="programs_cannot_open_sockets",
        source="import socket\ndef f(family): return socket.socket(family).fileno()",
        expected={"f(socket.AF_INET)": _RAISED, "f(socket.AF_UNIX)": _RAISED},
    ),
    _Confined(
        name="programs_cannot_signal_others",
        source="import os",
        expected={"os.kill(os.getppid(), 0)": _RAISED, "os.kill(1, 0)": _RAISED},
    ),
    # At tier 0 a program can write nothing. At tier 1 the file is larger than the private folder.
    _Confined(
        name="programs_cannot_fill_the_disk_or_change_the_library",
        source=_FILLING,
        expected={"f()": _RAISED, "g()": _RAISED},
    ),
    Check(
        name="programs_see_no_file_outside_their_root",
        source="import os",
        expected={"os.stat('/etc/passwd')": _RAISED},
        needs=("confines", "tier"),
    ),
    Check(
        name="files_of_the_private_folder_work_and_do_not_outlive_their_process",
        source=_KEEPING,
        expected={"f(1)": 2, "f(2)": _DIED, "f(3)": 6},
        needs=("confines", "tier"),
        changes={"isolated": True},
    ),
)
SELF_TEST = (*_VALUES, *_EARLY_ENDS, *_CONFINEMENT)
"""Checks of ``python -m sandbox check``. The command skips checks that do not apply to its runner."""
