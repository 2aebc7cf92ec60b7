"""The processes of a run are watched from the moment that they have started: already while the first weights come."""

import contextlib
from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.training import trainer as trainer_module
from code_a1_recipe.training.lifecycle import launch, process_watch
from code_a1_recipe.training.lifecycle.leftovers import Leftovers
from code_a1_recipe.training.lifecycle.stage_clock import StageClock


def test_a_server_that_is_lost_while_the_first_weights_come_is_noticed(monkeypatch, tmp_path):
    log, shown = [], []

    class Trainer:
        def __init__(self, config, *, signals):
            self.stages = StageClock(shown.append)

        def _setup(self):
            log.append("started")

        def processes(self):
            return {"code policy's server 0": None}

        def on_init_end(self):
            log.append("first weights")

        def fit(self, manager):
            log.append("steps")

    @contextlib.contextmanager
    def watch(actors, give_up):
        log.append(f"watching {', '.join(actors)}")
        yield
        log.append("watched")

    monkeypatch.setattr(trainer_module, "CodeA1Trainer", Trainer)
    monkeypatch.setattr(process_watch, "process_watch", watch)
    monkeypatch.setattr("ray.init", lambda **arguments: None)
    monkeypatch.setattr(launch, "ray_log_folder", lambda: tmp_path)
    monkeypatch.setattr(launch, "segments_below", lambda pid: log.append("segments noted"))
    monkeypatch.setattr(launch, "_close", lambda *given: None)
    config = read_config("cpu", [f"run_dir={tmp_path}"])
    leftovers = SimpleNamespace(segments=set(), remove=Leftovers.remove)
    launch._run_on_ray(config, RunFolder(tmp_path), leftovers, StageClock(shown.append))
    assert [line.split(" s  ")[1] for line in shown] == ["Ray has started", "the servers have the first weights"]
    assert log == [
        "started", "watching code policy's server 0", "first weights", "segments noted", "steps", "watched",
    ]  # fmt: skip
