"""A scripted OpenAI-compatible server: real HTTP, no model."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StandInEndpoint:
    """Serves chat completions of one model on a free port.

    Args:
        answer: ``(messages, seed) -> text``; may raise ``RefusedError``.
    """

    def __init__(self, answer):
        self.requests = []
        self._answer = answer
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def words(self):
        """The options of a command that asks this endpoint."""
        return ["--endpoint", self.url, "--endpoint-model", "stand-in"]

    def respond(self, request):
        """Status and body for one request."""
        self.requests.append(request)
        if request["model"] != "stand-in":
            return 404, {"error": {"message": f"no model {request['model']}", "type": "NotFoundError"}}
        try:
            text = self._answer(request["messages"], request["seed"])
        except RefusedError as error:
            return 400, {"error": {"message": str(error), "type": "BadRequestError"}}
        choice = {"message": {"role": "assistant", "content": text}}
        return 200, {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._server.server_close()


class RefusedError(Exception):
    """The server answers 400 with this message."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, body = self.endpoint.respond(request)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        return
