"""Short runs on one NVIDIA card, and what was measured of them for `gpu_report.md`.

CODE_A1_GPU_REHEARSAL=1 runs the same tests without a card: preset `cpu` in place of the card's, and small models.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))
from e2e.conftest import start
from e2e.processes import command_of

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.plan.check import plan_of, problems
from code_a1_recipe.training.plan.machine import Machine, why_no_gpu
from code_a1_recipe.training.plan.needs import Place
from code_a1_recipe.training.plan.sizes import with_sizes

from .card import GIB, MIB, Card, read_card, watched_peak
from .report import Measured, Report

REHEARSAL = os.environ.get("CODE_A1_GPU_REHEARSAL") == "1"
_MARKER = "CODE_A1_GPU_TEST"
_LEAVE_SECONDS = 30
_ROOM_FOR_1_5B = 39 * GIB
_REPORT = pytest.StashKey[Report]()
_EAGER = "actor_rollout_ref.rollout.enforce_eager=true"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the runs take place."""

    card: Card | None
    """None in a rehearsal."""
    num_devices: int
    preset: str
    overrides: tuple[str, ...]
    folder: Path
    report: Report

    @property
    def device(self) -> str:
        return "cuda" if self.card else "cpu"


@pytest.fixture(scope="session")
def stage(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    card = None if REHEARSAL else read_card()
    if card is None and not REHEARSAL:
        pytest.skip("no NVIDIA GPU here (CODE_A1_GPU_REHEARSAL=1 rehearses these tests on a CPU)")
    import torch

    from .policies import SHAPES, make_world

    if card and not torch.cuda.is_available():
        pytest.skip(f"torch sees no NVIDIA GPU here: {why_no_gpu()}")
    folder = tmp_path_factory.mktemp("gpu")
    shape = "small" if card is None else "Qwen2.5-Coder-1.5B" if card.total > _ROOM_FOR_1_5B else "Qwen2.5-Coder-0.5B"
    world = make_world(folder, SHAPES[shape], device="cuda" if card else "cpu")
    report = pytestconfig.stash[_REPORT] = Report(card=card, shape=shape)
    yield Stage(
        card=card,
        num_devices=torch.cuda.device_count() if card else 2,
        preset="qwen2.5-coder-1.5b-1gpu" if card else "cpu",
        folder=folder,
        report=report,
        overrides=(
            "micro=null",
            "prompts.name=micro",
            f"policies.code.model.path={world.code_model}",
            f"policies.test.model.path={world.test_model}",
            f"data.train_files={world.questions}",
            f"data.val_files={world.questions}",
            "data.train_batch_size=8",
            "data.max_prompt_length=256",
            "data.max_response_length=8",
            "policies.test.rollout.prompt_length=1024",
            "actor_rollout_ref.rollout.max_model_len=null",
            "policies.code.actor.ppo_mini_batch_size=8",
            "policies.test.actor.ppo_mini_batch_size=8",
            "policies.code.actor.optim.lr=1e-6",
            "policies.test.actor.optim.lr=1e-6",
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096",
            "episode.num_candidates=4",
            "episode.num_suites=4",
            "episode.cases_per_suite=8",
            "episode.num_workers=1",
            "sandbox.num_workers=2",
            "check_resources=false",  # what the plan says is looked at below
            "trainer.test_freq=-1",
            "trainer.val_before_train=false",
            "ray_kwargs.ray_init.num_cpus=64",
        ),
    )
    shutil.rmtree(folder)  # two checkpoints and two models: tens of gigabytes


@pytest.fixture(scope="session")
def measured_run(stage: Stage, repository: Path) -> Callable[..., Measured]:
    """``measured_run(name, *overrides)``: a run, what it took of the card, and what it left behind."""

    def run(name: str, *overrides: str, driver: str = "gpu/drivers/watched_run.py", folder: str = "") -> Measured:
        place = stage.folder / (folder or name)
        words = (f"run_dir={place}", *stage.overrides, *overrides)
        config = with_sizes(read_config(stage.preset, words))
        machine = Machine.here(config.trainer.default_local_dir, device=stage.device)
        plan = plan_of(config, machine)
        # The disk's part of the plan counts one checkpoint more than is ever written here.
        if refused := [one for one in problems(config, machine, plan) if not one.startswith(Place.DISK)]:
            stage.report.notes.append(f"{name}: not run, it has no room here: {refused[0]}")
            pytest.skip(f"this machine has no room for it: {refused[0]}")
        before, started = read_card() if stage.card else None, time.monotonic()
        os.environ[_MARKER] = f"{name}-{os.getpid()}"
        try:
            with watched_peak(stage.card) as peak:
                script = str(repository / "tests" / driver)
                done = start([sys.executable, script, stage.preset, *words], place, repository)
        finally:
            marker = f"{_MARKER}={os.environ.pop(_MARKER)}".encode()
        seconds = time.monotonic() - started
        measured = Measured(
            name=name,
            run=done,
            config=config,
            plan=plan,
            seconds=seconds,
            peak=peak.used,
            processes_left=_processes_left(marker),
            memory_left=_memory_left(before),
        )
        stage.report.runs.append(measured)
        return measured

    return run


def _processes_left(marker: bytes) -> list[str]:
    """Command lines of processes that inherited the run's mark and do not end."""
    end = time.monotonic() + _LEAVE_SECONDS
    while True:
        left = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and marker in (entry / "environ").read_bytes().split(b"\0"):
                    left.append(command_of(int(entry.name)))
            except OSError:  # it ended, or is somebody else's
                continue
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.5)


