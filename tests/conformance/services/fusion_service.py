"""A service with SandboxFusion's API for tests: a process that runs scripts, and misbehaves when told to.

``python fusion_service.py`` prints its port and serves until its standard input closes. Beside
``POST /run_code`` it knows ``POST /control`` with ``{"faults": [...]}``: the next requests meet those
faults, one each; and ``GET /requests``: the bodies that came in since the last look.
"""

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

MAX_OUTPUT_BYTES = 1 << 20
"""What the real service keeps of a stream."""


class State:
    """What the requests share."""

    lock = threading.Lock()
    faults: ClassVar[list] = []
    requests: ClassVar[list] = []
    last_answer = None
    at_once = 0
    most_at_once = 0


def run_script(request):
    """As the real service without isolation: a file, an interpreter, a wall clock."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(request["code"])
        process = subprocess.Popen(
            [sys.executable, path],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started = time.time()
        try:
            stdout, stderr = process.communicate(timeout=request["run_timeout"])
            status, code = "Finished", process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            status, code = "TimeLimitExceeded", None
    return {
        "status": "Success" if code == 0 else "Failed",
        "message": "",
        "compile_result": None,
        "run_result": {
            "status": status,
            "execution_time": time.time() - started,
            "return_code": code,
            "stdout": stdout[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"),
            "stderr": stderr[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"),
        },
        "executor_pod_name": None,
        "files": {},
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        with State.lock:
            found = {"requests": State.requests, "most_at_once": State.most_at_once}
            State.requests, State.most_at_once = [], 0
        self.answer(200, json.dumps(found).encode())

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
        finally:  # before it is answered: who has the answer may ask again at once
            with State.lock:
                State.at_once -= 1
        if fault is None:
            State.last_answer = result
            self.answer(200, json.dumps(result).encode())
        else:
            getattr(self, f"fault_{fault}")(request)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def fault_busy(self, request):
        self.answer(429, b'{"detail":"too many requests"}')

    def fault_bad_gateway(self, request):
        self.answer(502, b"<html>bad gateway</html>")

    def fault_forbidden(self, request):
        self.answer(403, b'{"detail":"no key"}')

    def fault_half(self, request):
        body = json.dumps(run_script(request)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        self.hang_up()

    def fault_cut_json(self, request):
        body = json.dumps(run_script(request)).encode()
        self.answer(200, body[: len(body) // 2])

    def fault_cut_stdout(self, request):
        result = run_script(request)
        stdout = result["run_result"]["stdout"]
        result["run_result"]["stdout"] = stdout[: 2 * len(stdout) // 3]
        self.answer(200, json.dumps(result).encode())

    def fault_slow(self, request):
        time.sleep(30)  # no test waits so long for it
        self.answer(200, json.dumps(run_script(request)).encode())

    def fault_hang_up(self, request):
        self.hang_up()

    def fault_garbage(self, request):
        self.answer(200, b"\x00\xff not json")

    def fault_another_answer(self, request):
        self.answer(200, json.dumps(State.last_answer).encode())

    def fault_sandbox_error(self, request):
        result = {"status": "SandboxError", "message": "no pod", "compile_result": None, "run_result": None}
        self.answer(200, json.dumps(result).encode())

    def fault_no_python(self, request):
        result = {"status": "Finished", "return_code": 127, "stdout": "", "stderr": "python: not found"}
        self.answer(200, json.dumps({"status": "Failed", "message": "", "run_result": result}).encode())

    def fault_no_process(self, request):
        code = "import os\ndef refuse(): raise BlockingIOError('no process')\nos.fork = refuse\n" + request["code"]
        self.answer(200, json.dumps(run_script(request | {"code": code})).encode())

    def fault_time_limit(self, request):
        result = run_script(request)["run_result"] | {"status": "TimeLimitExceeded", "return_code": None}
        result["stdout"] = "\n".join(result["stdout"].split("\n")[:3])
        self.answer(200, json.dumps({"status": "Failed", "message": "", "run_result": result}).encode())


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
