"""HTTP to a SandboxFusion service: one request, one response, and what is none.

The service: https://github.com/bytedance/SandboxFusion, ``POST {url}/run_code`` with ``code``,
``language``, ``run_timeout`` (seconds) and ``memory_limit_MB``. Its response has a ``status`` (``Success``,
``Failed`` for a non-zero return code or a time-out, ``SandboxError``) and a ``run_result`` with a
``status`` (``Finished``, ``Error``, ``TimeLimitExceeded``), ``return_code``, ``stdout`` and ``stderr``.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import SandboxConfigError, SandboxUnavailableError

_CONNECT_SECONDS = 10.0
_READ_BYTES = 1 << 16
_MAX_RESPONSE_BYTES = 64 << 20
_RETRIED_STATUSES = frozenset({408, 425, 429})
"""Beside all of 500 to 599; any other status than 200 will not get better by asking again."""


class ServiceOutageError(SandboxUnavailableError):
    """The service gave no usable response. Leaves the runner only after all tries are used up."""

    def __init__(self, message: str, *, is_final: bool = False, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.is_final = is_final
        """Asking again will not help."""
        self.retry_after_seconds = retry_after_seconds
        """What the service asks for; 0 where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceResponse:
    """What the service says became of a script."""

    timed_out: bool
    return_code: int | None
    stdout: str
    """Written by an untrusted script."""
    stderr: str
    """Written by an untrusted script; for messages only."""


class FusionClient:
    """Requests, each over a connection of its own. Thread-safe.

    Args:
        url: of the service, with or without ``/run_code``.
        headers: sent with every request, an API key for instance.

    Raises:
        SandboxConfigError: the url is none.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str]) -> None:
        parts = urllib.parse.urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise SandboxConfigError(f"url must be http://host[:port][/path] or https://..., got {url!r}")
        self._host, self._port = parts.hostname, port
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._path = parts.path.rstrip("/").removesuffix("/run_code") + "/run_code"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._is_closed = False

    def run_code(self, request: Mapping[str, Any], *, seconds: float) -> ServiceResponse:
        """Have a script run.

        Args:
            request: the JSON object to post.
            seconds: longest wait for the whole response.

        Raises:
            ServiceOutageError: there is no usable response.
        """
        body = json.dumps(request).encode()
        status, retry_after, data = self._exchange(body, seconds)
        if status != 200:
            said = data[:300].decode("utf-8", "replace")
            raise ServiceOutageError(
                f"the service answered with status {status}: {said}",
                is_final=status < 500 and status not in _RETRIED_STATUSES,
                retry_after_seconds=retry_after,
            )
        return _parse(data)

    def close(self) -> None:
        """Hang up; requests under way fail. Idempotent."""
        with self._lock:
            self._is_closed = True
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _exchange(self, body: bytes, seconds: float) -> tuple[int, float, bytes]:
        connection = self._connection()
        with self._lock:
            if self._is_closed:
                raise ServiceOutageError("the runner is closed", is_final=True)
            self._open.add(connection)
        try:
            return self._post(connection, body, seconds)
        except (OSError, http.client.HTTPException) as error:
            raise ServiceOutageError(f"{self._host}: {type(error).__name__}: {error}") from error
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _post(self, connection: http.client.HTTPConnection, body: bytes, seconds: float) -> tuple[int, float, bytes]:
        deadline = time.monotonic() + seconds
        connection.connect()
        connection.sock.settimeout(seconds)
        connection.request("POST", self._path, body=body, headers=self._headers)
        response = connection.getresponse()
        data = bytearray()
        while part := response.read(_READ_BYTES):
            data += part
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no whole response within {seconds:.3g} s")
            if len(data) > _MAX_RESPONSE_BYTES:
                raise ServiceOutageError(f"the response exceeds {_MAX_RESPONSE_BYTES} bytes")
            if connection.sock is not None:
                connection.sock.settimeout(left)
        if response.length:  # the body ended early: what is missing is still counted here
            raise http.client.IncompleteRead(bytes(data), response.length)
        return response.status, _retry_after(response.getheader("Retry-After")), bytes(data)

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_SECONDS)
        return http.client.HTTPSConnection(self._host, self._port, timeout=_CONNECT_SECONDS, context=self._context)


def _retry_after(header: str | None) -> float:
    """Seconds of a Retry-After header; 0 for none, or for a date."""
    try:
        return max(0.0, float(header or 0))
    except ValueError:
        return 0.0


def _parse(data: bytes) -> ServiceResponse:
    """The part of a response that counts, every field checked.

    Raises:
        ServiceOutageError: it is not one, or it reports an error of the service's own.
    """
    try:
        response = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ServiceOutageError(f"the response is no JSON: {type(error).__name__}: {data[:100]!r}") from error
    result = response.get("run_result") if isinstance(response, dict) else None
    if isinstance(response, dict) and response.get("status") == "SandboxError":
        raise ServiceOutageError(f"the service reports an error of its own: {str(response.get('message'))[:300]}")
    if not isinstance(result, dict) or response.get("status") not in ("Success", "Failed"):
        raise ServiceOutageError(f"the response holds no run_result: {data[:200]!r}")
    status, code, stdout = result.get("status"), result.get("return_code"), result.get("stdout") or ""
    if status not in ("Finished", "TimeLimitExceeded") or type(code) not in (int, type(None)):
        raise ServiceOutageError(f"run_result has status {status!r} and return_code {code!r}")
    if not isinstance(stdout, str):
        raise ServiceOutageError(f"run_result.stdout is no text but a {type(stdout).__name__}")
    return ServiceResponse(
        timed_out=status == "TimeLimitExceeded", return_code=code, stdout=stdout, stderr=str(result.get("stderr") or "")
    )
