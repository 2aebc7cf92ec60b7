"""``python -m sandbox serve`` over real sockets: the judge's form, SandboxFusion's, refusals, outages, the command."""

import contextlib
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from sandbox import JudgeProcesses, Limits, LocalRunner, SandboxConfigError
from sandbox.__main__ import main
from sandbox.service import server
from sandbox.service.forms import read_program
from sandbox.service.server import JudgeService, ServiceSettings

from .processes import wait_until

DOUBLE = {"reference": "def f(x): return 2 * x", "candidate": "def f(x): return x * x", "tests": ["assert f(2) == 4"]}
SUM = "print(sum(map(int, input().split())))"


@contextlib.contextmanager
def serving(runner, judges, **settings):
    with JudgeService(ServiceSettings(**settings), judges=judges, runner=runner) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def parts():
    limits = Limits(cpu_seconds_per_case=1.0, total_seconds=3.0)
    with LocalRunner(num_workers=2, limits=limits) as runner, JudgeProcesses(1) as judges:
        yield runner, judges


@pytest.fixture(scope="module")
def service(parts):
    with serving(*parts, max_body_bytes=1 << 16) as running:
        yield running


def ask(service, path, body, *, method="POST", headers=None):
    """Status and answer of one request; ``body`` is sent as JSON, or as it is where it is bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", service.server_port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body), headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def status_of(service, path="/judge", body=DOUBLE, **request):
    status, _ = ask(service, path, body, **request)
    return status


def connect(service):
    return socket.create_connection(("127.0.0.1", service.server_port))


def test_one_request_gets_a_verdict_and_a_list_gets_a_list(service):
    status, verdict = ask(service, "/judge", DOUBLE | {"id": "double"})
    assert (status, verdict["suites"][0]["cases"][0]["outcome"]) == (200, "passed")
    stdin = {"kind": "stdin", "reference": SUM, "candidate": "print(3)", "suites": [['assert run("1 2") == "3"'], []]}
    status, verdicts = ask(service, "/judge", [DOUBLE | {"tests": ["assert f(3) == 6"]}, stdin])
    assert [one["suites"][0]["cases"][0]["outcome"] for one in verdicts] == ["wrong_value", "passed"]
    assert ask(service, "/judge", []) == (200, [])


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        *[("/judge", body, words) for body, words in [
            (b"{", "Expecting"),
            (3, "a request must be a mapping, got int"),
            ({"reference": "x"}, "the fields ['candidate', 'suites'] are missing"),
            (DOUBLE | {"gold": 1}, "unknown fields ['gold']"),
            (DOUBLE | {"reference": 1}, "'reference' must be a text, got '1' (int)"),
            (DOUBLE | {"tests": "assert f(1) == 2"}, "'tests' must be a list of texts"),
            (DOUBLE | {"kind": "shell"}, "'kind' must be one of functions, stdin, in_place, got 'shell'"),
            (DOUBLE | {"checker": "tolerant"}, "unknown checker 'tolerant'"),
            (DOUBLE | {"history": "f(1)"}, "'history' must be a list of texts"),
            (b"[" * 20_000, "recursion"),
        ]],
        *[("/run_code", body, words) for body, words in [
            ({}, "a text 'code'"),
            ({"code": SUM, "language": "cpp"}, "language='cpp' is not offered"),
            ({"code": SUM, "files": {"a": "b"}}, "['files'] are not offered"),
            ({"code": SUM, "stdin": 3}, "'stdin' must be a text or null, got int"),
            ({"code": SUM, "run_timeout": 0}, "'run_timeout' must be a number above 0"),
            ({"code": SUM, "compile": 1}, "unknown fields ['compile']"),
        ]],
    ],
)  # fmt: skip
def test_a_request_that_is_wrong_or_asks_too_much_is_refused(service, path, body, words):
    status, answer = ask(service, path, body)
    assert (status, words in answer["detail"]) == (400, True)


def test_a_program_in_the_form_of_sandbox_fusion(service):
    body = {"code": SUM, "stdin": "1 2\n", "language": "python", "run_timeout": 5, "compile_timeout": 5, "files": {}}
    status, answer = ask(service, "/run_code", body | {"memory_limit_MB": 512, "fetch_files": []})
    assert (status, answer["status"], answer["compile_result"]) == (200, "Success", None)
    ran = answer["run_result"]
    assert (ran["status"], ran["return_code"], ran["stdout"], ran["stderr"]) == ("Finished", 0, "3\n", "")


@pytest.mark.parametrize(
    ("code", "words", "status", "return_code"),
    [
        ("while True: pass", "CPU time", "TimeLimitExceeded", None),
        *[(code, words, "Finished", 1) for code, words in [
            ("raise ValueError('no')", "ValueError: no"),
            ("print(", "SyntaxError"),
            ("print('x' * 9_000_000)", "output_limit"),
            ("open('/etc/passwd')", "PermissionError"),
            ("x = bytes(1 << 40)", "MemoryError"),
        ]],
    ],
)  # fmt: skip
def test_a_program_that_fails(service, code, words, status, return_code):
    _, answer = ask(service, "/run_code", {"code": code, "run_timeout": 0.2})
    ran = answer["run_result"]
    assert (answer["status"], ran["status"], ran["return_code"]) == ("Failed", status, return_code)
    assert words in ran["stderr"]


@pytest.mark.parametrize(
    ("asked", "seconds", "mebibytes"),
    [
        ({"run_timeout": -1, "memory_limit_MB": None}, 1.0, 1024),
        ({"run_timeout": 0.5, "memory_limit_MB": 512}, 0.5, 512),
        ({"run_timeout": 60, "memory_limit_MB": 1 << 20}, 1.0, 1024),
    ],
)
def test_a_client_may_lower_the_limits_and_never_raise_them(asked, seconds, mebibytes):
    granted = Limits(cpu_seconds_per_case=1.0, memory_bytes=1 << 30)
    limits = read_program({"code": SUM} | asked, granted).limits
    assert (limits.cpu_seconds_per_case, limits.memory_bytes) == (seconds, mebibytes << 20)


FORGED = """
import os, struct
payload = {payload}
os.write(3, struct.pack("<cI", b"V", len(payload)) + payload)
while True:
    pass
