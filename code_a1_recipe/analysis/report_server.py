"""``code-a1 report RUN --serve``: a run's page for a browser of this machine, made anew when the run has changed."""

import html
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ..errors import InputError
from ..files import fingerprint
from ..runs.live_run import LiveRun, changed
from ..runs.reader import RunRecords
from .report import run_page

_ADDRESS = "127.0.0.1"
_NAMES = (_ADDRESS, "localhost")
"""Hosts that a browser may ask for; another is a page's own name that it points here (DNS rebinding)."""
_NONCE = secrets.token_urlsafe()
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
    f"form-action 'none'; frame-ancestors 'none'; script-src 'nonce-{_NONCE}'"
)
_NO_REPORT = "<!doctype html>\n<html lang='en'>\n<meta charset='utf-8'>\n<title>report</title>\n<p>{}</p>\n</html>"
_SCRIPT = """<script nonce="{nonce}">
const all = [...document.querySelectorAll("details")], open = sessionStorage.getItem("open")?.split(",");
if (open) all.forEach((one, n) => one.open = open.includes(String(n)));  // so that the browser finds the same place
const timer = setInterval(async () => {{
  const answer = await fetch("/version").catch(() => null);
  if (!answer?.ok || await answer.text() === "{version}") return;
  sessionStorage.setItem("open", all.flatMap((one, n) => one.open ? [n] : []).join(","));
  clearInterval(timer);  // a page that takes long to draw is asked for once
  location.reload();
}}, 3000);
</script>
"""


class ReportServer(ThreadingHTTPServer):
    """Serves ``/``, the page, and ``/version``, a word that changes with the run.

    Raises:
        InputError: the folder holds no run, or the port (0: any free one) is taken.
    """

    def __init__(self, folder: Path, *, port: int) -> None:
        self._run = LiveRun(folder).run
        self._drawing = threading.Lock()  # matplotlib's settings belong to the whole process
        self._made = ("", b"")
        try:
            super().__init__((_ADDRESS, port), _Handler)
        except OSError as error:
            raise InputError(f"--port {port} cannot be used: {error.strerror}; 0 takes any free one") from error

    def version(self) -> str:
        """Another word whenever the run has written, begun or ended."""
        parts = [f"{path} {changed(path)}" for path in self._run.files()]
        return fingerprint(str(self._run.paths.is_running()), *parts)

    def page(self) -> bytes:
        """The page as the run is now; while it goes on, one that follows it."""
        with self._drawing:
            if self._made[0] != (version := self.version()):
                is_running = self._run.paths.is_running()
                try:
                    page = run_page(RunRecords.open(self._run.folder))
                except InputError as error:
                    page = _NO_REPORT.format(html.escape(str(error))).encode("utf-8", "replace")
                script = _SCRIPT.format(nonce=_NONCE, version=version) if is_running else ""
                self._made = version, page.replace(b"</html>", f"{script}</html>".encode())
            return self._made[1]


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    server_version, sys_version, timeout = "code-a1", "", 30

    def do_GET(self) -> None:
        if self.headers.get("Host", "").rpartition(":")[0] not in _NAMES:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif self.path == "/":
            self._send(self.server.page(), "text/html")
        elif self.path == "/version":
            self._send(self.server.version().encode(), "text/plain")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with suppress(ConnectionError):  # the reader has left
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal shows the address alone."""


def serve(folder: Path, *, port: int, tell: Callable[[str], object]) -> None:
    """Serve the report of a run until Ctrl-C; ``tell`` gets the address. Raises as ``ReportServer`` does."""
    with ReportServer(folder, port=port) as server, suppress(KeyboardInterrupt):
        tell(f"report: http://{_ADDRESS}:{server.server_port}/ (Ctrl-C ends it)")
        server.serve_forever()
