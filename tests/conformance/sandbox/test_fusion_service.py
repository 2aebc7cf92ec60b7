"""The SandboxFusion client against a service process that misbehaves: outages, never verdicts."""

import base64
import dataclasses
import json
import os
import random
import re
import signal
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import Judge, JudgeRequest, Limits, SandboxConfigError, SandboxFusionRunner, SandboxUnavailableError
from sandbox.__main__ import main
from sandbox.checks.self_test import LIMITS
from sandbox.text import encode

from ...unit.sandbox.processes import wait_until
from ..programs import kinds, run

LASTING = ("busy", "bad_gateway", "garbage", "another_answer", "sandbox_error", "no_python", "no_process")
PASSING = ("half", "cut_json", "cut_stdout", "hang_up", "time_limit")
"""Bodies that are no response are in tests/unit/sandbox/test_fusion.py."""
DOUBLING = "def f(x): return 2 * x"
RANDOM_BYTES = "import random\ndef f(n): return random.Random(n).randbytes(n)"


@pytest.fixture(scope="module")
def runner(fusion_service):
    with SandboxFusionRunner(fusion_service.url, num_workers=3, limits=LIMITS, tries=3) as made:
        yield made


def sent_task(request):
    """Return the data that a request sends in addition to the harness."""
    packed = re.search(r"task = json.loads\(zlib.decompress\(base64.b64decode\('([^']*)'", request["code"])
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


@pytest.mark.parametrize("fault", LASTING + PASSING)
def test_one_bad_answer_changes_nothing(runner, fusion_service, fault):
    fusion_service.misbehave(fault)
    result = run(runner, DOUBLING, "f(1)", "f(2)", "f(4)")
    assert [answer.value for answer in result.results] == [b"i2;", b"i4;", b"i8;"]


@pytest.mark.parametrize("fault", LASTING)
def test_a_service_that_keeps_failing_is_an_outage(runner, fusion_service, fault):
    run(runner, "x = 5", "x")  # the answer that `another_answer` repeats
    fusion_service.misbehave(*[fault] * 3)
    with pytest.raises(SandboxUnavailableError, match="try 3 of 3"):
        run(runner, DOUBLING, "f(1)")


def test_a_service_that_is_too_slow_is_an_outage(fusion_service, monkeypatch):
    monkeypatch.setattr("sandbox.runners.fusion.runner._START_SECONDS", 0.2)
    monkeypatch.setattr("sandbox.runners.fusion.runner.QUEUE_SECONDS", 1.0)
    limits = Limits(total_seconds=0.4)
    with SandboxFusionRunner(fusion_service.url, limits=limits, tries=2) as runner:
        fusion_service.misbehave("slow", "slow")
        with pytest.raises(SandboxUnavailableError, match=r"try 2 of 2.*[Tt]ime"):
            run(runner, DOUBLING, "f(1)", limits=limits)


def test_a_refusal_that_will_not_change_is_not_asked_again(runner, fusion_service):
    fusion_service.seen()
    fusion_service.misbehave("forbidden")
    with pytest.raises(SandboxUnavailableError, match=r"status 403.*no key"):
        run(runner, DOUBLING, "f(1)")
    assert len(fusion_service.seen()["requests"]) == 1


def test_answers_that_arrived_are_not_asked_for_again(runner, fusion_service):
    fusion_service.seen()
    fusion_service.misbehave("cut_stdout")
    result = run(runner, DOUBLING, *(f"f({n})" for n in range(60)))
    assert [answer.value for answer in result.results] == [b"i%x;" % (2 * n) for n in range(60)]
    first, second = (sent_task(request)["statuses"] for request in fusion_service.seen()["requests"])
    assert first == []
    assert 20 < len(second) < 60


def random_bytes(n):
    return encode(random.Random(n).randbytes(n))


