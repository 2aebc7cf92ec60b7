"""Checks of the SandboxFusion client on a service's response, and the script that it sends."""

import ast
import base64
import hashlib
import http.client
import importlib.util
import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from sandbox import Call, CallStatus, Limits, Program
from sandbox.runners.fusion.client import FusionClient, ServiceOutageError, ServiceResponse, parse_response
from sandbox.runners.fusion.progress import FusionProgress
from sandbox.runners.fusion.runner import MODULES, script
from sandbox.values.encoding import encode

TAG = "t" * 32
LIMITS = Limits()


def progress(num_calls=2, **changes):
    calls = tuple(Call(expression=f"f({n})") for n in range(num_calls))
    return FusionProgress(program=Program(source="def f(x): return x", calls=calls, limits=LIMITS, **changes))


def packed(value):
    return base64.b64encode(zlib.compress(value)).decode()


def answered(index, of=5, **changes):
    return {"event": "result", "index": index, "status": "value", "value": packed(encode(of)), "seconds": 0.0} | changes


READY, LOADED, END = {"event": "ready"}, {"event": "loaded"}, {"event": "end"}
COUNTERS = {"cpu_seconds": 0.1, "used_seconds": 0.2}


def text_of(*events):
    lines = [event if isinstance(event, str) else json.dumps(COUNTERS | event) for event in events]
    return "".join(f"\n{TAG} {line}\n" for line in lines)


def take(open_calls, *events, return_code=0, timed_out=False, noise="", files=()):
    stdout = noise + text_of(*events)
    response = ServiceResponse(
        timed_out=timed_out, return_code=return_code, stdout=stdout, stderr="", files=dict(files)
    )
    open_calls.read(response, tag=TAG)


@pytest.mark.parametrize("last", [[END], []])
def test_an_answer_with_all_results_finishes_the_program(last):
    made = progress()
    noise = f"\nnot{TAG} {{}}\nprinted {TAG} by somebody\n"
    take(made, READY, LOADED, answered(0), answered(1, "x"), *last, noise=noise)
    assert made.is_done
    result = made.result(1.5)
    assert [answer.value for answer in result.results] == [encode(5), encode("x")]
    assert (result.loaded, result.cpu_seconds, result.wall_seconds) == (True, 0.1, 1.5)


def test_seconds_and_patience_of_several_requests_add_up():
    made = progress(timed=True)
    take(made, READY, LOADED, answered(0, seconds=0.05, status="timed_out"), {"event": "more"})
    task = made.task()
    assert (task["has_loaded"], task["statuses"], task["used_seconds"]) == (True, ["timed_out"], 0.2)
    take(made, READY, answered(1), END)
    assert made.result(0.0).cpu_seconds == pytest.approx(0.2)
    assert made.result(0.0).results[0].cpu_seconds == 0.05


def test_events_of_the_file_come_before_the_last_line():
    data = text_of(answered(1, "x"), answered(2)).encode()
    last = END | {"sha256": hashlib.sha256(data).hexdigest()}
    for files in ({}, {"other": data}, {TAG: b""}, {TAG: data[:-9]}, {TAG: data.replace(b"0.1", b"0.0")}):
        made = progress(3)
        with pytest.raises(ServiceOutageError, match=r"fetch_files|cut off or changed") as caught:
            take(made, READY, LOADED, answered(0), last, files=files)
        assert caught.value.is_final
        assert made.num_known == 2
    take(made, READY, answered(1, "x"), {"event": "more"}, files={TAG: text_of(answered(2, 7)).encode()})
    assert made.num_known == 3  # a file that no line names is not read
    made = progress(3)
    take(made, READY, LOADED, answered(0), last, files={TAG: data})
    assert [answer.value for answer in made.result(0.0).results] == [encode(5), encode("x"), encode(5)]


@pytest.mark.parametrize("events", [(), (READY,), (READY, answered(0)), (LOADED, answered(0), answered(1), END)])
def test_what_does_not_begin_like_an_answer_to_this_request_is_an_outage(events):
    made = progress()
    with pytest.raises(ServiceOutageError):
        take(made, *events)
    assert made.num_known == 0


@pytest.mark.parametrize(
    ("events", "num_results"),
    [
        ([answered(0)], 1),
        ([answered(1)], 0),
        ([answered(0), END], 1),
        ([answered(0), answered(0)], 1),
        ([{"event": "more"}], 0),
        ([{"event": "failed", "detail": "late"}], 0),
        ([{"event": "lost", "detail": "fork: EAGAIN"}], 0),
        ([{"event": ["result"]}], 0),
        ([answered(0, status="passed")], 0),
        ([answered(0, value=5)], 0),
        ([answered(0, value="not base64")], 0),
        ([answered(0, value=packed(b"i5;")[:-6])], 0),
        ([answered(0, value=packed(b"x" * (LIMITS.value_bytes + 1)))], 0),
        ([answered(0, cpu_seconds=float("inf"))], 0),
        ([answered(0, cpu_seconds=10**400)], 0),
        ([answered(0, used_seconds="5")], 0),
        (["[]"], 0),
        (["{" * 100_000], 0),
        ([answered(0), '{"event": "result", "index": 1, "ki'], 1),
    ],
)
def test_an_answer_that_is_not_whole_is_an_outage_and_its_results_are_kept(events, num_results):
    made = progress()
    with pytest.raises(ServiceOutageError):
        take(made, READY, LOADED, *events)
    assert not made.is_done
    assert made.task()["statuses"] == ["value"] * num_results


