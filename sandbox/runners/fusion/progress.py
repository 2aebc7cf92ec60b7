"""How far one program has come on a SandboxFusion service: the next task, and what its responses say.

The lines were printed next to an untrusted program, so each is checked before it is believed: an
result counts for the first call still open, and its bytes are bounded before they are unpacked.
"""

import base64
import json
import math
import zlib
from dataclasses import asdict
from typing import Any

from ..base import CallResult, CallStatus, Program, ProgramResult, total_seconds
from .client import ServiceOutageError, ServiceResponse

HARNESS_KILLS = 3
"""Times a program's harness may be killed before that counts as the program's own doing. A harness mostly
waits and holds little memory: what ends it three times in a row, with pauses between, is the program."""
_MAX_DETAIL = 400
_KINDS = {kind.value: kind for kind in CallStatus}
_COUNTERS = ("cpu_seconds", "used_seconds")


class FusionProgress:
    """One program's results so far."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.num_events = 0
        """Grows whenever something was learned of the program."""
        self._results: list[CallResult | None] = [None] * len(program.calls)
        self._has_loaded = False
        self._load_error = ""
        self._cpu_seconds = self._used_seconds = 0.0
        self._num_kills = 0

    @property
    def is_done(self) -> bool:
        """Nothing is left to ask."""
        return bool(self._load_error) or (self._has_loaded and not self._pending())

    def task(self) -> dict[str, Any]:
        """What the harness needs for the calls that are open; expected values are not known here."""
        program, pending = self.program, self._pending()
        results = [result for result in self._results if result is not None]
        return {
            "prelude": program.prelude,
            "source": program.source,
            "calls": [{"index": index, **asdict(program.calls[index])} for index in pending],
            "reference_cpu_seconds": program.reference_cpu_seconds,
            "limits": asdict(program.limits),
            "max_timeouts_without_result": program.max_timeouts_without_result,
            "isolated": program.isolated,
            "timed": program.timed,
            "reads_input": program.reads_input,
            "has_loaded": self._has_loaded,
            "num_timeouts": sum(result.status is CallStatus.TIMED_OUT for result in results),
            "has_answered": any(result.status is not CallStatus.TIMED_OUT for result in results),
            "seconds_left": max(0.0, total_seconds(program) - self._used_seconds),
        }

    def take(self, response: ServiceResponse, *, tag: str) -> None:
        """Take in what a script printed.

        Raises:
            ServiceOutageError: it is not the output of this request, or not all of it; what it holds counts.
        """
        lines = [line[len(tag) + 1 :] for line in response.stdout.split("\n") if line.startswith(tag + " ")]
        if not lines or _event(lines[0]).get("event") != "ready":
            raise ServiceOutageError(
                "the script did not start, or this is another request's response (return_code "
                f"{response.return_code}): {response.stdout[:200]!r} {response.stderr[-300:]!r}"
            )
        spent = (self._cpu_seconds, self._used_seconds)
        num_pending = len(self._pending())
        for line in lines[1:]:  # one at a time: what comes before a line that is cut off counts
            event = _event(line)
            self._count(event, spent)
            if self._take_event(event):
                if event["event"] == "more" and len(self._pending()) == num_pending:
                    raise ServiceOutageError("the response asks for another request without a call's result")
                return
        if response.timed_out or not response.return_code:
            self._used_seconds = spent[1]  # whatever was slow there was not the program alone
            raise ServiceOutageError(
                "the response ends early: the service cut it off, or was too slow for its time limit"
            )
        self._take_kill(response.return_code)

    def result(self, wall_seconds: float) -> ProgramResult:
        """The finished program; ``is_done`` must hold."""
        results = tuple(result for result in self._results if result is not None)
        return ProgramResult(
            loaded=self._has_loaded,
            load_error=self._load_error,
            results=results if self._has_loaded else (),
            cpu_seconds=self._cpu_seconds,
            wall_seconds=wall_seconds,
        )

    def _pending(self) -> list[int]:
        return [index for index, result in enumerate(self._results) if result is None]

    def _count(self, event: dict[str, Any], before: tuple[float, float]) -> None:
        cpu, used = (_number(event, name) for name in _COUNTERS)
        self._cpu_seconds, self._used_seconds = before[0] + cpu, before[1] + used
        self.num_events += 1

    def _take_event(self, event: dict[str, Any]) -> bool:
        """Believe one line; True after the last of a request."""
        kind = event.get("event")
        if kind == "loaded":
            self._has_loaded = True
        elif kind == "failed" and not self._has_loaded:
            self._load_error = _text(event, "detail") or "unknown exception"
            return True
        elif kind == "result" and self._has_loaded:
            self._take_result(event)
        elif kind == "lost":
            raise ServiceOutageError(f"the service refused a process: {_text(event, 'detail')}")
        elif kind == "more" or (kind == "end" and self._has_loaded and not self._pending()):
            return True
        else:
            raise ServiceOutageError(f"the response is malformed: {str(event)[:200]}")
        return False

    def _take_result(self, event: dict[str, Any]) -> None:
        pending = self._pending()
        kind = _KINDS.get(_text(event, "kind"))
        if kind is None or not pending or event.get("index") != pending[0]:
            raise ServiceOutageError(f"the response is malformed: {str(event)[:200]}")
        self._results[pending[0]] = CallResult(
            status=kind,
            value=_unpack(_text(event, "value"), self.program.limits.value_bytes) if kind is CallStatus.VALUE else b"",
            detail="" if kind is CallStatus.VALUE else _text(event, "detail"),
            cpu_seconds=_number(event, "seconds") if self.program.timed else 0.0,
        )

    def _take_kill(self, return_code: int | None) -> None:
        """The script ended before its last line. Only its own program can reach it, or a service short of memory."""
        self._num_kills += 1
        if self._num_kills < HARNESS_KILLS:
            raise ServiceOutageError(f"the script was ended with return_code {return_code}")
        detail = f"ended the process that watches it, with return_code {return_code}"
        self.num_events += 1
        if not self._has_loaded:
            self._load_error = f"{CallStatus.DIED.value} while loading: {detail}"
        elif pending := self._pending():
            self._results[pending[0]] = CallResult(status=CallStatus.DIED, detail=detail)


def _event(line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ServiceOutageError(f"the response is cut off or malformed: {line[:100]!r}") from error
    if not isinstance(event, dict):
        raise ServiceOutageError(f"the response is malformed: {line[:100]!r}")
    return event


def _number(event: dict[str, Any], name: str) -> float:
    value = event.get(name, 0.0)
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ServiceOutageError(f"the response is malformed: {name} = {str(value)[:50]}")
    return float(value)


def _text(event: dict[str, Any], name: str) -> str:
    value = event.get(name, "")
    if not isinstance(value, str):
        raise ServiceOutageError(f"the response is malformed: {name} = {str(value)[:50]}")
    return value if name == "value" else value[:_MAX_DETAIL]


def _unpack(text: str, most: int) -> bytes:
    """The bytes of a value, never more than ``most`` of them in memory."""
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(base64.b64decode(text, validate=True), most + 1)
    except (ValueError, zlib.error) as error:
        raise ServiceOutageError(f"the response is malformed: {error}") from error
    if not unpacker.eof or len(data) > most:
        raise ServiceOutageError("the response is malformed: a value that is cut off or too large")
    return data
