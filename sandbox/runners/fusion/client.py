"""HTTP client of a SandboxFusion service.

Source: https://github.com/bytedance/SandboxFusion. A request is ``POST {url}/run_code`` with ``code``, ``language``,
``run_timeout`` (seconds) and ``memory_limit_MB``. The response has a ``status`` (``Success``, ``Failed`` for a non-zero
return code or a time-out, ``SandboxError``) and a ``run_result`` with a ``status`` (``Finished``, ``Error``,
``TimeLimitExceeded``), ``return_code``, ``stdout`` and ``stderr``.
"""

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
_RETRIED_STATUSES = frozenset({408, 425, 429, *range(500, 600)})
"""HTTP statuses after which asking again may help. Any other status except 200 is final."""
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class ServiceOutageError(SandboxUnavailableError):
    """The service gave no usable response. The runner catches this error until all tries are used up."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final
        """True if asking again will not help."""


class ServiceResponse(NamedTuple):
    """The service's report on one script. An untrusted program wrote both texts."""

    timed_out: bool
    return_code: int | None
    stdout: str
    stderr: str
    """Shown in error messages only."""


class FusionClient:
    """Sends requests, each over its own connection. Thread-safe.

    Args:
        url: address of the service, with or without ``/run_code``.

    Raises:
        SandboxConfigError: ``url`` is no address.
    """

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        try:
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:  # the port is no number
            self._host = ""
        if parts.scheme not in ("http", "https") or not self._host:
            raise SandboxConfigError(f"url must be http://host[:port][/path] or https://..., got {url!r}")
        is_secure = parts.scheme == "https"
        self._connection_type = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        self._path = parts.path.rstrip("/").removesuffix("/run_code") + "/run_code"
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._is_closed = False

    def run_code(self, request: Mapping[str, Any], *, seconds: float) -> ServiceResponse:
        """Run a script.

        Args:
            request: the JSON object to post.
            seconds: longest wait for data from the service.

        Raises:
            ServiceOutageError: no usable response came.
        """
        connection = self._connection_type(self._host, self._port, timeout=_CONNECT_SECONDS)
        with self._lock:
            # Under the lock, so that `close` finds every request that has started.
            self._check_open()
            self._open.add(connection)
        try:
            connection.connect()
            self._check_open()  # again, because `close` may have found no socket to shut down
            connection.sock.settimeout(seconds)
            connection.request("POST", self._path, body=json.dumps(request).encode(), headers=_HEADERS)
            response = connection.getresponse()
            data = response.read()  # raises if the body ends early
        except (OSError, http.client.HTTPException) as error:
            raise ServiceOutageError(f"{self._host}: {type(error).__name__}: {error}") from error
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
        if response.status != 200:
            said = data[:300].decode("utf-8", "replace")
            message = f"the service answered with status {response.status}: {said}"
            raise ServiceOutageError(message, is_final=response.status not in _RETRIED_STATUSES)
        return parse_response(data)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ServiceOutageError("the runner is closed", is_final=True)

    def close(self) -> None:
        """Close all connections, so that running requests fail. Idempotent."""
        with self._lock:
            self._is_closed = True
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):  # there is no socket before it is connected
                connection.sock.shutdown(socket.SHUT_RDWR)


def parse_response(data: bytes) -> ServiceResponse:
    """Read and check the relevant fields of a response.

    Raises:
        ServiceOutageError: the response has another form, or it reports an error of the service itself.
    """
    try:
        response = json.loads(data)
        result = response["run_result"]
        is_known = response["status"] in ("Success", "Failed") and result["status"] in ("Finished", "TimeLimitExceeded")
        return_code, stdout = result["return_code"], result["stdout"] or ""
        if not is_known or type(return_code) not in (int, type(None)) or not isinstance(stdout, str):
            raise ValueError("the service ran no script")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ServiceOutageError(f"no response with a script's result: {error!r}: {data[:300]!r}") from error
    return ServiceResponse(
        timed_out=result["status"] == "TimeLimitExceeded",
        return_code=return_code,
        stdout=stdout,
        stderr=str(result.get("stderr") or ""),
    )