def _memory_left(before: Card | None) -> int:
    """Bytes of the card that are in use beyond those before the run, once that no longer changes."""
    end = time.monotonic() + _LEAVE_SECONDS
    while before is not None:
        now = read_card()
        left = now.used - before.used if now else 0
        if left < 64 * MIB or time.monotonic() > end:
            return max(0, left)
        time.sleep(0.5)
    return 0


@pytest.fixture(scope="session")
def colocated(measured_run: Callable[..., Measured]) -> Measured:
    """One step with vLLM's graphs as a user has them, and its checkpoint."""
    return measured_run("colocated", "trainer.total_training_steps=1", "trainer.save_freq=1")


@pytest.fixture(scope="session")
def resumed(colocated: Measured, measured_run: Callable[..., Measured]) -> Measured:
    """From that checkpoint to step 3."""
    if colocated.run.returncode:
        pytest.skip("there is no checkpoint to resume from")
    words = ("trainer.total_training_steps=3", "trainer.save_freq=-1")
    return measured_run("resumed", *words, folder="colocated")


@pytest.fixture(scope="session")
def lora(measured_run: Callable[..., Measured]) -> Measured:
    """The Test LLM trains an adapter, the Code LLM all weights."""
    words = (f"policies.test.model.{key}" for key in ("lora_rank=16", "lora_alpha=16", "target_modules=all-linear"))
    return measured_run("lora", *words, "trainer.total_training_steps=2", "trainer.save_freq=-1", _EAGER)


@pytest.fixture(scope="session")
def separate(stage: Stage, measured_run: Callable[..., Measured]) -> Measured:
    """Each policy on a device of its own."""
    if stage.num_devices < 2:
        pytest.skip("layout=separate needs two cards, and one is here")
    words = ("layout=separate", "pools.code.n_gpus_per_node=1", "pools.test.n_gpus_per_node=1")
    return measured_run("separate", *words, "trainer.total_training_steps=2", "trainer.save_freq=-1", _EAGER)


def _deterministic(measured_run: Callable[..., Measured], name: str) -> Measured:
    words = ("deterministic=true", "trainer.total_training_steps=2", "trainer.save_freq=-1")
    return measured_run(name, *words, _EAGER)


@pytest.fixture(scope="session")
def deterministic(measured_run: Callable[..., Measured]) -> Measured:
    return _deterministic(measured_run, "deterministic")


@pytest.fixture(scope="session")
def repeated(measured_run: Callable[..., Measured]) -> Measured:
    """The same run as ``deterministic`` once more."""
    return _deterministic(measured_run, "repeated")


@pytest.fixture(scope="session")
def cut(stage: Stage, measured_run: Callable[..., Measured]) -> Measured:
    """Servers that keep their first weights, while training goes on in large steps. They never sleep: a server that
    slept has no weights, which would show nothing."""
    rollout = "actor_rollout_ref.rollout"
    awake = (f"{rollout}.{word}" for word in ("free_cache_engine=false", "enable_sleep_mode=false"))
    small = f"{rollout}.gpu_memory_utilization=0.15"
    return measured_run(
        "cut",
        *((*awake, small) if stage.card else ()),
        "policies.code.actor.optim.lr=1e-4",
        "policies.test.actor.optim.lr=1e-4",
        f"episode.max_probs_diff={stage.report.max_mean_diff}",
        "trainer.total_training_steps=2",
        "trainer.save_freq=-1",
        _EAGER,
        driver="e2e/drivers/cut_weight_sync.py",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the report, and print it, where a run took place."""
    report = config.stash.get(_REPORT, None)
    if report is None or not report.runs:
        return
    text = report.text(terminalreporter.stats)
    path = config.rootpath / "gpu_report.md"
    path.write_text(text, encoding="utf-8")
    terminalreporter.section(f"written to {path}")
    terminalreporter.write_line(text)
