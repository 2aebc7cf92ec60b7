"""A service with SandboxFusion's API for tests: a process that runs scripts, and misbehaves when told to.

``python fusion_service.py`` prints its port and serves until its standard input closes. It has two more methods:
``POST /control`` with ``{"faults": [...]}`` lets each of the next requests meet one of these faults, and
``GET /requests`` returns the bodies that came in since the last look.
"""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

MAX_OUTPUT_BYTES = 1 << 16
"""Bytes of a stream that the real service keeps: the content of a pipe."""


def answer_of(status, /, files=(), **result):
    """Return an answer in the form of the real service."""
    return {"status": status, "message": "", "compile_result": None, "run_result": result or None, "files": dict(files)}


FIXED_ANSWERS = {
    "busy": (429, b'{"detail":"too many requests"}'),
    "bad_gateway": (502, b"<html>bad gateway</html>"),
    "forbidden": (403, b'{"detail":"no key"}'),
    "garbage": (200, b"\x00\xff not json"),
    "sandbox_error": (200, answer_of("SandboxError")),
    "no_python": (
        200,
        answer_of("Failed", status="Finished", return_code=127, stdout="", stderr="python: not found"),
    ),
}
"""Faults that have the same answer to every request."""


class State:
    """State that all requests share."""

    lock = threading.Lock()
    faults: ClassVar[list] = []
    requests: ClassVar[list] = []
    last_answer = None
    at_once = 0
    most_at_once = 0


def run_script(request, **user):
    """Run a script as the real service does without isolation: a file, an interpreter, a wall clock. Its output is read
    once, after its end, so a script that prints more than a pipe holds meets the wall clock."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(request["code"])
        os.chmod(folder, 0o777 if user else 0o700)  # as the real service does
        process = subprocess.Popen(
            [sys.executable, path],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **user,
        )
        started = time.time()
        try:
            status, code = "Finished", process.wait(timeout=request["run_timeout"])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status, code = "TimeLimitExceeded", None
        stdout, stderr = read_once(process.stdout), read_once(process.stderr)
        files = {}
        for name in request["fetch_files"]:
            if os.path.isfile(path := os.path.join(folder, name)):
                with open(path, "rb") as file:
                    files[name] = base64.b64encode(file.read()).decode()
    return answer_of(
        "Success" if code == 0 else "Failed",
        files=files,
        status=status,
        execution_time=time.time() - started,
        return_code=code,
        stdout=stdout.decode("utf-8", "replace"),
        stderr=stderr.decode("utf-8", "replace"),
    )


def read_once(pipe):
    """Read what a pipe holds, also if another process still has its other end."""
    with pipe:
        os.set_blocking(pipe.fileno(), False)
        return pipe.read(MAX_OUTPUT_BYTES) or b""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        with State.lock:
            found = {"requests": State.requests, "most_at_once": State.most_at_once}
            State.requests, State.most_at_once = [], 0
        self.answer(200, found)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/control":
            with State.lock:
                State.faults = json.loads(body)["faults"]
            self.answer(200, b"{}")
        elif self.path == "/run_code":
            self.run_code(json.loads(body))
        else:
            self.answer(404, b'{"detail":"Not Found"}')

    def run_code(self, request):
        with State.lock:
            State.requests.append(request)
            fault = State.faults.pop(0) if State.faults else None
            State.at_once += 1
            State.most_at_once = max(State.most_at_once, State.at_once)
        try:
            result = run_script(request) if fault is None else None
        finally:  # before the answer, because its receiver may ask again at once
            with State.lock:
                State.at_once -= 1
        if fault is None:
            State.last_answer = result
            self.answer(200, result)
        elif fault in FIXED_ANSWERS:
            self.answer(*FIXED_ANSWERS[fault])
        else:
            getattr(self, f"fault_{fault}")(request)

    def answer(self, status, answer, num_bytes=0):
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(num_bytes or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def fault_half(self, request):
        body = json.dumps(run_script(request)).encode()
        self.answer(200, body[: len(body) // 2], num_bytes=len(body))
        self.hang_up()

    def fault_cut_json(self, request):
        body = json.dumps(run_script(request)).encode()
        self.answer(200, body[: len(body) // 2])

    def fault_cut_stdout(self, request):
        result = run_script(request)
        stdout = result["run_result"]["stdout"]
        result["run_result"]["stdout"] = stdout[: 2 * len(stdout) // 3]
        self.answer(200, result)

    def fault_set_uid(self, request):
        """Run the script as an unprivileged user, so that its program has the same user."""
        try:
            result = run_script(request, user=65534, group=65534, extra_groups=[])
        except PermissionError:  # this is no root, or only root can read the interpreter: the users are the same anyway
            result = run_script(request)
        self.answer(200, result)

    def fault_no_file(self, request):
        self.answer(200, run_script(request | {"fetch_files": []}))

    def fault_cut_file(self, request):
        result = run_script(request)
        result["files"] = {name: text[: len(text) // 8 * 4] for name, text in result["files"].items()}
        self.answer(200, result)

    def fault_slow(self, request):
        time.sleep(30)  # no test waits so long for it
        self.answer(200, run_script(request))

    def fault_hang_up(self, request):
        self.hang_up()

    def fault_another_answer(self, request):
        self.answer(200, State.last_answer)

    def fault_no_process(self, request):
        code = "import os\ndef refuse(): raise BlockingIOError('no process')\nos.fork = refuse\n" + request["code"]
        self.answer(200, run_script(request | {"code": code}))

    def fault_time_limit(self, request):
        result = run_script(request)["run_result"] | {"status": "TimeLimitExceeded", "return_code": None}
        result["stdout"] = "\n".join(result["stdout"].split("\n")[:3])
        self.answer(200, answer_of("Failed", **result))


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
