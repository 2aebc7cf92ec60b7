"""A cache of programs' answers, so that identical candidates of a question run only once on the same calls.

Candidates are identical if they have the same syntax tree. So comments, blank lines and formatting do not matter, but
names and docstrings do. The calls must be the same list in the same order. A program may carry state from one call to
the next, so its answers could differ if calls are missing or in another order.
"""

import ast
import contextlib
import hashlib
import re
import threading
from dataclasses import dataclass, field

from ..cases.reference_interface import PARSE_ERRORS, parse_program
from ..runners.base import CallStatus, Program, ProgramResult
from .bounded_cache import BoundedCache, Key

MAX_BYTES = 64 << 20
"""Limit for the bytes of all cached answers."""
_SEES_TEXT = re.compile(r"lineno|getsource|linecache|traceback|_tb\b|inspect|frame|code__|\bco_|exc_info|logging")
"""Finds programs that may read their own lines."""
_ANSWER_BYTES = 256
_SETTLED = (CallStatus.VALUE, CallStatus.RAISED, CallStatus.UNENCODABLE)
"""Statuses that another run would repeat. A time-out or a death may be the machine's fault."""


def syntax_key(source: str) -> str:
    """Compute a digest that programs with the same syntax tree share.

    A text that does not parse, that names lines or frames, or that has more than ``MAX_PARSED_CHARS``, shares its
    digest only with an identical text.

    Args:
        source: any text. The text is parsed but never run.
    """
    kind, text = "text", source
    if not _SEES_TEXT.search(source):
        with contextlib.suppress(*PARSE_ERRORS):
            kind, text = "tree", ast.dump(parse_program(source))
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True, eq=False)
class CachedRun:
    """Result of one program on one list of calls. A thread holds ``lock`` while it reads or sets ``result``."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    result: ProgramResult | None = None


class RunCache:
    """Results of recent runs. Thread-safe."""

    def __init__(self) -> None:
        self._runs = BoundedCache(CachedRun, max_bytes=MAX_BYTES)
        self.forget = self._runs.forget

    def find(self, question_id: str, program: Program) -> tuple[Key, CachedRun]:
        """Return the key and the entry of a program with its calls. If the entry is missing, make it."""
        calls = [call.text for call in program.calls]
        parts = [str(program.isolated), repr(program.entry_points), program.prelude, syntax_key(program.source), *calls]
        return self._runs.find(question_id, "\0".join(parts))

    def keep(self, key: Key, run: CachedRun, result: ProgramResult) -> None:
        """Keep a result if another run would give the same result. The caller holds ``run.lock``."""
        if not result.loaded:
            return
        size = 0
        for answer in result.results:
            if answer.status not in _SETTLED:
                return
            size += _ANSWER_BYTES + len(answer.value) + len(answer.detail)
        if self._runs.note_size(key, run, size):
            run.result = result
