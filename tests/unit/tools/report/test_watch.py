"""``code-a1 watch``: what it shows, and the terminal that it leaves as it was."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

import pytest
from rich.console import Console

from code_a1_recipe.cli.app import main
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.rollout_record import encode_records
from code_a1_recipe.tools.report.watch import picture, sparkline

from ...conftest import case, record, suite, write_run


def drawn(folder, total=None, width=120):
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(picture(folder, total))
    return captured.get()


def contents(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_has_ended_is_shown_once_and_left_alone(run_folder, capsys):
    before = contents(run_folder)
    assert main(["watch", str(run_folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("run  step 2  stopped\n")
    assert "\x1b" not in text
    assert re.search(r"code/reward +▁█ +0\.7 +\+0\.200\n", text)
    assert re.search(r"\n val/code/pass@1 +▁█ +0\.8333", text)
    assert "Step 2, 2 programs: undetected 1, solved 1" in text
    assert contents(run_folder) == before


def test_a_program_that_a_test_broke_is_shown(run_folder):
    caught = record(0, step=2, solved=False, suites=[suite(case("wrong_value", call="f(3)", answer="4"))])
    (run_folder / "rollouts" / "train_000002.jsonl").write_bytes(encode_records([caught]))
    text = drawn(run_folder)
    assert "1 programs: detected 1" in text
    assert "x assert f(3) == 4  correct; broke the program: wrong_value" in text


def test_a_run_that_goes_on_is_awaited(tmp_path, capsys):
    folder = write_run(tmp_path / "run", validation={})
    (folder / "metrics.jsonl").unlink()
    with RunFolder(folder).lock():
        assert main(["watch", str(folder), "--once"]) == 0
        assert re.match(r"run  step 0  running *\nwaiting for the first step", capsys.readouterr().out)
    assert main(["watch", str(folder), "--once"]) == 2
    assert "has no step yet" in capsys.readouterr().err


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert main(["watch", str(tmp_path / "nothing")]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_the_state_and_the_end_that_is_expected(run_folder):
    assert "step 2 of 2  finished\n" in drawn(run_folder, total=2)
    assert "step 2 of 3  stopped\n" in drawn(run_folder, total=3)
    with RunFolder(run_folder).lock():
        assert ", about 0:50:00 left\n" in drawn(run_folder, total=1002)  # steps took 2 and 4 seconds


def test_a_curve_fits_its_columns():
    assert sparkline([2.0]) == "▁"
    assert sparkline([0.0, 7.0]) == "▁█"
    assert len(sparkline([float(value) for value in range(1000)])) == 40


def test_what_models_wrote_is_neither_obeyed_nor_read_as_markup(run_folder):
    evil = "def f(x):\n    '\x1b]0;owned\x07\x1b[2J\u202e[bold red on blue][/link][@click=x]'"
    broken = [suite(case("died"))]
    program = record(0, step=2, source=evil, solved=False, question="[blink]q\x1b[2J", suites=broken)
    (run_folder / "rollouts" / "train_000002.jsonl").write_bytes(encode_records([program]))
    text = drawn(run_folder)
    assert r"[blink]q\x1b[2J" in text
    assert "[bold red on blue][/link][@click=x]" in text
    assert not set(text) & set("\x1b\x07\u202e")


@pytest.mark.parametrize("width", [20, 40, 300])
def test_it_fits_the_terminal(run_folder, width):
    assert all(len(line.rstrip()) <= width for line in drawn(run_folder, width=width).splitlines())


class Terminal:
    """``code-a1 watch`` in a terminal of its own."""

    def __init__(self, folder):
        self._master, self._slave = pty.openpty()
        termios.tcsetwinsize(self._slave, (60, 120))
        self.before = termios.tcgetattr(self._slave)
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), self._slave)
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-m", "code_a1_recipe", "watch", str(folder)]
        self.process = subprocess.Popen(
            command, **ends, env=environment | {"TERM": "xterm-256color"}, start_new_session=True
        )
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def wait_for(self, words):
        until = time.monotonic() + 300
        while words not in self.text and time.monotonic() < until:
            if select.select([self._master], [], [], 1)[0]:
                self.text += os.read(self._master, 65536).decode(errors="replace")
        assert words in self.text

    @property
    def is_as_before(self):
        leaves = self.text.rfind("\x1b[?1049l") > self.text.rfind("\x1b[?1049h") >= 0
        return leaves and termios.tcgetattr(self._slave) == self.before


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (None, 0)])
def test_a_growing_run_is_followed_and_the_terminal_left_as_it_was(run_folder, sent, status):
    folder = RunFolder(run_folder)
    with Terminal(run_folder) as terminal:
        with folder.lock():
            terminal.wait_for("step 2")
            folder.append_metrics(3, {"code/reward": 0.25})
            terminal.wait_for("step 3")
            if sent is not None:
                terminal.process.send_signal(sent)
                terminal.wait_for("\x1b[?1049l")
        terminal.wait_for("\x1b[?1049l" if sent else "stopped")
        assert terminal.process.wait(60) == status
        assert terminal.is_as_before
