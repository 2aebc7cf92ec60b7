"""Runs slices of the experiment until a given time, and writes what they have at each step.

Weights stay on the machine; rows, rollouts and logs go to the output folder.
"""

import contextlib
import io
import math
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from code_a1_recipe.errors import CodeA1Error, InputError
from code_a1_recipe.files import file_fingerprint, fingerprint, replacing
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.tools.evaluate.results import RESULTS as EVALUATED, Results as Evaluation
from studies.experiment.grid import Experiment
from studies.experiment.runs import run_experiment

from .plan import missing_arms, next_slice
from .questions import TRAIN, VAL
from .rows import DIGITS, Benchmark, Ended, Recorder, Started, append_rows, read_rows

RESULTS, COMMIT = "results.jsonl", "commit"
POLL_SECONDS = 2.0
PACKED_EVERY = 10
"""Steps from one copy of a run's rollouts to the next."""
LEAST_SECONDS = 240.0
"""A run is not started if less time is left: it would end before its first steps are worth anything."""
BENCHMARK_OPTIONS = {"code": ("--temperature", "0"), "test": ()}
"""Options of ``eval code`` (greedy) and ``eval test``. A run's model samples as in its validation otherwise."""
BENCHMARK_ENGINE = ("--engine", "gpu_memory_utilization=0.1")
"""The engine of a benchmark runs beside the next run, so it takes a small share of the card's memory."""


class CutError(CodeA1Error):
    """The time is over."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how long slices run."""

    experiment: Experiment
    questions: Path
    """Folder of ``questions.choose``, with benchmark files in ``code/`` and ``test/``."""
    output: Path
    """Folder for the results file, logs and packed rollouts. A results file that is there already is continued."""
    commit: str
    deadline: float
    """Time of ``time.monotonic`` at which the running run is cut."""

    @property
    def results(self) -> Path:
        return self.output / RESULTS

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()


def prepared(experiment: Experiment, work: Path, questions: Path, model: str | None) -> Experiment:
    """Add the questions and the model to an experiment's settings, and set the folder of its runs."""
    for name in (TRAIN, VAL):
        if not (questions / name).is_file():
            raise InputError(f"{questions / name} is missing; `python -m studies.card choose` writes it")
    overrides = [f"data.train_files=[{questions / TRAIN}]", f"data.val_files=[{questions / VAL}]"]
    if model:
        overrides += [f"policies.{policy}.model.path={model}" for policy in ("code", "test")]
    return replace(experiment, folder=work, overrides=(*experiment.overrides, *overrides))


def commit_of(questions: Path) -> str:
    """Return the commit that a file beside the questions names, or the checkout's own.

    A machine without network gets a copy of the tree without its history, so the packed folder carries the commit.
    """
    if (questions / COMMIT).is_file():
        return (questions / COMMIT).read_text(encoding="utf-8").strip()
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(
            f"this is no checkout, and {questions / COMMIT} is missing; `python -m studies.card pack` writes it"
        )
    return done.stdout.strip()


def pack_questions(questions: Path, target: Path) -> str:
    """Pack the questions, with the checkout's commit, for a machine without network. Returns a line about it."""
    with replacing(target) as packed, tarfile.open(packed, "w:xz") as archive:
        for path in sorted(filter(is_question_file, questions.rglob("*"))):
            archive.add(path, arcname=str(path.relative_to(questions)))
        commit = commit_of(questions).encode()
        note = tarfile.TarInfo(COMMIT)
        note.size = len(commit)
        archive.addfile(note, io.BytesIO(commit))
    return f"{target}: {target.stat().st_size / 2**20:.1f} MiB at commit {commit.decode()}"


def is_question_file(path: Path) -> bool:
    """Say whether runs or benchmarks read a file of the questions' folder."""
    return path.name in (TRAIN, VAL) or path.parent.name in BENCHMARK_OPTIONS


def run_slices(machine: Machine) -> str:
    """Run slices until the deadline. Returns a line about what was run.

    A run that fails is marked as cut; after two failures in a row the command ends, since the third would fail too.

    Raises:
        InputError: two runs in a row failed.
    """
    benchmarks: list[Benchmarks] = []
    done: list[str] = []
    failures = 0
    try:
        while machine.seconds_left > LEAST_SECONDS:
            runs = read_rows(machine.results)
            wanted = next_slice(runs, machine.experiment.seeds)
            if wanted is None:
                break
            arm = missing_arms(runs, wanted, machine.commit)[0]
            run = f"{arm}-seed{wanted.seed}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
            why = _run(machine, run, arm, wanted.seed, benchmarks)
            done.append(f"{arm} with seed {wanted.seed}: {why or 'complete'}")
            failures = failures + 1 if why else 0
            if failures == 2:
                raise InputError(f"two runs in a row did not end well: {'; '.join(done[-2:])}; see {machine.output}")
            if not why:
                benchmarks.append(Benchmarks(machine, run, machine.experiment.run_folder(arm, wanted.seed)))
        for waiting in benchmarks:
            waiting.finish()
    finally:
        for waiting in benchmarks:
            waiting.collect(cut=True)
    return "; ".join(done) or "no slice is left, or no time for one"