"""


@pytest.mark.parametrize(
    "payload",
    [
        "b'i5;'",
        "b'l1:N'",
        "b'n'",
        "b'S1:N'",
        "b'zz'",
        "b'S9000:' + b''.join(b'i%x;' % (k * (2**61 - 1)) for k in range(9000))",
    ],
)
def test_a_program_that_forges_its_output_gets_none_and_costs_nobody_else(service, payload):
    status, answer = ask(service, "/run_code", {"code": FORGED.format(payload=payload), "run_timeout": 1})
    assert (status, answer["status"], answer["run_result"]["stdout"]) == (200, "Failed", "")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/run_code", b'{"code": "1", "memory_limit_MB": 1' + b"0" * 400 + b"}"),
        ("/run_code", {"code": "1", "run_timeout": 1e300}),
        ("/judge", DOUBLE | {"question_id": "\ud800"}),
    ],
)
def test_odd_values_get_an_answer(service, path, body):
    assert status_of(service, path, body) in (200, 400, 500)


def test_a_body_that_ends_early_or_has_no_length(service):
    for head, status in ((b"Content-Length: 9", b"400"), (b"Transfer-Encoding: chunked", b"411"), (b"X: y", b"411")):
        with connect(service) as client:
            client.sendall(b"POST /judge HTTP/1.1\r\n" + head + b"\r\n\r\n[]")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1000).split()[1] == status


def test_other_paths_and_long_bodies(service):
    assert status_of(service, "/", {}) == 404
    assert status_of(service, body=b"x" * (1 << 17)) == 413
    assert ask(service, "/health", b"", method="GET")[1]["status"] == "ok"
    assert status_of(service, "/nowhere", b"", method="GET") == 404


def test_a_client_that_hangs_up_leaves_the_service_alone(service):
    for sent in (b"", b"POST /judge HTTP/1.1\r\nContent-Length: 100\r\n\r\n{", b"\x00\xff" * 100 + b"\r\n\r\n"):
        with connect(service) as client:
            client.sendall(sent)
    assert status_of(service) == 200


def test_a_token_is_asked_for(parts):
    with serving(*parts, token="secret") as service:
        assert status_of(service) == 401
        assert status_of(service, headers={"Authorization": "Bearer secres"}) == 401
        assert status_of(service, headers={"Authorization": "Bearer secret"}) == 200


def test_more_requests_than_places_are_refused_and_not_judged(parts):
    slow = {"code": "while True: pass"}
    with serving(*parts, max_places=2) as service:
        with ThreadPoolExecutor(6) as clients:
            statuses = clients.map(lambda _: status_of(service, "/run_code", slow), range(6))
        assert sorted(statuses) == [200, 200, 504, 504, 504, 504]
        assert status_of(service, "/run_code", {"code": SUM, "stdin": "1"}) == 200


def unfinished(service, length, sent=b""):
    client = connect(service)
    client.sendall(b"POST /judge HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % length + sent)
    return client


def test_slow_uploads_take_no_place_from_others(parts):
    with serving(*parts, max_places=1) as service, contextlib.ExitStack() as clients:
        for _ in range(5):
            clients.enter_context(unfinished(service, 100, b"["))
        wait_until(lambda: service.bytes_under_way == 5)
        assert status_of(service) == 200
    wait_until(lambda: service.bytes_under_way == 0)


def test_bytes_under_way_are_bounded(parts):
    with serving(*parts, max_body_bytes=1000) as service:
        with contextlib.ExitStack() as clients:
            for _ in range(16):
                clients.enter_context(unfinished(service, 1000, b"[" * 999))
            wait_until(lambda: service.bytes_under_way == 16 * 999)
            status, answer = ask(service, "/judge", DOUBLE)
            assert status == 504
            assert "too many bytes" in answer["detail"]
        wait_until(lambda: service.bytes_under_way == 0)
        assert status_of(service) == 200


@pytest.mark.parametrize(
    ("sent", "answer"),
    [(b"POST /judge HTTP/1.1\r\nContent-Length: 1000\r\n\r\n", b" 400 "), (b"POST /judge HTTP/1.1\r\nX-Word: ", b"")],
)
def test_a_request_that_comes_byte_by_byte_is_read_for_a_bounded_time(parts, monkeypatch, sent, answer):
    monkeypatch.setattr(server, "_SOCKET_SECONDS", 1.0)
    with serving(*parts) as service, connect(service) as client:
        client.sendall(sent)
        client.settimeout(0.1)
        found = None
        for _ in range(300):  # a byte each 0.1 s, and longer than the limit
            with contextlib.suppress(OSError):
                client.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                try:
                    found = client.recv(1000)
                except ConnectionResetError:
                    found = b""
                break
        assert found is not None
        assert answer in found
        wait_until(lambda: service.bytes_under_way == 0 and not service.reading_since)
        assert status_of(service) == 200


def test_one_address_takes_a_part_of_the_connections(parts, monkeypatch):
    monkeypatch.setattr(server, "MAX_CONNECTIONS_OF_ADDRESS", 3)
    with serving(*parts) as service:
        with contextlib.ExitStack() as clients:
            for _ in range(3):
                clients.enter_context(unfinished(service, 9))
            with connect(service) as another:
                assert another.recv(1) == b""  # hung up
        wait_until(lambda: not service.address_of)
        assert status_of(service) == 200


@pytest.mark.parametrize("resets", [0, 1])
def test_work_for_a_client_that_has_hung_up_ends(parts, resets):
    hang = "def f(x):\n    while True: pass"
    questions = [DOUBLE | {"candidate": hang, "reference": f"{DOUBLE['reference']}\n# {n}"} for n in range(40)]
    body = json.dumps(questions).encode()
    with serving(*parts) as service:
        with unfinished(service, len(body), body) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", resets, 0))
            wait_until(lambda: service.bytes_under_way == len(body))
        started = time.monotonic()
        assert status_of(service) == 200
        # A hanging question takes more than a second, and four are under way at a time.
        assert time.monotonic() - started < 8
        wait_until(lambda: service.bytes_under_way == 0)
        assert service.counts == {"200": 1}


def test_a_machine_that_confines_no_longer_is_an_outage(parts, monkeypatch):
    monkeypatch.setattr(parts[0], "run", Mock(side_effect=SandboxConfigError))
    with serving(*parts) as service:
        assert status_of(service, "/run_code", {"code": SUM}) == 503


def test_an_outage_is_no_verdict():
    with LocalRunner() as runner, JudgeProcesses(1) as judges:
        runner.close()
        judges.close()
        with serving(runner, judges) as service:
            assert status_of(service) == 503
            assert status_of(service, "/run_code", {"code": SUM}) == 503


def test_the_command_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "sandbox", "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"SANDBOX_TOKEN": "t"})
    address, _, port = process.stdout.readline().rpartition(":")
    assert address == "http://127.0.0.1"
    assert status_of(Mock(server_port=int(port)), headers={"Authorization": "Bearer t"}) == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    process.stdout.close()


def test_beyond_the_loopback_a_token_is_needed(monkeypatch, capsys):
    monkeypatch.delenv("SANDBOX_TOKEN", raising=False)
    assert main(["serve", "--host", "0.0.0.0", "--port", "0"]) == 1
    assert "set SANDBOX_TOKEN" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("--port", "99999"), ("--places", "0"), ("--max-body-bytes", "-1"), ("--seconds", "0"), ("--host", "foo.bar")],
)
def test_settings_that_cannot_be_used_are_refused(monkeypatch, capsys, words):
    monkeypatch.setenv("SANDBOX_TOKEN", "t")
    assert main(["serve", "--port", "0", *words]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_verls_own_client_takes_its_answers(service):
    utils = pytest.importorskip("verl.utils.reward_score.sandbox_fusion.utils")
    url = f"http://127.0.0.1:{service.server_port}/run_code"
    tests = {"inputs": ["1 2\n", "3\n", "x\n"], "outputs": ["3\n", "4\n", "0\n"]}
    results, details = utils.check_correctness(url, tests, SUM, timeout=5)
    assert (results, [one["status"] for one in details]) == (
        [True, False, -2],
        ["success", "wrong_answer", "runtime_error"],
    )
