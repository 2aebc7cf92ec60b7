"""The judge over HTTP (``python -m sandbox serve``), with a token and bounds on connections, requests and bodies.

======  ==========  ==================================================================
method  path        body -> answer
======  ==========  ==================================================================
GET     /health     nothing -> tier, places, and the number of answers by status
POST    /judge      fields of a ``JudgeRequest`` -> verdict; or a list -> list
POST    /run_code   one program in SandboxFusion's format (``forms``) -> its output
======  ==========  ==================================================================

A refusal has one of these statuses:

- 400: the body is wrong, or asks for something that the service does not offer.
- 401: the token is missing or wrong.
- 411, 413: the body has no length, or is too long.
- 503: the sandbox has an outage, which says nothing about a program.
- 504: all places are taken, or the current requests have too many bytes together. verl's client then asks again.

If a client hangs up, the service does not judge the rest of the client's list.
"""

import hmac
import json
import logging
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import SandboxConfigError, SandboxUnavailableError
from ..judge.process_pool import JudgeProcesses
from ..judge.request import JudgeRequest
from ..runners.base import Role
from ..runners.local.runner import LocalRunner
from .forms import read_program, run_json

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
MAX_CONNECTIONS_OF_ADDRESS = 128
_SOCKET_SECONDS = 60.0
"""Longest time that a client may take to accept some data, or to send its whole request."""
_PIECE_BYTES = 1 << 16
_MAX_BODIES_UNDER_WAY = 16
"""The bodies of all current requests together may have as many bytes as this number of longest bodies."""
_Work = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Address, token and bounds of a service."""

    host: str = "127.0.0.1"
    port: int = 0
    """Port to listen on. 0 takes a free port."""
    token: str = ""
    """Token that clients must send as ``Authorization: Bearer TOKEN``. Empty means that no token is needed."""
    max_places: int = 64
    """Largest number of requests at once, including requests that wait for a worker."""
    max_body_bytes: int = 4 << 20
    """Longest body of a request. The parsed JSON takes up to 26 times the memory of the body."""


class JudgeService(ThreadingHTTPServer):
    """A server that already listens. ``serve_forever`` answers until ``shutdown`` is called.

    The caller must close the judges and the runner.

    Raises:
        SandboxConfigError: the server cannot listen on this host and port.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, settings: ServiceSettings, *, judges: JudgeProcesses, runner: LocalRunner) -> None:
        self.settings, self.judges, self.runner = settings, judges, runner
        self.places = threading.Semaphore(settings.max_places)
        self.counts = Counter[str]()
        """Number of answers for each HTTP status."""
        self.counting = threading.Lock()
        """Lock of ``counts``, ``address_of`` and ``bytes_under_way``."""
        self.bytes_under_way = 0
        """Number of bytes of all request bodies that are in memory."""
        self.address_of: dict[Any, str] = {}
        """Maps each open connection to its client's address."""
        self.reading_since: dict[Any, float] = {}
        """Maps each connection to the monotonic time at which the wait for its current request began."""
        try:
            super().__init__((settings.host, settings.port), _Handler)
        except (OSError, OverflowError) as error:
            raise SandboxConfigError(f"cannot listen on {settings.host}, port {settings.port}: {error}") from error

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return True if the server accepts this connection. If not, the base class closes the connection."""
        # The number of connections is bounded, because each takes a thread even before the token is checked.
        address = client_address[0]
        with self.counting:
            num_of_address = list(self.address_of.values()).count(address)
            if len(self.address_of) >= MAX_CONNECTIONS or num_of_address >= MAX_CONNECTIONS_OF_ADDRESS:
                return False
            self.address_of[request] = address
            return True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection and forget it."""
        with self.counting:
            self.address_of.pop(request, None)
            self.reading_since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Stop reading requests that arrive too slowly. The base class calls this method twice a second."""
        earliest = time.monotonic() - _SOCKET_SECONDS
        for connection, since in list(self.reading_since.items()):
            if since < earliest:
                with suppress(OSError):  # the connection may have closed meanwhile
                    connection.shutdown(socket.SHUT_RD)

    def takes(self, num_bytes: int) -> bool:
        """Count more bytes as bytes in memory and return True. If the sum would be too large, only return False.

        A negative number reduces the count.
        """
        with self.counting:
            total = self.bytes_under_way + num_bytes
            if total > _MAX_BODIES_UNDER_WAY * self.settings.max_body_bytes:
                return False
            self.bytes_under_way = total
        return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error of a connection at debug level only, because a client may hang up at any time."""
        logger.debug("a connection ended", exc_info=True)

    def judge(self, body: Any, connection: socket.socket) -> Any:
        """Judge one request, or a list of requests, and return the verdicts in their order.

        Raises:
            ConnectionAbortedError: the client has hung up. The requests that no worker has begun are dropped.
        """
        entries = body if isinstance(body, list) else [body]
        requests = [JudgeRequest.from_mapping(entry) for entry in entries]
        verdicts = []
        client = select.poll()  # unlike select.select, poll accepts descriptors above 1023
        client.register(connection, select.POLLRDHUP)
        # A thread stays free, so that a short request of another client need not wait for programs that hang.
        for result in self.judges.judge_all(requests, num_left_free=1):
            if isinstance(result, SandboxUnavailableError):
                raise result
            verdicts.append(asdict(result))
            if client.poll(0):
                raise ConnectionAbortedError("the client has hung up")
        return verdicts if isinstance(body, list) else verdicts[0]

    def run_code(self, body: Any) -> Any:
        """Run a program in SandboxFusion's format and return its output."""
        program = read_program(body, self.runner.limits)
        try:
            return run_json(self.runner.run(program, role=Role.CANDIDATE))
        except SandboxConfigError as error:  # this machine causes the error, and not the request
            raise SandboxUnavailableError(str(error)) from error


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _SOCKET_SECONDS
    server: JudgeService
    _num_unread = 0
    """Bytes of the body that have not been read yet."""

    def handle_one_request(self) -> None:
        self.server.reading_since[self.connection] = time.monotonic()
        super().handle_one_request()

    def do_GET(self) -> None:
        self.close_connection = True
        service = self.server
        health = {
            "status": "ok",
            "tier": service.runner.tier,
            "places": service.settings.max_places,
            "answers": dict(service.counts),
        }
        self._send(200 if self.path == "/health" else 404, health)

    def do_POST(self) -> None:
        service, settings = self.server, self.server.settings
        judge: _Work = partial(service.judge, connection=self.connection)
        work = {"/judge": judge, "/run_code": service.run_code}.get(self.path)
        length = self.headers.get("Content-Length", "")
        # The number of digits is checked before `int`, because `int` raises an error for a very long number.
        if not length.isdecimal() or len(length) > 12 or int(length) > settings.max_body_bytes:
            self.close_connection = True  # the body stays unread, so the connection cannot carry another request
            rule = f"send a Content-Length of at most {settings.max_body_bytes}, got {length[:20]!r}"
            self._send(413 if length.isdecimal() else 411, {"detail": rule})
            return
        self._num_unread = int(length)
        given = self.headers.get("Authorization", "").encode()
        # This comparison takes constant time. Otherwise the time of an answer would show how many characters of a token
        # are right.
        if settings.token and not hmac.compare_digest(given, f"Bearer {settings.token}".encode()):
            self._refuse(401, "the header 'Authorization: Bearer TOKEN' is missing, or holds another token")
        elif work is None:
            self._refuse(404, f"no {self.path}; there are GET /health, POST /judge and POST /run_code")
        else:
            self._read_and_answer(work)

    def _read_and_answer(self, work: _Work) -> None:
        service, body = self.server, bytearray()
        try:
            # Only bytes that have arrived are counted, and a request takes a place only after its whole body. So a slow
            # client uses few resources.
            while piece := self._read():
                if not service.takes(len(piece)):
                    self._refuse(504, "requests under way have too many bytes; try again")
                    return
                body += piece
            service.reading_since.pop(self.connection, None)
            if self._num_unread:
                self._send(400, {"detail": f"the body ended early, or took more than {_SOCKET_SECONDS:g} s"})
            # If there is no place, the request is refused at once, because a client that waits too long sends it again.
            elif not service.places.acquire(blocking=False):
                self._send(504, {"detail": f"all {service.settings.max_places} places are taken; try again"})
            else:
                try:
                    status, answer = _answer(work, bytes(body))
                finally:
                    service.places.release()
                self._send(status, answer)
        finally:
            service.takes(-len(body))

    def _read(self) -> bytes:
        """Return a piece of the body. The piece is empty at the body's end, or if the client has hung up."""
        piece = self.rfile.read1(min(self._num_unread, _PIECE_BYTES))
        self._num_unread -= len(piece)
        return piece

    def _refuse(self, status: int, detail: str) -> None:
        """Read the whole body, then refuse the request. A client that is still sending would not see the answer."""
        while self._read():
            pass
        self._send(status, {"detail": detail})

    def _send(self, status: int, answer: Any) -> None:
        with self.server.counting:
            self.server.counts[str(status)] += 1
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        logger.debug(format, *arguments)


def _answer(work: _Work, body: bytes) -> tuple[int, Any]:
    try:
        return 200, work(json.loads(body))
    except SandboxUnavailableError as error:
        return 503, {"detail": f"the sandbox is unavailable: {error}"}
    except (ValueError, RecursionError) as error:
        return 400, {"detail": str(error)}
    except ConnectionAbortedError:
        raise
    except Exception as error:
        logger.exception("a request could not be answered")
        return 500, {"detail": f"{type(error).__name__}: {error}"}
