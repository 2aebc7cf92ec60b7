"""``python -m sandbox serve``: the judge over HTTP, with a token and bounds on connections, requests and bodies.

======  ==========  ================================================================
method  path        body -> answer
======  ==========  ================================================================
GET     /health     -> tier, places, and how many answers of each status were given
POST    /judge      a request, or a list of them -> verdict, or a list (``forms``)
POST    /run_code   one program in SandboxFusion's form -> what it printed
======  ==========  ================================================================

400: the body is not understood, or asks for what is not offered. 401: the token. 411, 413: no length, or too much.
503: the sandbox is down, which says nothing about a program. 504: all places are taken, or requests under way have too
many bytes; verl's client asks again. Work for a client that has hung up ends with the question under way.
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
"""A client that takes nothing for so long is hung up on; one whose whole request takes longer is read no further."""
_PIECE_BYTES = 1 << 16
_MAX_BODIES_UNDER_WAY = 16
"""All requests that are being read or judged have at most as many bytes as so many of the longest."""
_Work = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """How a service is bounded."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    token: str = ""
    """Clients send it as ``Authorization: Bearer TOKEN``. Empty: no token is asked for."""
    max_places: int = 64
    """Requests that are judged or wait for a worker at once."""
    max_body_bytes: int = 4 << 20
    """Of a request; JSON takes up to 26 times its bytes once it is read."""


class JudgeService(ThreadingHTTPServer):
    """A bound server; ``serve_forever`` answers until ``shutdown``. Judges and runner are the caller's to close.

    Raises:
        SandboxConfigError: it cannot listen at this host and port.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, settings: ServiceSettings, *, judges: JudgeProcesses, runner: LocalRunner) -> None:
        self.settings, self.judges, self.runner = settings, judges, runner
        self.places = threading.Semaphore(settings.max_places)
        self.counts, self.counting = Counter[str](), threading.Lock()
        self.bytes_under_way = 0
        self.address_of: dict[Any, str] = {}
        """Maps each open connection to its client's address."""
        self.reading_since: dict[Any, float] = {}
        """When, on the monotonic clock, each connection began to wait for the request that is being read."""
        try:
            super().__init__((settings.host, settings.port), _Handler)
        except (OSError, OverflowError) as error:
            raise SandboxConfigError(f"cannot listen on {settings.host}, port {settings.port}: {error}") from error

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether one more connection may be open, of all and of its address; else it is closed."""
        # Each connection is a thread, and strangers may open as many as they like.
        address = client_address[0]
        with self.counting:
            num_of_address = list(self.address_of.values()).count(address)
            if len(self.address_of) >= MAX_CONNECTIONS or num_of_address >= MAX_CONNECTIONS_OF_ADDRESS:
                return False
            self.address_of[request] = address
            return True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, whether or not it was served."""
        with self.counting:
            self.address_of.pop(request, None)
            self.reading_since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second: end the reading of requests that come a byte now and then."""
        for connection, since in list(self.reading_since.items()):
            if since < time.monotonic() - _SOCKET_SECONDS:
                with suppress(OSError):  # closed meanwhile
                    connection.shutdown(socket.SHUT_RD)

    def takes(self, num_bytes: int) -> bool:
        """Whether so many bytes more may be under way; then they count, until a negative number gives them back."""
        with self.counting:
            is_taken = self.bytes_under_way + num_bytes <= _MAX_BODIES_UNDER_WAY * self.settings.max_body_bytes
            self.bytes_under_way += num_bytes * is_taken
        return is_taken

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of ours."""
        logger.debug("a connection ended", exc_info=True)

    def judge(self, body: Any, connection: socket.socket) -> Any:
        """Verdicts on one request or a list of them, in its order.

        Raises:
            ConnectionAbortedError: the client has hung up; what was not begun is not judged.
        """
        requests = [JudgeRequest.from_mapping(one) for one in (body if isinstance(body, list) else [body])]
        found = []
        hung_up = select.poll()  # not select.select, which takes no descriptor above 1023
        hung_up.register(connection, select.POLLRDHUP)
        for result in self.judges.judge_all(requests):
            if isinstance(result, SandboxUnavailableError):
                raise result
            found.append(asdict(result))
            if hung_up.poll(0):
                raise ConnectionAbortedError("the client has hung up")
        return found if isinstance(body, list) else found[0]

    def run_code(self, body: Any) -> Any:
        """Answer a program in SandboxFusion's form with what it prints."""
        program = read_program(body, self.runner.limits)
        try:
            return run_json(self.runner.run(program, role=Role.CANDIDATE))
        except SandboxConfigError as error:  # of the machine: nothing is wrong with what was sent
            raise SandboxUnavailableError(str(error)) from error


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = _SOCKET_SECONDS
    server: JudgeService
    _num_unread = 0
    """Bytes of the body that are still to come."""

    def handle_one_request(self) -> None:
        self.server.reading_since[self.connection] = time.monotonic()
        super().handle_one_request()

    def do_GET(self) -> None:
        service, self.close_connection = self.server, True
        health = {"status": "ok", "tier": service.runner.tier, "places": service.settings.max_places}
        self._send(200 if self.path == "/health" else 404, {**health, "answers": dict(service.counts)})

    def do_POST(self) -> None:
        service, most = self.server, self.server.settings.max_body_bytes
        judge: _Work = partial(service.judge, connection=self.connection)
        work = {"/judge": judge, "/run_code": service.run_code}.get(self.path)
        length, token = self.headers.get("Content-Length", ""), f"Bearer {service.settings.token}".encode()
        if not length.isdecimal() or len(length) > 12 or int(length) > most:
            self.close_connection = True  # its body stays unread
            rule = f"send a Content-Length of at most {most}, got {length[:20]!r}"
            self._send(413 if length.isdecimal() else 411, {"detail": rule})
            return
        self._num_unread = int(length)
        # Compared in constant time, so that answers do not tell how much of a token was right.
        if service.settings.token and not hmac.compare_digest(self.headers.get("Authorization", "").encode(), token):
            self._refuse(401, "the header 'Authorization: Bearer TOKEN' is missing, or holds another token")
        elif work is None:
            self._refuse(404, f"no {self.path}; there are GET /health, POST /judge and POST /run_code")
        else:
            self._read_and_answer(work)

    def _read_and_answer(self, work: _Work) -> None:
        service, body = self.server, bytearray()
        try:
            # Counted as they come, and before a place is taken: a client that sends slowly holds little.
            while piece := self._read():
                if not service.takes(len(piece)):
                    self._refuse(504, "requests under way have too many bytes; try again")
                    return
                body += piece
            service.reading_since.pop(self.connection, None)
            if self._num_unread:
                self._send(400, {"detail": f"the body ended early, or took more than {_SOCKET_SECONDS:g} s"})
            # Refused at once and not queued: a client that waits longer than its time-out would ask twice.
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
        """A piece of the body; empty at its end, and where the client has hung up."""
        piece = self.rfile.read1(min(self._num_unread, _PIECE_BYTES))
        self._num_unread -= len(piece)
        return piece

    def _refuse(self, status: int, detail: str) -> None:
        """The body goes nowhere, piece by piece: a client that is still sending would not see the answer."""
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