def test_a_time_limit_of_the_service_is_an_outage_and_no_time_out_of_the_program():
    made = progress()
    with pytest.raises(ServiceOutageError, match="too slow"):
        take(made, READY, LOADED, answered(0), return_code=None, timed_out=True)
    take(made, READY, answered(1, status="timed_out", value="", detail="more than 1 s of CPU time"), END)
    assert [answer.status for answer in made.result(0.0).results] == [CallStatus.VALUE, CallStatus.TIMED_OUT]


@pytest.mark.parametrize("before", [[READY], [READY, LOADED]])
def test_a_script_that_is_killed_again_and_again_has_been_killed_by_its_program(before):
    made = progress()
    for _ in range(2):
        with pytest.raises(ServiceOutageError, match="return_code -9"):
            take(made, *before, return_code=-9)
    take(made, *before, return_code=-9)
    if LOADED not in before:
        assert made.load_error.startswith("died while loading")
        return
    take(made, READY, answered(1), END)
    assert [answer.status for answer in made.result(0.0).results] == [CallStatus.DIED, CallStatus.VALUE]


NO_OUTPUT = b'{"status": "Success", "run_result": {"status": "Finished", "return_code": 0, "stdout": ""}, "files": '


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b'"Success"', b"{}", b"\xff", b"[" * 100_000, b'{"status": "Success", "run_result": []}',
        b'{"status": "SandboxError", "message": "no"}', b'{"status": 1, "run_result": {"status": "Finished"}}',
        b'{"status": "Failed", "run_result": {"status": "Error", "return_code": 1}}',
        b'{"status": "Success", "run_result": {"status": "Finished", "return_code": "0", "stdout": ""}}',
        b'{"status": "Success", "run_result": {"status": "Finished", "return_code": 0, "stdout": 5}}',
        *(NO_OUTPUT + files for files in (b"5}", b'["a"]}', b'"a"}', b'{"a": null}}', b'{"a": "-"}}')),
    ],
)  # fmt: skip
def test_a_body_that_is_no_answer_is_an_outage(body):
    with pytest.raises(ServiceOutageError):
        parse_response(body)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://host:8080/", "/run_code"),
        ("https://host/gateway/", "/gateway/run_code"),
        ("http://host/run_code", "/run_code"),
    ],
)
def test_the_address_may_be_given_with_or_without_the_method(url, path):
    assert FusionClient(url)._path == path


def test_the_script_is_ascii_and_the_program_travels_as_data():
    task = {"tag": TAG, "source": 'x = \'\ud800é\'\n"""', "hash_seed": 1}
    text = script(task)
    assert text.isascii()
    ast.parse(text, feature_version=(3, 10))
    assert "é" not in text


def test_the_script_runs_on_python_3_10(tmp_path):
    """This is the Python of SandboxFusion's image."""
    found = [shutil.which("python3.10"), *Path(sys.base_prefix).parent.glob("*3.10*/bin/python3.10")]
    python = next((path for path in found if path and not subprocess.run([path, "-c", ""]).returncode), None)
    if not python:
        pytest.skip("there is no Python 3.10 here")
    made = progress()
    (tmp_path / "x.py").write_text(script(made.task() | {"tag": TAG, "hash_seed": 0, "stdout_bytes": 0}))
    ended = subprocess.run([python, "x.py"], cwd=tmp_path, capture_output=True, text=True)
    files = {TAG: (tmp_path / TAG).read_bytes()}
    made.read(ServiceResponse(False, ended.returncode, ended.stdout, ended.stderr, files), tag=TAG)
    assert [answer.value for answer in made.result(0.0).results] == [encode(0), encode(1)]


@pytest.mark.parametrize("name", MODULES)
def test_what_is_sent_runs_on_older_interpreters_and_needs_nothing_that_is_not_sent(name, repository):
    path = repository / "sandbox" / f"{name.replace('.', '/')}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
    package = f"sandbox.{name}".rpartition(".")[0]
    needed = {
        importlib.util.resolve_name("." * node.level + node.module, package)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    }
    assert needed <= {f"sandbox.{sent}" for sent in MODULES[: MODULES.index(name)]}
    newer = {"StrEnum", "ExceptionGroup", "Self", "tomllib"}
    assert not newer & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_a_client_that_is_closed_while_it_connects_sends_nothing(monkeypatch):
    client = FusionClient("http://localhost:1")
    sent = []
    monkeypatch.setattr(http.client.HTTPConnection, "connect", lambda connection: client.close())
    monkeypatch.setattr(http.client.HTTPConnection, "request", lambda *given, **named: sent.append(given))
    with pytest.raises(ServiceOutageError, match="closed"):
        client.run_code({}, seconds=1)
    assert not sent