@pytest.mark.parametrize(("total_bytes", "is_one"), [(LIMITS.total_output_bytes, True), (1 << 20, False)])
def test_long_results_come_in_a_file(fusion_service, runner, total_bytes, is_one):
    fusion_service.seen()
    limits = dataclasses.replace(LIMITS, total_output_bytes=total_bytes)
    result = run(runner, RANDOM_BYTES, "f(1)", *(f"f(300_000 + {n})" for n in range(8)), limits=limits)
    lengths = [1, *(300_000 + n for n in range(8))]
    assert [answer.value for answer in result.results] == [random_bytes(n) for n in lengths]
    assert (len(fusion_service.seen()["requests"]) == 1) is is_one


@pytest.mark.parametrize(
    ("fault", "words"),
    [("no_file", "must support `fetch_files`"), ("cut_file", r"file, of which \d+ bytes came, was cut off or changed")],
)
def test_a_file_that_does_not_come_whole_is_an_outage_at_once_and_at_the_start_a_wrong_setting(
    fusion_service, runner, fault, words
):
    fusion_service.misbehave(fault, fault)
    with pytest.raises(SandboxUnavailableError, match=f"try 1 of 3.*{words}"):
        run(runner, RANDOM_BYTES, "f(99_999)")
    with pytest.raises(SandboxConfigError, match=words):
        SandboxFusionRunner(fusion_service.url)


@pytest.mark.parametrize(
    "attempt",
    [
        "os.symlink(victim, path)",
        "os.makedirs(path + '/inner')",
        "open(path, 'w').write(forged)",
        "os.fork() or (os.setsid(), [write() for _ in iter(int, 1)])",
    ],
    ids=["link", "folder", "file", "process_left_behind"],
)
def test_a_program_cannot_write_its_file_of_results(fusion_service, runner, tmp_path, attempt):
    tmp_path.chmod(0o777)
    (victim := tmp_path / "victim").write_text("unchanged")
    victim.chmod(0o666)
    source = f"""
import base64, contextlib, json, os, random, re, resource, zlib
victim = {str(victim)!r}
def write():
    with contextlib.suppress(OSError), open(path, 'w') as file: file.write(forged)
def f(n):
    global path, forged
    path = open(f'/proc/{{os.getppid()}}/cmdline').read().split(chr(0))[5]
    task = json.loads(zlib.decompress(base64.b64decode(re.search(r"task = .*?'([^']*)'", open(path).read())[1])))
    path = os.path.join(os.path.dirname(path), task['tag'])
    forged = task['tag'] + ' ' + json.dumps({{'event': 'result', 'index': 0, 'status': 'raised', 'detail': 'forged'}})
    with contextlib.suppress(ValueError): resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    with contextlib.suppress(OSError): {attempt}
    return random.Random(n).randbytes(n)
"""
    fusion_service.misbehave("set_uid")
    result = run(runner, source, "f(99_998)", "f(99_999)")
    assert [(answer.detail, answer.value) for answer in result.results] == [
        ("", random_bytes(n)) for n in (99_998, 99_999)
    ]
    assert victim.read_text() == "unchanged"


def test_only_code_and_calls_are_sent(fusion_service, runner):
    fusion_service.seen()
    secret = "a claim that nobody must send"
    verdict = Judge(runner).judge(
        JudgeRequest(
            question_id="q",
            reference="def f(x): return 'the answer ' + x",
            candidate="def f(x): return 'the answer ' + x",
            suites=((f"assert f('is') == {secret!r}", "assert f('is 4') == 'the answer is 4'"),),
        )
    )
    assert [case.outcome.value for case in verdict.suites[0].cases] == ["passed", "passed"]
    requests = fusion_service.seen()["requests"]
    assert len(requests) == 4
    for request in requests:
        text = json.dumps(sent_task(request))
        assert "f('is')" in text
        assert secret not in text
        assert "the answer is" not in text


