"""``code-a1 watch``: its pages, its keys, and the terminal that it leaves as it was."""

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

from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.analysis.watch import Screen
from code_a1_recipe.analysis.watch_pages import PAGES, Curve, View
from code_a1_recipe.cli.app import main
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.live_run import LiveRun
from code_a1_recipe.runs.rollout_record import encode_records

from ..conftest import QUESTIONS, case, loaded, record, suite, write_run

UP, DOWN, RIGHT, LEFT = (f"\x1b[{letter}" for letter in "ABCD")


def drawn(*renderables, width=100, height=24):
    console = Console(width=width, height=height, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(*renderables)
    return captured.get()


def page(live, name, **view):
    live.refresh()
    return drawn(PAGES[name](live, View(**view)), width=160)


def contents(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def screen(run_folder):
    """The screen after some keys, at a size, as lines."""
    live = LiveRun(run_folder)
    live.read_questions()
    shown = Screen(live)

    def press(*keys, width=100, height=24):
        for key in keys:
            assert shown.press(key)
        console = Console(width=width, height=height, color_system=None, force_terminal=True, legacy_windows=False)
        shown.refresh(width)
        return [
            "".join(segment.text for segment in line)
            for line in console.render_lines(shown, console.options.update(height=height), pad=False)
        ]

    return press


# ------------------------------ pages ------------------------------


def test_a_run_is_shown_once_where_there_is_no_terminal(run_folder, capsys):
    before = contents(run_folder)
    assert main(["watch", str(run_folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("run  step 2  ended  0:00:0")
    assert "\x1b" not in text
    assert re.search(r"code/reward +\S*[▁█]+ +0\.700 +\+0\.200 +0\.500 +0\.700\n", text)
    assert re.search(r"Held-out questions.*\n code/pass@1 +▁+ +█+ +0\.833", text)  # blank at the step between
    assert contents(run_folder) == before


def test_a_run_that_goes_on_is_awaited(tmp_path, capsys):
    folder = write_run(tmp_path / "run", validation={})
    (folder / "metrics.jsonl").unlink()
    with RunFolder(folder).lock():
        assert main(["watch", str(folder), "--once"]) == 0
        assert re.match(r"run  step 0  running .*\nwaiting for the first step", capsys.readouterr().out)
        live = LiveRun(folder)
        assert "waiting" in page(live, "episodes")
        assert "waiting" in page(live, "rates, time")
    assert main(["watch", str(folder), "--once"]) == 2
    assert "has no step yet" in capsys.readouterr().err


def test_what_is_no_run_is_refused(run_folder, tmp_path, capsys):
    assert main(["watch", str(tmp_path / "nothing")]) == 2
    assert "holds no run" in capsys.readouterr().err
    (tmp_path / "experiment" / "arm").mkdir(parents=True)
    run_folder.rename(tmp_path / "experiment" / "arm" / "seed0")
    assert main(["watch", str(tmp_path / "experiment")]) == 2
    assert "name one of them, for instance" in capsys.readouterr().err


def test_a_curve_fits_its_columns():
    assert drawn(Curve([0.0, 1.0]), width=4) == "▁▁██\n"
    assert drawn(Curve([0.0, None, 7.0]), width=3) == "▁ █\n"
    assert drawn(Curve([2.0]), width=2) == "▁▁\n"
    assert drawn(Curve([float(value) for value in range(1000)]), width=8) == "▁▂▃▄▅▆▇█\n"


def test_what_broke_what_is_counted_by_question(run_folder):
    broken, passed = suite(case("wrong_value")), suite(case())
    records = [
        record(0, step=2, suites=[broken]),
        record(0, step=2, candidate=1, suites=[passed], verdict=loaded(case("died"))),
        record(0, step=2, candidate=2, suites=[passed]),
        record(1, step=2, outage="gone", verdict=None),
    ]
    (run_folder / "rollouts" / "train_000002.jsonl").write_bytes(encode_records(records))
    book = MistakeBook()
    book.update("q", BookUpdate(failed=[FailedCase(call="f([1])", answer="2")] * 3, passed_new=["f([1])"]))
    book.save(run_folder / "mistake_book.json")
    text = page(LiveRun(run_folder), "what broke what")
    assert re.search(rf"{QUESTIONS[0].id} +3 +1 +1 +1 *\n{QUESTIONS[1].id} +1 +1\n", text)
    assert re.search(r"f\(\[1\]\) == 2 +q +3 of 4 +3", text)


def test_what_models_wrote_is_neither_obeyed_nor_read_as_markup(run_folder):
    evil = "def f(x):\n    '\x1b]0;owned\x07\x1b[2J\u202e[bold red on blue][/link][@click=x]'"
    one = record(0, step=2, source=evil, solved=False, question="[blink]q\x1b[2J", suites=[suite(case("died"))])
    (run_folder / "rollouts" / "train_000002.jsonl").write_bytes(encode_records([one]))
    for name in ("episodes", "what broke what"):
        text = page(LiveRun(run_folder), name)
        assert r"[blink]q\x1b[2J" in text
        assert not set(text) & set("\x1b\x07\u202e")
    assert "[bold red on blue][/link][@click=x]" in page(LiveRun(run_folder), "episodes")


def test_the_end_is_expected_by_the_pace_of_the_last_steps(run_folder):
    live = LiveRun(run_folder)
    live.total_steps = 1002
    with RunFolder(run_folder).lock():
        text = page(live, "rates, time")
    in_50_minutes = time.strftime("%Y-%m-%d %H:%M", time.localtime(live.updated + 3000))
    assert text.startswith(f"0 programs lost to outages in all, expected end {in_50_minutes}\n")
    assert "expected" not in page(live, "rates, time")


# ------------------------------ keys ------------------------------


def test_keys_turn_the_pages(screen):
    assert "Code LLM" in screen()[2]
    assert screen("2")[1].startswith("episode 1 of 2, step 2, question")
    assert screen("n")[1].startswith("episode 2 of 2")
    assert screen("n", "n")[1].startswith("episode 2 of 2")
    assert screen("p", "p", "p")[1].startswith("episode 1 of 2")
    assert screen(RIGHT)[1].startswith("Step 2: programs")
    assert screen(LEFT, LEFT, LEFT)[1].startswith("0 programs lost")
    assert screen("?")[1].startswith("1 2 3 4, left, right")
    assert screen("?")[1].startswith("0 programs lost")
    assert screen("x", "\x1b[H", "é")[1].startswith("0 programs lost")


def test_lines_that_find_no_room_are_scrolled_to(screen):
    first = screen("2", height=10)
    assert len(first) == 10
    assert re.search(r"line 1/\d+$", first[-1].rstrip())
    assert screen(DOWN, DOWN, height=10)[1:-3] == first[3:-1]
    assert screen(UP, UP, UP, height=10) == first
    assert screen("\x1b[6~", height=10)[1:] != first[1:]
    assert screen("\x1b[5~", height=10) == first
    end = screen(*[DOWN] * 500, height=10)
    number, total = re.search(r"line (\d+)/(\d+)", end[-1]).groups()
    assert int(total) - int(number) == 10 - 3  # header, keys, and the first of those shown
    assert screen(height=60)[1] == first[1]


@pytest.mark.parametrize("number", "1234?")
@pytest.mark.parametrize(("width", "height"), [(40, 10), (20, 4), (5, 2), (300, 90)])
def test_every_page_fits_the_terminal(screen, number, width, height):
    lines = screen(number, width=width, height=height)
    assert all(len(line.rstrip()) <= width for line in lines)
    assert len(lines) == height or height < 10


def test_episodes_stay_while_they_are_read(screen, run_folder):
    assert "step 2" in screen("2", "n")[1]
    path = run_folder / "rollouts" / "train_000003.jsonl"
    path.write_bytes(encode_records([record(0, step=3)]))
    assert "step 2" in screen()[1]
    assert "episode 1 of 1, step 3" in screen("2")[1]


def test_what_cannot_be_read_is_named_until_it_can(screen, run_folder):
    path = run_folder / "metrics.jsonl"
    good = path.read_text()
    path.write_text(good + "?\n")
    assert "line4isnorowofmetrics" in "".join("".join(screen()).split())  # wrapped anywhere
    path.write_text(good + '{"step": 3}\n')
    assert "step 3" in screen()[0]


# ------------------------------ the terminal ------------------------------

BROKEN = """
import sys
from code_a1_recipe.analysis import watch_pages
from code_a1_recipe.cli.app import main
def broken(live, view):
    raise RuntimeError("a fault")
watch_pages.PAGES["episodes"] = broken
sys.exit(main(["watch", sys.argv[1]]))
"""


class Terminal:
    """``code-a1 watch`` in a terminal of its own."""

    def __init__(self, folder, *, width=100, height=30):
        self._master, self._slave = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self._slave)
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), self._slave)
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-c", BROKEN, str(folder)]
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

    def resize(self, width, height):
        termios.tcsetwinsize(self._slave, (height, width))

    def press(self, keys):
        os.write(self._master, keys.encode())

    def wait_for(self, words):
        """Everything that was shown since the last call until the words came."""
        shown, until = "", time.monotonic() + 600
        while words not in shown and time.monotonic() < until:
            if select.select([self._master], [], [], 1)[0]:
                self.text += (new := os.read(self._master, 65536).decode(errors="replace"))
                shown += new
        assert words in shown
        return shown

    @property
    def is_as_before(self):
        while select.select([self._master], [], [], 0)[0]:
            self.text += os.read(self._master, 65536).decode(errors="replace")
        leaves = self.text.rfind("\x1b[?1049l") > self.text.rfind("\x1b[?1049h") >= 0
        shows_cursor = self.text.rfind("\x1b[?25h") > self.text.rfind("\x1b[?25l") >= 0
        return leaves and shows_cursor and termios.tcgetattr(self._slave) == self.before


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda terminal: terminal.press("q"), 0),
        (lambda terminal: terminal.process.send_signal(signal.SIGINT), 130),
        (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 130),
        (lambda terminal: terminal.press("2"), 1),  # a fault of the program
    ],
)
def test_the_terminal_is_left_as_it_was(run_folder, end, status):
    with Terminal(run_folder) as terminal:
        terminal.wait_for("q quit")
        assert termios.tcgetattr(terminal._slave)[3] & (termios.ICANON | termios.ECHO) == 0
        end(terminal)
        terminal.wait_for("\x1b[?1049l")
        assert terminal.process.wait(600) == status
        assert terminal.is_as_before


def test_keys_and_sizes_reach_the_screen_of_a_growing_run(run_folder):
    before = contents(run_folder)
    with Terminal(run_folder, width=40, height=10) as terminal:
        terminal.wait_for("q quit")
        terminal.press("3")
        terminal.wait_for("Step 2: programs")
        terminal.resize(120, 30)
        terminal.wait_for("3 what broke what")
        RunFolder(run_folder).append_metrics(3, {"code/reward": 0.25})
        terminal.press("1")
        terminal.wait_for("0.250")
        terminal.press("q")
        assert terminal.process.wait(600) == 0
    after = contents(run_folder)
    assert after.keys() == before.keys()
    assert [path.name for path in before if before[path] != after[path]] == ["metrics.jsonl"]
