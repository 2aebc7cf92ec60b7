"""Short runs on one NVIDIA card, and what was measured of them for `gpu_report.md`.

CODE_A1_GPU_REHEARSAL=1 runs the same tests without a card: preset `cpu` in place of the card's, and small models.
The report is written after each run; CODE_A1_GPU_MINUTES says until when another one may begin (6 on a card).
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))
from e2e.conftest import start
from e2e.processes import command_of

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.plan.check import plan_of
from code_a1_recipe.training.plan.machine import Machine, why_no_gpu
from code_a1_recipe.training.plan.needs import Place
from code_a1_recipe.training.plan.sizes import with_sizes

from .card import GIB, MIB, Card, read_card, watched_peak
from .report import Report
from .runs import IN_BFLOAT16, RUNS, SLEEPS_FILE, Measured, facts_of, rows_of, shared_overrides

REHEARSAL = os.environ.get("CODE_A1_GPU_REHEARSAL") == "1"
_ROOM_FOR_1_5B = 39 * GIB
_MARKER = "CODE_A1_GPU_TEST"
_LEAVE_SECONDS = 30
_MINUTES = float(os.environ.get("CODE_A1_GPU_MINUTES", "inf" if REHEARSAL else "6"))
_BEGAN = time.monotonic()
_CUT_AFTER_STEP_1, _WATCHED = ("e2e/drivers/cut_weight_sync.py", "1"), ("gpu/drivers/watched_run.py",)
_REPORT = pytest.StashKey[Report]()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the runs take place."""

    card: Card | None
    """None in a rehearsal."""
    num_devices: int
    overrides: tuple[str, ...]
    folder: Path

    @property
    def preset(self) -> str:
        return "qwen2.5-coder-1.5b-1gpu" if self.card else "cpu"

    @property
    def max_mean_diff(self) -> float:
        """Above what rounding does (about 0.003 in bfloat16, 1e-7 in float32), below what other weights do (0.03)."""
        return IN_BFLOAT16 if self.card else 1e-5


@pytest.fixture(scope="session")
def stage(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    card = None if REHEARSAL else read_card()
    if card is None and not REHEARSAL:
        pytest.skip("no NVIDIA GPU here (CODE_A1_GPU_REHEARSAL=1 rehearses these tests on a CPU)")
    import torch

    from .policies import SHAPES, make_world

    if card and not torch.cuda.is_available():
        pytest.skip(f"torch sees no NVIDIA GPU here: {why_no_gpu()}")
    shape = "small" if card is None else f"Qwen2.5-Coder-{'1.5B' if card.total > _ROOM_FOR_1_5B else '0.5B'}"
    folder = tmp_path_factory.mktemp("gpu")
    world = make_world(folder, SHAPES[shape], device="cuda" if card else "cpu")
    pytestconfig.stash[_REPORT] = Report(card=card, shape=shape)
    num_devices = torch.cuda.device_count() if card else 2
    yield Stage(card=card, num_devices=num_devices, overrides=tuple(shared_overrides(world)), folder=folder)
    shutil.rmtree(folder)  # two models and a checkpoint: tens of gigabytes


@pytest.fixture(scope="session")
def measured_run(stage: Stage, repository: Path, pytestconfig: pytest.Config) -> Callable[[str], Measured]:
    """``measured_run(name)``: one of ``RUNS``, made when it is first asked for."""
    finished = pytestconfig.stash[_REPORT].runs
    too_slow: dict[str, str] = {}

    def run(name: str) -> Measured:
        if name in finished:
            return finished[name]
        if name in too_slow:
            pytest.fail(too_slow[name])
        if name == "separate" and stage.num_devices < 2:
            pytest.skip("layout=separate needs two cards, and one is here")
        if name == "resumed":
            run("colocated")
        longest = max((one.seconds for one in finished.values()), default=0.0)
        if time.monotonic() - _BEGAN + longest > 60 * _MINUTES:
            pytest.skip(f"{name} would end after CODE_A1_GPU_MINUTES={_MINUTES:g}; name more for all runs")
        folder = stage.folder / {"resumed": "colocated"}.get(name, name)
        words = [f"run_dir={folder}", *stage.overrides, *RUNS[name]]
        config = with_sizes(read_config(stage.preset, words))
        machine = Machine.here(config.trainer.default_local_dir, device=config.trainer.device)
        plan = plan_of(config, machine)
        # The disk's part of the plan counts one checkpoint more than is ever written here.
        if refused := [one for one in plan.problems() if not one.startswith(Place.DISK)]:
            pytest.skip(f"no room for it here: {refused[0]}")
        driver, *arguments = _CUT_AFTER_STEP_1 if name == "cut" else _WATCHED
        command = [sys.executable, str(repository / "tests" / driver), *arguments, stage.preset, *words]
        before, started = stage.card and read_card(), time.monotonic()
        os.environ[_MARKER] = f"{name}-{os.getpid()}"  # all its processes inherit it
        try:
            with watched_peak(stage.card) as peak:
                done = start(command, folder, repository)
        except subprocess.TimeoutExpired as error:
            output = folder.with_suffix(".log").read_text()[-4000:]
            too_slow[name] = f"{name} did not end within {error.timeout:.0f} s; the end of its output:\n{output}"
            pytest.fail(too_slow[name])
        finally:
            marker = f"{_MARKER}={os.environ.pop(_MARKER)}"
        rows = rows_of(folder / "metrics.jsonl")
        finished[name] = Measured(
            name=name,
            run=done,
            config=config,
            plan=plan,
            seconds=time.monotonic() - started,
            peak=peak.used,
            processes_left=_what_stays(lambda: [command_of(pid) for pid in _marked(marker)]),
            memory_left=_what_stays(lambda: _memory_beyond(before)),
            rows=rows,
            sleeps=rows_of(folder / SLEEPS_FILE),
            facts=facts_of(done, rows),
        )
        _report_file(pytestconfig).write_text(pytestconfig.stash[_REPORT].text({}), encoding="utf-8")
        return finished[name]

    return run


def _what_stays(look: Callable[[], object]) -> object:
    """What is still seen when the time to leave is over; what is empty or 0 is gone."""
    end = time.monotonic() + _LEAVE_SECONDS
    while (seen := look()) and time.monotonic() < end:
        time.sleep(0.5)
    return seen


def _marked(marker: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it ended, or is somebody else's
            continue
    return found


def _memory_beyond(before: Card | None) -> int:
    now = before and read_card()
    return max(0, now.used - before.used - 64 * MIB) if now else 0


def _report_file(config: pytest.Config) -> Path:
    return config.rootpath / "gpu_report.md"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the report, and print it, where a run took place."""
    report = config.stash.get(_REPORT, None)
    if report is not None and report.runs:
        path = _report_file(config)
        path.write_text(report.text(terminalreporter.stats), encoding="utf-8")
        terminalreporter.section(f"written to {path}")
        terminalreporter.write_line(path.read_text(encoding="utf-8"))
