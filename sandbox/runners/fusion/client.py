"""HTTP client of a SandboxFusion service.

Source: https://github.com/bytedance/SandboxFusion. A request is ``POST {url}/run_code`` with ``code``, ``language``,
``run_timeout`` (seconds), ``memory_limit_MB`` and ``fetch_files`` (names of files that the script writes in its working
directory). This client reads three fields of the response:

- ``status``: ``Success``, ``Failed`` (non-zero return code or time-out) or ``SandboxError``;
- ``run_result``: an object with ``status`` (``Finished``, ``Error`` or ``TimeLimitExceeded``), ``return_code``,
  ``stdout`` and ``stderr``. The service reads ``stdout`` once, so only what fits into a pipe (64 KiB) arrives;
- ``files``: maps the name of each fetched file to its content in base64.
"""

import base64
import contextlib
import http.client
import json
import socket
import threading
import urllib.parse
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import SandboxConfigError, SandboxUnavailableError

_CONNECT_SECONDS = 10.0
_CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
_RETRIED_STATUSES = frozenset({408, 425, 429, *range(500, 600)})
"""HTTP statuses after which another try may help. Any other status except 200 is final."""
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class ServiceOutageError(SandboxUnavailableError):
    """The service gave no usable response. The runner catches this error until all tries are used up."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
        """True if another try will not help."""


class ServiceResponse(NamedTuple):
    """The service's report on one script. Texts and files may come from an untrusted program."""

    timed_out: bool
    return_code: int | None
    stdout: str
    stderr: str
    """This text is only shown in error messages."""
    files: Mapping[str, bytes]


class FusionClient:
    """Sends requests, each over its own connection. Thread-safe.

    Args:
        url: address of the service, with or without ``/run_code``.

    Raises:
        SandboxConfigError: ``url`` is not an address.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
            self._connection_type = _CONNECTIONS[parts.scheme]
            if not self._host:
                raise ValueError("no host")
        except (ValueError, KeyError) as error:
            raise SandboxConfigError(f"url must be http://host[:port][/path] or https://..., got {url!r}") from error
        self._path = parts.path.rstrip("/").removesuffix("/run_code") + "/run_code"
        # The set needs no lock, because each change and each copy of a set is one atomic step of the interpreter.
        self._open: set[http.client.HTTPConnection] = set()
        self.closed = threading.Event()

    def run_code(self, request: Mapping[str, Any], *, seconds: float) -> ServiceResponse:
        """Run a script.

        Args:
            request: the JSON object to post.
            seconds: longest wait for data from the service.

        Raises:
            ServiceOutageError: no usable response came.
        """
        connection = self._connection_type(self._host, self._port, timeout=_CONNECT_SECONDS)
        self._open.add(connection)
        try:
            connection.connect()
            # This is checked after the connection is made, because before that `close` finds no socket.
            if self.closed.is_set():
                raise ServiceOutageError("the runner is closed", is_final=True)
            connection.sock.settimeout(seconds)
            connection.request("POST", self._path, body=json.dumps(request).encode(), headers=_HEADERS)
            response = connection.getresponse()
            data = response.read()  # raises if the body ends early
        except (OSError, http.client.HTTPException) as error:
            raise ServiceOutageError(f"{self._host}: {type(error).__name__}: {error}") from error
        finally:
            self._open.discard(connection)
            connection.close()
        if response.status != 200:
            said = data[:300].decode("utf-8", "replace")
            message = f"the service answered with status {response.status}: {said}"
            raise ServiceOutageError(message, is_final=response.status not in _RETRIED_STATUSES)
        return parse_response(data)

    def close(self) -> None:
        """Close all connections, so that running requests fail. Idempotent."""
        self.closed.set()
        for connection in self._open.copy():
            with contextlib.suppress(OSError, AttributeError):  # a connection that is not yet made has no socket
                connection.sock.shutdown(socket.SHUT_RDWR)


def parse_response(data: bytes) -> ServiceResponse:
    """Read a response and check its fields.

    Raises:
        ServiceOutageError: the response has an unexpected form, or it reports an error of the service itself.
    """
    try:
        response = json.loads(data)
        result = response["run_result"]
        is_known = response["status"] in ("Success", "Failed") and result["status"] in ("Finished", "TimeLimitExceeded")
        return_code, stdout = result["return_code"], result["stdout"] or ""
        if not is_known or type(return_code) not in (int, type(None)) or not isinstance(stdout, str):
            raise ValueError("the service ran no script")
        coded = response.get("files") or {}
        files = {name: base64.b64decode(coded[name], validate=True) for name in coded}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ServiceOutageError(f"no response with a script's result: {error!r}: {data[:300]!r}") from error
    return ServiceResponse(
        timed_out=result["status"] == "TimeLimitExceeded",
        return_code=return_code,
        stdout=stdout,
        stderr=str(result.get("stderr") or ""),
        files=files,
    )
