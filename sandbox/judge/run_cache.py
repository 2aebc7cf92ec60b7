"""Earlier answers of programs, so that identical candidates of a question are not run twice on the same calls.

Identical: the same syntax tree. Comments, blank lines and formatting do not count; names and docstrings do. The same
calls: the same list in the same order. A program may carry state from call to call, so answers to a part of a list, or
to another order, are none to this one.
"""

import ast
import contextlib
import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from ..cases.reference_interface import PARSE_ERRORS, parse_untrusted
from ..runners.base import CallStatus, Program, ProgramResult

MAX_BYTES = 64 << 20
"""Most bytes of all answers that are kept. The oldest go first."""
_MAX_PARSED_CHARS = 100_000
_ENTRY_BYTES = 1024
_ANSWER_BYTES = 256
_SETTLED = (CallStatus.VALUE, CallStatus.RAISED, CallStatus.UNENCODABLE)
"""Time-outs and deaths may be the machine's fault; they are found anew."""


def syntax_key(source: str) -> str:
    """A digest that programs with the same syntax tree share; of a text that does not parse, one of its own.

    Args:
        source: any text. It is parsed and never run; texts above 100,000 characters are taken as they are.
    """
    kind, text = "text", source
    if len(source) <= _MAX_PARSED_CHARS:
        # Whatever keeps it from parsing, its text tells it apart.
        with contextlib.suppress(*PARSE_ERRORS):
            kind, text = "tree", ast.dump(parse_untrusted(source))
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class CachedRun:
    """One program on one list of calls. Whoever reads or sets ``result`` holds ``lock``."""

    key: tuple[str, str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    result: ProgramResult | None = None


class RunCache:
    """Results of the newest runs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str], CachedRun] = OrderedDict()
        self._bytes = 0

    def find(self, question_id: str, program: Program) -> CachedRun:
        """The entry of this program and these calls, made where it is missing."""
        calls = "\0".join(call.text for call in program.calls)
        text = f"{program.isolated}\0{program.prelude}\0{syntax_key(program.source)}\0{calls}"
        key = (question_id, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
        with self._lock:
            if key not in self._runs:
                self._runs[key] = CachedRun(key)
                self._bytes += _ENTRY_BYTES
            self._runs.move_to_end(key)
            while self._bytes > MAX_BYTES and len(self._runs) > 1:
                self._bytes -= _size(self._runs.popitem(last=False)[1].result)
            return self._runs[key]

    def keep(self, run: CachedRun, result: ProgramResult) -> None:
        """Remember a result that another run of the same would have too; the caller holds ``run.lock``."""
        if result.loaded and all(answer.status in _SETTLED for answer in result.results):
            with self._lock:
                # Results are kept only for entries that are still there, or the sum of bytes would never shrink.
                if self._runs.get(run.key) is run:  # else it went while the program ran
                    run.result = result
                    self._bytes += _size(result) - _ENTRY_BYTES

    def forget(self, question_id: str) -> None:
        """Drop the runs of a question."""
        with self._lock:
            for key in [key for key in self._runs if key[0] == question_id]:
                self._bytes -= _size(self._runs.pop(key).result)


def _size(result: ProgramResult | None) -> int:
    if result is None:
        return _ENTRY_BYTES
    return _ENTRY_BYTES + sum(_ANSWER_BYTES + len(one.value) + len(one.detail) for one in result.results)
