"""Progress of one program on a SandboxFusion service: makes the next task and reads the response.

An untrusted program may have written any line of the response, so each line is checked. A result counts for the first
call that has none yet, and its size is bounded before it is unpacked.
"""

import base64
import json
import math
import zlib
from dataclasses import asdict, dataclass
from typing import Any

from ..base import CallResult, CallStatus
from ..progress import Progress
from .client import ServiceOutageError, ServiceResponse

HARNESS_KILLS = 3
"""How many kills of the harness count as the program's own doing. The harness mostly waits and needs little memory. If
it is killed three times in a row, with pauses between, the program did it."""
_MAX_DETAIL = 400


@dataclass(kw_only=True)
class FusionProgress(Progress):
    """Results of one program so far, as a service reports them."""

    num_events: int = 0
    """Grows with every event that tells something new about the program."""
    _num_kills: int = 0

    @property
    def is_done(self) -> bool:
        """True if no call is left."""
        return bool(self.load_error) or (self.has_loaded and len(self.results) == len(self.program.calls))

    def task(self) -> dict[str, Any]:
        """Return the data that the harness needs to continue. It holds no returned and no expected value."""
        return {
            "program": asdict(self.program),
            "statuses": [result.status.value for result in self.results.values()],
            "has_loaded": self.has_loaded,
            "used_seconds": self.used_seconds,
        }

    def read(self, response: ServiceResponse, *, tag: str) -> None:
        """Read the output of a script.

        Raises:
            ServiceOutageError: it is not the output of this request, or not all of it. The results in it are kept.
        """
        # A program may print any line, but it does not know this request's tag.
        lines = [line[len(tag) + 1 :] for line in response.stdout.split("\n") if line.startswith(tag + " ")]
        if not lines or _event(lines[0])["event"] != "ready":
            raise ServiceOutageError(
                "the script did not start, or this is another request's response (return_code "
                f"{response.return_code}): {response.stdout[:200]!r} {response.stderr[-300:]!r}"
            )
        cpu_before, used_before, num_before = self.cpu_seconds, self.used_seconds, len(self.results)
        for line in lines[1:]:  # one after another, so that the events before a broken line count
            event = _event(line)
            self.cpu_seconds = cpu_before + event["cpu_seconds"]
            self.used_seconds = event["used_seconds"]
            self.num_events += 1
            if self._take_event(event):
                if event["event"] == "more" and len(self.results) == num_before:
                    raise ServiceOutageError("the response asks for another request without a call's result")
                return
        if response.timed_out or not response.return_code:
            self.used_seconds = used_before  # the program may not be to blame for a slow service
            raise ServiceOutageError(
                "the response ends early: the service cut it off, or was too slow for its time limit"
            )
        self._take_kill(response.return_code)

    def _take_event(self, event: dict[str, Any]) -> bool:
        """Take one event. Return True if it is the last event of a request."""
        kind = event["event"]
        if kind == "loaded":
            self.has_loaded = True
        elif kind == "failed" and not self.has_loaded:
            self.load_error = event["detail"][:_MAX_DETAIL] or "unknown exception"
            return True
        elif kind == "result" and self.has_loaded and not self.is_done:
            self._add(self._read_result(event))
        elif kind == "lost":
            raise ServiceOutageError(f"the service refused a process: {event['detail']}")
        elif kind == "more" or (kind == "end" and self.is_done):
            return True
        else:
            raise _malformed(event)
        return False

    def _read_result(self, event: dict[str, Any]) -> CallResult:
        index = event.get("index")
        if type(index) is not int or index != len(self.results):
            raise _malformed(event)
        try:
            status = CallStatus(event["status"])
        except ValueError as error:
            raise _malformed(event) from error
        return CallResult(
            status=status,
            value=_unpack(event["value"], self.program.limits.value_bytes) if status is CallStatus.VALUE else b"",
            detail=event["detail"][:_MAX_DETAIL],
            cpu_seconds=event["seconds"] if self.program.timed else 0.0,
        )

    def _take_kill(self, return_code: int | None) -> None:
        """Count a script that ended before its last line. Its program killed it, or a service short of memory did."""
        self._num_kills += 1
        if self._num_kills < HARNESS_KILLS:
            raise ServiceOutageError(f"the script was ended with return_code {return_code}")
        detail = f"ended the process that watches it, with return_code {return_code}"
        self.num_events += 1
        if not self.has_loaded:
            self.load_error = f"{CallStatus.DIED.value} while loading: {detail}"
        elif not self.is_done:
            self._add(CallResult(status=CallStatus.DIED, detail=detail))

    def _add(self, result: CallResult) -> None:
        self.results[len(self.results)] = result


def _malformed(what: object) -> ServiceOutageError:
    return ServiceOutageError(f"the response is cut off or malformed: {str(what)[:200]}")


def _event(line: str) -> dict[str, Any]:
    """Read one line as a JSON object and check the types of its fields. Missing fields get a default."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _malformed(line) from error
    if not isinstance(event, dict):
        raise _malformed(line)
    for name in ("cpu_seconds", "used_seconds", "seconds"):
        number = event.setdefault(name, 0.0)
        if type(number) not in (int, float) or not 0 <= number < math.inf:
            raise _malformed(line)
    for name in ("event", "status", "value", "detail"):
        if not isinstance(event.setdefault(name, ""), str):
            raise _malformed(line)
    return event


def _unpack(text: str, most: int) -> bytes:
    """Unpack a value of at most ``most`` bytes."""
    unpacker = zlib.decompressobj()
    try:
        # One byte more than allowed is enough to see that the value is too large. A bomb is never unpacked.
        data = unpacker.decompress(base64.b64decode(text, validate=True), most + 1)
    except (ValueError, zlib.error) as error:
        raise _malformed(error) from error
    if not unpacker.eof or len(data) > most:
        raise _malformed("a value that is too large, or not whole")
    return data
