"""What this machine's sandbox does and refuses, shown on small programs."""

from __future__ import annotations

from dataclasses import dataclass

from ..judge.judge import Judge, JudgeRequest
from ..judge.verdict import CaseOutcome
from ..runners.base import Runner

_REFERENCE = "def double(n):\n    return 2 * n\n"
_SUITE = ("assert double(1) == 2", "assert double(2) == 4", "assert double(21) == 42")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One program and the outcomes its three cases must have."""

    name: str
    source: str
    expected: tuple[CaseOutcome, CaseOutcome, CaseOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    probe: Probe
    outcomes: tuple[CaseOutcome, ...]

    @property
    def passed(self) -> bool:
        return self.outcomes == self.probe.expected


def _all(outcome: CaseOutcome) -> tuple[CaseOutcome, CaseOutcome, CaseOutcome]:
    return (outcome, outcome, outcome)


_PASSED, _WRONG = _all(CaseOutcome.PASSED), _all(CaseOutcome.WRONG_VALUE)
_DENIED = """
def double(n):
    try:
        {attempt}
    except OSError:
        return 2 * n
    return "not refused"
"""
PROBES = (
    Probe(name="an honest program passes", source=_REFERENCE, expected=_PASSED),
    Probe(
        name="threads and lazy imports work",
        source="def double(n):\n"
        "    import statistics, difflib\n"
        "    from concurrent.futures import ThreadPoolExecutor\n"
        "    with ThreadPoolExecutor(2) as pool:\n"
        "        return sum(pool.map(int, [n, n]))\n",
        expected=_PASSED,
    ),
    Probe(name="an incorrect program fails", source="def double(n):\n    return n\n", expected=_WRONG),
    Probe(
        name="an always-equal object fails",
        source="class E:\n    __eq__ = lambda s, o: True\ndef double(n):\n    return E()\n",
        expected=_all(CaseOutcome.UNENCODABLE),
    ),
    Probe(
        name="caller frames hold no expected value",
        source="import sys\n"
        "def double(n):\n"
        "    frame = sys._getframe(1)\n"
        "    while frame:\n"
        "        for name in ('expected', 'answer', 'claim', 'spec'):\n"
        "            if name in frame.f_locals or name in frame.f_globals:\n"
        "                return frame.f_locals.get(name, frame.f_globals.get(name))\n"
        "        frame = frame.f_back\n"
        "    return -1\n",
        expected=_WRONG,
    ),
    Probe(
        name="an exit costs one case",
        source="import os\ndef double(n):\n    return 2 * n if n != 2 else os._exit(0)\n",
        expected=(CaseOutcome.PASSED, CaseOutcome.DIED, CaseOutcome.PASSED),
    ),
    Probe(
        name="a hang costs one case",
        source="def double(n):\n    while n == 2:\n        pass\n    return 2 * n\n",
        expected=(CaseOutcome.PASSED, CaseOutcome.TIMED_OUT, CaseOutcome.PASSED),
    ),
    Probe(
        name="memory is limited",
        source="def double(n):\n    return len([0] * 10**10)\n",
        expected=_all(CaseOutcome.RAISED),
    ),
    Probe(
        name="processes are refused",
        source="import os\n" + _DENIED.format(attempt="os.fork()"),
        expected=_PASSED,
    ),
    Probe(
        name="sockets are refused",
        source="import socket\n" + _DENIED.format(attempt="socket.socket()"),
        expected=_PASSED,
    ),
    Probe(
        name="reading foreign files is refused",
        source=_DENIED.format(attempt="open('/etc/passwd').read()"),
        expected=_PASSED,
    ),
    Probe(
        name="signalling the parent is refused",
        source="import os, signal\n" + _DENIED.format(attempt="os.kill(os.getppid(), signal.SIGTERM)"),
        expected=_PASSED,
    ),
)
NO_WRITING_PROBES = (
    Probe(
        name="writing files is refused",
        source=_DENIED.format(attempt="open('/tmp/planted', 'w')"),
        expected=_PASSED,
    ),
)
SCRATCH_PROBES = (
    Probe(
        name="files in the private folder work",
        source="import tempfile\n"
        "def double(n):\n"
        "    with open('/tmp/here', 'w') as handle:\n"
        "        handle.write('x' * n)\n"
        "    with tempfile.TemporaryFile() as copy:\n"
        "        copy.write(open('here', 'rb').read() * 2)\n"
        "        return copy.tell()\n",
        expected=_PASSED,
    ),
    Probe(
        name="no file outlives its process",
        source="import os\n"
        "def double(n):\n"
        "    if os.path.exists('left'):\n"
        "        return 'found'\n"
        "    if n == 2:\n"
        "        open('left', 'w').close()\n"
        "        os._exit(0)\n"
        "    return 2 * n\n",
        expected=(CaseOutcome.PASSED, CaseOutcome.DIED, CaseOutcome.PASSED),
    ),
    Probe(
        name="the private folder is limited",
        source=_DENIED.format(attempt="open('big', 'wb').write(bytes(1 << 28))"),
        expected=_PASSED,
    ),
    Probe(
        name="writing elsewhere is refused",
        source="import os\n" + _DENIED.format(attempt="open(os.__file__, 'r+b')"),
        expected=_PASSED,
    ),
    Probe(
        name="other files are not there",
        source="import os\n" + _DENIED.format(attempt="os.stat('/etc/passwd')"),
        expected=_PASSED,
    ),
)


def run_probes(runner: Runner, *, tier: int = 0) -> list[ProbeResult]:
    """Judge every probe of a tier.

    Raises:
        SandboxUnavailableError: the sandbox does not run programs at all.
    """
    judge = Judge(runner)
    results = []
    for probe in (*PROBES, *(SCRATCH_PROBES if tier else NO_WRITING_PROBES)):
        request = JudgeRequest(question_id="self-check", reference=_REFERENCE, candidate=probe.source, suites=(_SUITE,))
        suite = judge.judge(request).suites[0]
        results.append(ProbeResult(probe=probe, outcomes=tuple(case.outcome for case in suite.cases)))
    return results
