"""Progress of one program on a SandboxFusion service: makes the next task and reads the response.

An untrusted program may have written any line of the response, so each line is checked. Results must come in the order
of the calls, and the size of a value is bounded before it is unpacked.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from ...cases.case import Call
from ..base import CallResult, CallStatus
from ..progress import Progress
from .client import ServiceOutageError, ServiceResponse

HARNESS_KILLS = 3
"""If the harness is killed this many times, the program is to blame. The harness mostly waits and needs little memory.
So a machine that is short of memory would hardly kill the harness three times under one program, with pauses in
between."""
_MAX_DETAIL = 400
_MAX_SECONDS = 1e9
_LAST_EVENTS = ("end", "failed", "more")
_TEXTS = ("event", "status", "value", "detail", "sha256")
_NUMBERS = ("cpu_seconds", "used_seconds", "seconds")
_CALL_FIELDS = tuple(field.name for field in fields(Call) if field.compare)
"""Fields that make the call. Any other field is about its test, and stays here."""


@dataclass(kw_only=True)
class FusionProgress(Progress):
    """Results of one program so far, as a service reports them."""

    _num_kills: int = 0

    @property
    def is_done(self) -> bool:
        """True if the program did not load, or if all its calls have results."""
        return bool(self.load_error) or (self.has_loaded and len(self.results) == len(self.program.calls))

    @property
    def num_known(self) -> int:
        """Number of known facts about the program: the load, if it has succeeded, and each result."""
        return self.has_loaded + len(self.results)

    def task(self) -> dict[str, Any]:
        """Return the data that the harness needs to continue. This data holds neither returned nor expected values."""
        calls = [{name: getattr(call, name) for name in _CALL_FIELDS} for call in self.program.calls]
        return {
            "program": asdict(self.program) | {"calls": calls},
            "statuses": [result.status.value for result in self.results.values()],
            "has_loaded": self.has_loaded,
            "used_seconds": self.used_seconds,
        }

    def read(self, response: ServiceResponse, *, tag: str) -> None:
        """Read the output of a script, and its file of results.

        Raises:
            ServiceOutageError: the output belongs to another request, or it is incomplete. The results in an incomplete
                output are kept.
        """
        lines = _lines(response.stdout, tag)
        if not lines or _event(lines[0])["event"] != "ready":
            raise ServiceOutageError(
                "the script did not start, or this is another request's response (return_code "
                f"{response.return_code}): {response.stdout[:200]!r} {response.stderr[-300:]!r}"
            )
        cpu_before, used_before, num_before = self.cpu_seconds, self.used_seconds, len(self.results)
        for event in _events(lines[1:], response, tag):  # the events before a broken line count
            self.cpu_seconds = cpu_before + event["cpu_seconds"]
            self.used_seconds = event["used_seconds"]
            self._take_event(event)
            if event["event"] == "more" and len(self.results) == num_before:
                raise ServiceOutageError("the response asks for another request without a call's result")
            if event["event"] in _LAST_EVENTS:
                return
        if self.is_done:
            return
        if response.timed_out or not response.return_code:
            self.used_seconds = used_before  # the cause may be a slow service and not the program
            raise ServiceOutageError(
                "the response ends early: the service cut it off, or was too slow for its time limit"
            )
        self._take_kill(response.return_code)

    def _take_event(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "loaded":
            self.has_loaded = True
            self.example_failure = event["detail"][:_MAX_DETAIL]
        elif kind == "failed" and not self.has_loaded:
            self.load_error = event["detail"][:_MAX_DETAIL] or "unknown exception"
        elif kind == "result" and self.has_loaded and not self.is_done:
            self._add(self._read_result(event))
        elif kind == "lost":
            raise ServiceOutageError(f"the service refused a process or a file: {event['detail']}")
        elif kind != "more" and (kind != "end" or not self.is_done):
            raise _malformed(event)

    def _read_result(self, event: dict[str, Any]) -> CallResult:
        if event.get("index") != len(self.results):
            raise _malformed(event)
        try:
            status = CallStatus(event["status"])
            is_value = status is CallStatus.VALUE
            value = _unpack(event["value"], self.program.limits.value_bytes) if is_value else b""
        except (ValueError, zlib.error) as error:
            raise _malformed(error) from error
        seconds = event["seconds"] if self.program.timed else 0.0
        return CallResult(status=status, value=value, detail=event["detail"][:_MAX_DETAIL], cpu_seconds=seconds)

    def _take_kill(self, return_code: int) -> None:
        """Count a script that ended before it wrote its last line. The program killed the script, or the service was
        short of memory."""
        self._num_kills += 1
        if self._num_kills < HARNESS_KILLS:
            raise ServiceOutageError(f"the script was ended with return_code {return_code}")
        detail = f"ended the process that watches it, with return_code {return_code}"
        if self.has_loaded:
            self._add(CallResult(status=CallStatus.DIED, detail=detail))
        else:
            self.load_error = f"{CallStatus.DIED.value} while loading: {detail}"

    def _add(self, result: CallResult) -> None:
        self.results[len(self.results)] = result


def _malformed(what: object) -> ServiceOutageError:
    return ServiceOutageError(f"the response is cut off or malformed: {str(what)[:200]}")


def _lines(text: str, tag: str) -> list[str]:
    """Return the lines of the harness. A program may print any line, but it does not know this request's tag."""
    return [line[len(tag) + 1 :] for line in text.split("\n") if line.startswith(tag + " ")]


def _events(lines: Iterable[str], response: ServiceResponse, tag: str) -> Iterator[dict[str, Any]]:
    """Read lines. If a line names a file, the events of the file come before the event of this line.

    Raises:
        ServiceOutageError: a line is malformed. Or the file is missing, cut off or changed; then another try will not
            help.
    """
    for line in lines:
        event = _event(line)
        if event["sha256"]:
            data = response.files.get(tag)
            if data is None:
                problem = "did not return the script's file; it must support `fetch_files`"
                raise ServiceOutageError(f"the service {problem}", is_final=True)
            if hashlib.sha256(data).hexdigest() != event["sha256"]:
                problem = f"the script's file, of which {len(data)} bytes came, was cut off or changed"
                raise ServiceOutageError(problem, is_final=True)
            yield from map(_event, _lines(data.decode("ascii", "replace"), tag))
        yield event


def _event(line: str) -> dict[str, Any]:
    """Read one line as a JSON object and check its fields. Missing texts become empty, and missing numbers become 0."""
    try:
        event: dict[str, Any] = dict.fromkeys(_TEXTS, "") | dict.fromkeys(_NUMBERS, 0.0) | json.loads(line)
    except (ValueError, TypeError, RecursionError) as error:
        raise _malformed(line) from error
    has_texts = all(isinstance(event[name], str) for name in _TEXTS)
    has_numbers = all(type(event[name]) in (int, float) for name in _NUMBERS)
    if not has_texts or not has_numbers or not all(0 <= event[name] < _MAX_SECONDS for name in _NUMBERS):
        raise _malformed(line)
    return event


def _unpack(text: str, most: int) -> bytes:
    """Unpack a value of at most ``most`` bytes.

    Raises:
        ValueError, zlib.error: the text holds no such value.
    """
    unpacker = zlib.decompressobj()
    # One byte more than allowed is enough to see that the value is too large. So a compression bomb is never fully
    # unpacked.
    data = unpacker.decompress(base64.b64decode(text, validate=True), most + 1)
    if not unpacker.eof or len(data) > most:
        raise ValueError("a value that is too large, or not whole")
    return data