def test_requests_at_once_are_bounded_name_their_limits_and_are_not_repeated_after_a_hang(fusion_service, runner):
    fusion_service.seen()
    source = "def f(x):\n    while x == 8: pass\n    return x"
    with ThreadPoolExecutor(9) as pool:
        list(pool.map(lambda n: run(runner, source, f"f({n})", "f(0)"), range(9)))
    seen = fusion_service.seen()
    assert len(seen["requests"]) == 9
    assert seen["most_at_once"] <= 3
    request = seen["requests"][0]
    assert request["language"] == "python"
    assert request["memory_limit_MB"] == (LIMITS.memory_bytes >> 20) + 1024
    assert request["run_timeout"] >= LIMITS.total_seconds


def test_a_program_that_kills_what_watches_it_has_died(runner):
    """It only loses its own results. Three kills tell it from a service that is short of memory."""
    source = f"import os\ndef f(x):\n    if x == 2: os.kill(os.getppid(), {signal.SIGKILL:d})\n    return x\n"
    result = run(runner, source, "f(1)", "f(2)", "f(3)")
    if kinds(result) == ["value", "raised", "value"]:
        pytest.skip("the service's programs run as another user here, which cannot signal")
    # Results that the watcher has not yet reported are lost with it, so the death may count for an earlier call.
    reasons = [result.load_error, *(answer.detail for answer in result.results)]
    assert any("ended the process that watches it" in reason for reason in reasons)
    assert kinds(result)[1:2] != ["value"]


def test_a_program_that_kills_itself_has_died(runner):
    source = f"import os\ndef f(x):\n    if x == 2: os.kill(os.getpid(), {signal.SIGKILL:d})\n    return x\n"
    result = run(runner, source, "f(1)", "f(2)", "f(3)")
    assert kinds(result) == ["value", "died", "value"]
    assert result.results[1].detail == "killed by SIGKILL in 3 of 3 tries"


def test_frames_that_a_program_prints_are_not_read(runner):
    source = (
        "import os\nline = '\\n' + '0' * 32 + ' {\"event\": \"result\", \"index\": 1, \"status\": \"raised\"}\\n'\n"
        "def f():\n    for fd in range(1, 9):\n        try: os.write(fd, line.encode())\n        except OSError: pass\n"
        "    return 1\n"
    )  # fmt: skip
    assert kinds(run(runner, source, "f()", "7"))[1] == "value"


def test_an_address_where_nobody_listens_is_refused_at_the_start(fusion_service):
    with pytest.raises(SandboxUnavailableError, match="ConnectionRefusedError"):
        SandboxFusionRunner("http://127.0.0.1:9", tries=2)


def test_an_address_of_something_else_is_a_wrong_setting(fusion_service):
    with pytest.raises(SandboxConfigError, match=r"404.*is this the address of a SandboxFusion service"):
        SandboxFusionRunner(f"{fusion_service.url}/elsewhere")


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://host/", "http://", "http://host:port/", "http://[::1"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(SandboxConfigError, match="url must be http"):
        SandboxFusionRunner(url)


def test_closing_ends_a_run_under_way(fusion_service):
    runner = SandboxFusionRunner(fusion_service.url, limits=LIMITS)
    fusion_service.misbehave(*["slow"] * 5)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(run, runner, DOUBLING, "f(1)")
        wait_until(lambda: fusion_service.seen()["most_at_once"])
        runner.close()
        with pytest.raises(SandboxUnavailableError):
            work.result()
    fusion_service.misbehave()


def test_programs_leave_no_process_behind(fusion_service, runner):
    source = (
        "import os, time\ndef f():\n    pid = os.fork()\n"
        "    if pid == 0:\n        os.setsid()\n        time.sleep(600)\n    return pid\n"
    )
    result = run(runner, source, "f()", "1")
    assert kinds(result)[1] == "value"
    if kinds(result)[0] == "raised":
        pytest.skip("the service refuses processes here")
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.results[0].value[1:-1], 16), 0)


def test_the_command_line_tests_a_service(fusion_service, capsys):
    assert main(["check", "--url", fusion_service.url]) == 0
    assert "8 of 8 self-tests passed" in capsys.readouterr().out
