"""How far one program has come on a SandboxFusion service: the next task, and what its responses say.

The lines were printed next to an untrusted program, so each is checked before it is believed: a result counts for the
first call still open, and its bytes are bounded before they are unpacked.
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
"""Times a program's harness may be killed before that counts as the program's own doing. A harness mostly waits and
holds little memory: what ends it three times in a row, with pauses between, is the program."""
_MAX_DETAIL = 400


@dataclass(kw_only=True)
class FusionProgress(Progress):
    """One program's results so far, as a service reports them."""

    num_events: int = 0
    """Grows whenever something was learned of the program."""
    _num_kills: int = 0

    @property
    def is_done(self) -> bool:
        """True when no call is left to ask."""
        return bool(self.load_error) or (self.has_loaded and len(self.results) == len(self.program.calls))

    def task(self) -> dict[str, Any]:
        """Data that the harness needs to go on. No value is part of it, neither returned nor expected."""
        return {
            "program": asdict(self.program),
            "statuses": [result.status.value for result in self.results.values()],
            "has_loaded": self.has_loaded,
            "used_seconds": self.used_seconds,
        }

    def read(self, response: ServiceResponse, *, tag: str) -> None:
        """Take in what a script printed.

        Raises:
            ServiceOutageError: it is not the output of this request, or not all of it; what it holds counts.
        """
        # A program may print lines of any form, but it does not know this request's tag.
        lines = [line[len(tag) + 1 :] for line in response.stdout.split("\n") if line.startswith(tag + " ")]
        if not lines or _event(lines[0])["event"] != "ready":
            raise ServiceOutageError(
                "the script did not start, or this is another request's response (return_code "
                f"{response.return_code}): {response.stdout[:200]!r} {response.stderr[-300:]!r}"
            )
        cpu_before, used_before, num_before = self.cpu_seconds, self.used_seconds, len(self.results)
        for line in lines[1:]:  # one at a time: what comes before a line that is cut off counts
            event = _event(line)
            self.cpu_seconds = cpu_before + event["cpu_seconds"]
            self.used_seconds = event["used_seconds"]
            self.num_events += 1
            if self._take_event(event):
                if event["event"] == "more" and len(self.results) == num_before:
                    raise ServiceOutageError("the response asks for another request without a call's result")
                return
        if response.timed_out or not response.return_code:
            self.used_seconds = used_before  # what was slow there was not the program alone
            raise ServiceOutageError(
                "the response ends early: the service cut it off, or was too slow for its time limit"
            )
        self._take_kill(response.return_code)

    def _take_event(self, event: dict[str, Any]) -> bool:
        """Believe one line; True after the last of a request."""
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
        seconds = event["seconds"] if self.program.timed else 0.0
        if status is not CallStatus.VALUE:
            return CallResult(status=status, detail=event["detail"][:_MAX_DETAIL], cpu_seconds=seconds)
        value = _unpack(event["value"], self.program.limits.value_bytes)
        return CallResult(status=status, value=value, cpu_seconds=seconds)

    def _take_kill(self, return_code: int | None) -> None:
        """The script ended before its last line. Only its own program can reach it, or a service short of memory."""
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
    """Read one line: an object whose numbers and texts are such."""
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
    """Unpack a value, never more than ``most`` bytes of it."""
    unpacker = zlib.decompressobj()
    try:
        # One byte more than allowed is asked for: so much is enough to see that it is too much.
        data = unpacker.decompress(base64.b64decode(text, validate=True), most + 1)
    except (ValueError, zlib.error) as error:
        raise _malformed(error) from error
    if not unpacker.eof or len(data) > most:
        raise _malformed("a value that is too large, or not whole")
    return data
