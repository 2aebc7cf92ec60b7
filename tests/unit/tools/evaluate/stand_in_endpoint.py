"""A scripted OpenAI-compatible server: real HTTP, no model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class StandInEndpoint:
    """Serves chat completions of one model on a free port.

    Args:
        answer: ``(messages, seed) -> text``; may raise ``RefusedError``.
    """

    def __init__(self, answer: Callable[[list[dict[str, str]], int], str], *, model: str = "stand-in") -> None:
        self.requests: list[dict[str, Any]] = []
        self._answer = answer
        self._model = model
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def respond(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body for one request."""
        self.requests.append(request)
        if request["model"] != self._model:
            return 404, {"error": {"message": f"no model {request['model']}", "type": "NotFoundError"}}
        try:
            text = self._answer(request["messages"], request["seed"])
        except RefusedError as error:
            return 400, {"error": {"message": str(error), "type": "BadRequestError"}}
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        head = {"id": "x", "object": "chat.completion", "created": 0, "model": self._model}
        return 200, {**head, "choices": [choice], "usage": usage}

    def __enter__(self) -> StandInEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class RefusedError(Exception):
    """The server answers 400 with this message."""


class _Handler(BaseHTTPRequestHandler):
    endpoint: StandInEndpoint
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, body = self.endpoint.respond(request)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        return
