"""A cache of programs' answers, so that identical candidates of a question run only once on the same calls.

Identical candidates have the same syntax tree: comments, blank lines and formatting do not count, names and docstrings
do. The same calls are the same list in the same order. A program may carry state from one call to the next, so that
its answers to a part of the list, or in another order, could differ.
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
"""Limit of bytes for all cached answers."""
_MAX_PARSED_CHARS = 100_000
_ANSWER_BYTES = 256
_SETTLED = (CallStatus.VALUE, CallStatus.RAISED, CallStatus.UNENCODABLE)
"""Statuses that do not change if the program runs again. A time-out or a death may be the machine's fault."""


def syntax_key(source: str) -> str:
    """Compute a digest that programs with the same syntax tree share.

    A text that does not parse, or has more than 100,000 characters, shares its digest only with the same text.

    Args:
        source: any text. It is parsed and never run.
    """
    kind, text = "text", source
    if len(source) <= _MAX_PARSED_CHARS:
        with contextlib.suppress(*PARSE_ERRORS):
            kind, text = "tree", ast.dump(parse_untrusted(source))
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True, eq=False)
class CachedRun:
    """One program on one list of calls. A thread holds ``lock`` while it reads or sets ``result``."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    result: ProgramResult | None = None


class RunCache:
    """Results of recent runs. Thread-safe."""

    def __init__(self) -> None:
        self._runs = BoundedCache(CachedRun, max_bytes=MAX_BYTES)
        self.forget = self._runs.forget

    def find(self, question_id: str, program: Program) -> tuple[Key, CachedRun]:
        """Return the key and the entry of a program with its calls. A missing entry is made."""
        calls = "\0".join(call.text for call in program.calls)
        text = f"{program.isolated}\0{program.prelude}\0{syntax_key(program.source)}\0{calls}"
        return self._runs.find(question_id, text)

    def keep(self, key: Key, run: CachedRun, result: ProgramResult) -> None:
        """Keep a result if another run would have it as well. The caller holds ``run.lock``."""
        size = sum(_ANSWER_BYTES + len(answer.value) + len(answer.detail) for answer in result.results)
        is_settled = result.loaded and all(answer.status in _SETTLED for answer in result.results)
        if is_settled and self._runs.note_size(key, run, size):
            run.result = result