def _run(machine: Machine, run: str, arm: str, seed: int, benchmarks: list["Benchmarks"]) -> str:
    """Run one arm with one seed. Returns why it was cut, or an empty text."""
    folder = machine.experiment.run_folder(arm, seed)
    files = sorted(filter(is_question_file, machine.questions.rglob("*")))
    started = Started(
        run=run,
        seed=seed,
        arm=arm,
        time=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        commit=machine.commit,
        machine=machine_name(),
        questions=fingerprint(*map(file_fingerprint, files)),
        settings=tuple(machine.experiment.settings_of(arm)),
    )
    append_rows(machine.results, [started])
    begin, why = time.monotonic(), "interrupted"
    recorder = Recorder(run, folder)
    try:
        with _recorded(machine, recorder, benchmarks), _deadline(machine.seconds_left):
            run_experiment(machine.experiment, arms=[arm], seeds=[seed])
        why = ""
    except CutError as error:
        why = str(error)
    except CodeA1Error as error:
        why = f"failed: {str(error)[-300:]}"
    finally:
        minutes = round((time.monotonic() - begin) / 60, 2)
        append_rows(machine.results, [*recorder.new_rows(), Ended(run=run, why=why, minutes=minutes)])
        _pack(machine, run, folder)
    return why


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise CutError in the block after so many seconds."""

    def cut(*_: object) -> None:
        raise CutError("the time was over")

    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _recorded(machine: Machine, recorder: Recorder, benchmarks: list["Benchmarks"]) -> Iterator[None]:
    """Append rows while the block runs. Benchmarks that wait start after the run's first step.

    An engine that frees memory while another one measures it makes the other one fail, and servers measure at a start.
    """
    stop = threading.Event()

    def watch() -> None:
        num_steps = 0
        while not stop.wait(POLL_SECONDS):
            rows = list(recorder.new_rows())
            append_rows(machine.results, rows)
            if not rows:
                continue
            num_steps += 1
            if num_steps % PACKED_EVERY == 0:
                _pack(machine, recorder.run, recorder.folder)
            for waiting in benchmarks:
                waiting.start()
                waiting.collect()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _pack(machine: Machine, run: str, folder: Path) -> None:
    """Write the run's files without checkpoints into one archive of the output folder."""
    paths = RunFolder(folder)
    kept = [paths.metrics, paths.resolved_config, paths.mistake_book, folder / "command.txt", folder / "driver.log"]
    kept += [folder.with_suffix(".log"), *sorted(paths.rollouts.glob("*.jsonl"))]
    with (
        replacing(machine.output / f"{run}.tar.xz") as target,
        tarfile.open(target, "w:xz", preset=1) as archive,
    ):
        for path in kept:
            if path.is_file():
                archive.add(path, arcname=f"{run}/{path.name}")


def machine_name() -> str:
    """Return the name of the GPU, or of the processor without one."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"{os.cpu_count()} cores, {platform.machine()}"
    return done.stdout.strip().replace("\n", ", ") or "unknown"


class Benchmarks:
    """The public benchmarks of one finished run, which run in the background. Their figures become rows."""

    def __init__(self, machine: Machine, run: str, folder: Path) -> None:
        self.machine, self.run, self.folder = machine, run, folder
        self.files = [*sorted((machine.questions / "code").glob("*")), *sorted((machine.questions / "test").glob("*"))]
        self.process: subprocess.Popen[bytes] | None = None
        self.is_over = False

    def _output(self, file: Path) -> Path:
        return self.folder.with_name(f"{self.folder.name}-benchmarks") / file.parent.name / file.stem

    def start(self) -> None:
        """Start all benchmarks, one after another. Nothing happens if they were started before."""
        if self.process is not None:
            return
        commands = []
        for file in self.files:
            kind = file.parent.name
            words = [sys.executable, "-m", "code_a1_recipe", "eval", kind, str(file), "--model", str(self.folder)]
            words += ["--output", str(self._output(file)), *BENCHMARK_OPTIONS[kind], *BENCHMARK_ENGINE]
            commands.append(shlex.join(words))
        with (self.machine.output / f"{self.run}-benchmarks.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", "\n".join(commands)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def collect(self, *, cut: bool = False) -> None:
        """When the benchmarks are over, write their rows and remove the run's weights, which fill the disk.

        Args:
            cut: end benchmarks that still run.
        """
        if self.process is None or self.is_over or (self.process.poll() is None and not cut):
            return
        self.is_over = True
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait()
        finished = [file for file in self.files if (self._output(file) / EVALUATED).is_file()]
        rows = [
            Benchmark(
                run=self.run,
                name=f"{file.parent.name} {file.stem}",
                figures=_figures(Evaluation.load(self._output(file))),
            )
            for file in finished
        ]
        append_rows(self.machine.results, rows)
        shutil.rmtree(RunFolder(self.folder).checkpoints, ignore_errors=True)

    def finish(self) -> None:
        """Start the benchmarks if need be, and wait for them until the deadline."""
        self.start()
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, self.machine.seconds_left))
        self.collect(cut=True)


def _figures(results: Evaluation) -> dict[str, float]:
    """Return "metric source" -> value."""
    figures = {}
    for metric in results.metrics:
        for source, questions in results.groups:
            value = results.estimate(metric, results.questions(metric, questions)).value
            if math.isfinite(value):
                figures[f"{metric} {source}"] = round(value, DIGITS)
    return figures
