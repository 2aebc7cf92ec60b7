"""``code-a1 report RUN --serve``: one page for this machine, made in memory."""

import http.client
import signal
import subprocess
import sys
import threading

import pytest

from code_a1_recipe.analysis.report_server import ReportServer
from code_a1_recipe.cli.app import main
from code_a1_recipe.runs.folder import RunFolder

from ..conftest import write_run


@pytest.fixture
def serving(run_folder):
    with ReportServer(run_folder, port=0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path="/", method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=600)
    connection.request(method, path, headers={"Host": host or f"localhost:{server.server_port}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def contents(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_the_page_is_served_and_nothing_is_written(serving, run_folder):
    before = contents(run_folder)
    status, page, headers = ask(serving)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "2 steps, " in page
    assert page.count("data:image/png;base64,") == 4
    assert "<script" not in page  # the run has ended
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert contents(run_folder) == before


def test_the_page_of_a_run_that_goes_on_follows_it(serving, run_folder, monkeypatch):
    folder = RunFolder(run_folder)
    with folder.lock():
        _, first, headers = ask(serving)
        _, version, _ = ask(serving, "/version")
        assert f'=== "{version}"' in first
        nonce = headers["Content-Security-Policy"].rpartition("nonce-")[2].rstrip("'")
        assert f'<script nonce="{nonce}">' in first
        assert ask(serving)[1] == first
        folder.append_metrics(3, {"code/reward": 0.9})
        assert ask(serving, "/version")[1] != version
        assert "3 steps, " in ask(serving)[1]
    _, last, _ = ask(serving)
    assert "3 steps, " in last
    assert "<script" not in last


def test_a_page_is_made_once_for_what_a_run_has_written(serving, monkeypatch):
    made = []
    monkeypatch.setattr("code_a1_recipe.analysis.report_server.run_page", lambda run: made.append(run) or b"</html>")
    assert ask(serving)[1] == ask(serving)[1] == "</html>"
    assert len(made) == 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:80", "127.0.0.1@evil:1"])
def test_another_host_is_refused(serving, host):
    status, page, _ = ask(serving, host=host)
    assert status == 421
    assert "Code LLM" not in page


@pytest.mark.parametrize("path", ["/metrics.jsonl", "/rollouts/", "/../run/metrics.jsonl", "/?x", "/version/"])
def test_nothing_else_is_served(serving, path):
    assert ask(serving, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_other_methods_are_refused(serving, method):
    assert ask(serving, method=method)[0] == 501


def test_what_cannot_be_read_is_named_on_the_page(serving, run_folder):
    (run_folder / "metrics.jsonl").write_text("<b>\n")
    _, page, _ = ask(serving)
    assert "line 1 is not JSON" in page
    assert "<b>" not in page


def test_a_page_waits_for_the_first_step(tmp_path):
    folder = write_run(tmp_path / "run", validation={})
    (folder / "metrics.jsonl").unlink()
    with RunFolder(folder).lock(), ReportServer(folder, port=0) as server:
        page = server.page().decode()
    assert "has no step yet" in page
    assert "<script" in page


def test_what_models_wrote_stays_text(serving, run_folder):
    path = run_folder / "rollouts" / "train_000002.jsonl"
    path.write_bytes(path.read_bytes().replace(b"def f(x): pass", b"</pre></html><script>alert(1)</script>"))
    _, page, _ = ask(serving)
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_a_folder_without_a_run_and_a_port_that_is_taken_are_refused(serving, run_folder, tmp_path, capsys):
    assert main(["report", str(tmp_path / "nothing"), "--serve"]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert main(["report", str(run_folder), "--serve", "--port", str(serving.server_port)]) == 2
    assert "0 takes any free one" in capsys.readouterr().err


def test_ctrl_c_ends_the_command_without_an_error(run_folder):
    command = [sys.executable, "-m", "code_a1_recipe", "report", str(run_folder), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("report: http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert (process.wait(600), process.stderr.read()) == (0, "")
