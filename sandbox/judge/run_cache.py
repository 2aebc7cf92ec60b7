"""Earlier answers of programs, so that identical candidates of a question are not run twice on the same calls.

Identical: the same syntax tree. Comments, blank lines and formatting do not count; names and docstrings do. The same
calls: the same list in the same order. A program may carry state from call to call, so answers to a part of a list, or
to another order, are none to this one.
"""

import ast
import contextlib
import hashlib
import threading
from dataclasses import dataclass, field

from ..cases.reference_interface import PARSE_ERRORS, parse_untrusted
from ..runners.base import CallStatus, Program, ProgramResult
from .bounded_cache import BoundedCache, Key

MAX_BYTES = 64 << 20
"""Most bytes of all answers that are kept. The oldest go first."""
_MAX_PARSED_CHARS = 100_000
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


@dataclass(slots=True, eq=False)
class CachedRun:
    """One program on one list of calls. Whoever reads or sets ``result`` holds ``lock``."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    result: ProgramResult | None = None


class RunCache:
    """Results of the newest runs. Thread-safe."""

    def __init__(self) -> None:
        self._runs = BoundedCache(CachedRun, max_bytes=MAX_BYTES)
        self.forget = self._runs.forget

    def find(self, question_id: str, program: Program) -> tuple[Key, CachedRun]:
        """The entry of this program and these calls, made where it is missing, and its key."""
        calls = "\0".join(call.text for call in program.calls)
        text = f"{program.isolated}\0{program.prelude}\0{syntax_key(program.source)}\0{calls}"
        return self._runs.find(question_id, text)

    def keep(self, key: Key, run: CachedRun, result: ProgramResult) -> None:
        """Remember a result that another run of the same would have too; the caller holds ``run.lock``."""
        size = sum(_ANSWER_BYTES + len(one.value) + len(one.detail) for one in result.results)
        is_settled = result.loaded and all(answer.status in _SETTLED for answer in result.results)
        if is_settled and self._runs.note_size(key, run, size):
            run.result = result
