"""What programs answered before, so that identical candidates of a question are run once.

Identical: the same syntax tree. Comments, blank lines and formatting do not count; names and docstrings do.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import threading
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from .cases import Call
from .runner import HANGS_THROUGHOUT, TOTAL_SPENT, Answer, AnswerKind, ProgramResult

MAX_PROGRAMS = 2048
MAX_CALLS_PER_PROGRAM = 4096
MAX_VALUE_BYTES = 65_536
"""Longer values are not kept: their calls are made again."""
_MAX_PARSED_CHARS = 100_000
_PROGRAM = "<candidate>"
# The compiler's remarks on style (invalid escapes) are not for our log, and must not become errors under -W error.
warnings.filterwarnings("ignore", module=_PROGRAM)


def syntax_key(source: str) -> str:
    """A digest that programs with the same syntax tree share; of a text that does not parse, one of its own.

    Args:
        source: any text. It is parsed and never run; texts above 100,000 characters are taken as they are.
    """
    kind, text = "text", source
    if len(source) <= _MAX_PARSED_CHARS:
        # Whatever keeps it from parsing, its text tells it apart.
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            kind, text = "tree", ast.dump(ast.parse(source, filename=_PROGRAM))
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class KnownProgram:
    """One program of one question. Whoever reads or extends it holds ``lock``."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    load_error: str | None = None
    """Set where it is known not to load."""
    answers: OrderedDict[Call, Answer] = field(default_factory=OrderedDict)

    def learn(self, calls: Sequence[Call], result: ProgramResult) -> None:
        """Keep what does not depend on what else was asked in the same run."""
        if not result.loaded:
            self.load_error = result.load_error
            return
        for call, answer in zip(calls, result.answers, strict=False):
            for_want_of_time = answer.kind is AnswerKind.TIMED_OUT and answer.detail in (TOTAL_SPENT, HANGS_THROUGHOUT)
            if not for_want_of_time and len(answer.value) <= MAX_VALUE_BYTES:
                self.answers[call] = answer
        while len(self.answers) > MAX_CALLS_PER_PROGRAM:
            self.answers.popitem(last=False)


class KnownPrograms:
    """The newest ``MAX_PROGRAMS`` programs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._programs: OrderedDict[tuple[str, ...], KnownProgram] = OrderedDict()

    def find(self, question_id: str, *, prelude: str, source: str, isolated: bool) -> KnownProgram:
        """The entry of this program, made where it is missing.

        ``isolated``: calls in processes of their own, whose answers are kept apart from those of shared ones.
        """
        prelude_digest = hashlib.sha256(prelude.encode("utf-8", "surrogatepass")).hexdigest()
        key = (question_id, prelude_digest, str(isolated), syntax_key(source))
        with self._lock:
            program = self._programs.setdefault(key, KnownProgram())
            self._programs.move_to_end(key)
            while len(self._programs) > MAX_PROGRAMS:
                self._programs.popitem(last=False)
            return program

    def forget(self, question_id: str) -> None:
        """Drop the programs of a question."""
        with self._lock:
            for key in [key for key in self._programs if key[0] == question_id]:
                del self._programs[key]
