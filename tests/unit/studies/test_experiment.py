"""A grid of runs through its command: run, resumed, refused, reported. A small script stands for the trainer."""

import re
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.preflight import START_RULES
from studies.experiment import __main__ as command, runs
from studies.experiment.grid import Experiment

pytestmark = pytest.mark.nightly
STUDIES = Path(__file__).resolve().parents[3] / "studies"
GRID = {
    "seeds": [0, 1],
    "overrides": ["trainer.total_training_steps=2"],
    "arms": {"code_a1": ["arm=code_a1"], "frozen": {"overrides": ["arm=frozen"]}},
}


@pytest.fixture
def grid(tmp_path):
    """``grid(**changes)``: the path of a grid's file."""

    def write(**changes):
        path = tmp_path / "grid.yaml"
        path.write_text(yaml.safe_dump(GRID | {"folder": str(tmp_path / "out")} | changes))
        return str(path)

    return write


@cache
def composed(preset, *overrides):
    """The configuration of an arm, which all of these tests compose alike."""
    return read_config(preset, list(overrides), rules=START_RULES)


@pytest.fixture
def started(monkeypatch, run_folder):
    """Names of the runs that started. Each becomes a copy of ``run_folder``."""
    found = []

    def command_of_copy(experiment, place):
        found.append(f"{place.arm}/{place.seed}")
        script = f"import shutil; shutil.copytree({str(run_folder)!r}, {str(experiment.run_folder(*place))!r})"
        return [sys.executable, "-c", script]

    monkeypatch.setattr(runs, "command_of", command_of_copy)
    monkeypatch.setattr(runs, "read_config", lambda preset, overrides, rules: composed(preset, *overrides))
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.01)
    return found


def test_a_grid_is_run_seed_by_seed_and_reported_and_nothing_runs_twice(grid, started, tmp_path, capsys):
    assert command.main(["run", grid()]) == 0
    assert started == ["code_a1/0", "frozen/0", "code_a1/1", "frozen/1"]
    printed = capsys.readouterr().out
    assert "| code_a1 | 2     | 6       | 0.833 ± 0.000 |" in printed
    assert re.search(r"\| frozen +\| \+0.000 ± 0.000", printed)
    page = (tmp_path / "out" / "report" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert command.main(["run", grid()]) == 0
    assert len(started) == 4
    kept = tmp_path / "kept"
    kept.mkdir()
    shutil.copy(tmp_path / "out" / "report" / "results.json", kept)
    first = capsys.readouterr().out
    assert command.main(["report", str(kept / "results.json")]) == 0
    assert capsys.readouterr().out.partition("\n\nreport")[0] == first.partition("\n\nreport")[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": {}}, "arms"),
        ({"seed": [1]}, "unknown field `seed`"),
        ({"arms": {"a/b": []}}, "a name must be letters, digits, - and _, got 'a/b'"),
        ({"arms": {"a": ["data.seed=3"]}}, "but the experiment sets this key for each run"),
        ({"arms": {"a": {"harvest": "b"}}}, "must name an arm above it, got 'b'"),
        ({"arms": {"a": ["rewards.alpha=7"]}}, "arms.a: rewards.alpha must be at most 1, got 7"),
    ],
)
def test_a_grid_that_cannot_work_is_refused_before_its_first_run(grid, started, capsys, changes, words):
    assert command.main(["run", grid(**changes)]) == 2
    assert words in capsys.readouterr().err
    assert started == []


def test_a_folder_of_other_settings_or_of_somebody_else_is_never_deleted(grid, started, tmp_path, capsys):
    assert command.main(["run", grid(), "--seeds", "0"]) == 0
    assert command.main(["run", grid(overrides=["trainer.total_training_steps=3"])]) == 2
    assert "was made with other settings" in capsys.readouterr().err
    mine = tmp_path / "out" / "frozen" / "seed1"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years")
    assert command.main(["run", grid()]) == 2
    assert "move it away" in capsys.readouterr().err
    assert (mine / "thesis.txt").is_file()


@pytest.mark.parametrize("path", sorted(STUDIES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_arm_of_the_shipped_grids_composes(path):
    experiment = Experiment.load(path)
    model = [] if experiment.preset == "cpu" else ["policies.code.model.path=m", "policies.test.model.path=m"]
    for arm in experiment.arms.values():
        read_config(experiment.preset, [*experiment.overrides, *arm.overrides, *model, "run_dir=x"])
