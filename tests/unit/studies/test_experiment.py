"""A grid of runs through its command: run, resumed, refused, reported. A small script stands for the trainer."""

import re
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.training.preflight import START_RULES
from studies.experiment import __main__ as command, runs
from studies.experiment.grid import Experiment
from studies.experiment.recorded import NARROW, WIDE, detection_rates, kinds_of

from ..conftest import QUESTIONS, case, record, suite, write_run

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
    """Names of the runs that started. Each becomes a copy of ``run_folder``; those in ``started.failing`` end badly."""

    class Started(list):
        failing = ""

    found = Started()

    def command_of_copy(experiment, place):
        found.append(f"{place.arm}/{place.seed}")
        end = "sys.exit(3)" if found[-1] == found.failing else "pass"
        script = f"import shutil, sys; print('working'); {end}; "
        script += f"shutil.copytree({str(run_folder)!r}, {str(experiment.run_folder(*place))!r})"
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
    assert command.main(["leaderboard", str(tmp_path / "out"), "--arm", "code_a1"]) == 0
    assert "| 2 | +0.000 ± 0.000 | +0.000 ± 0.000 |" in capsys.readouterr().out


def test_a_run_that_breaks_off_names_its_log_and_the_same_command_goes_on(grid, started, capsys):
    started.failing = "frozen/0"
    assert command.main(["run", grid()]) == 2
    assert "arm 'frozen', seed 0 ended with status 3" in capsys.readouterr().err
    started.failing = ""
    assert command.main(["run", grid(), "--parallel", "2"]) == 0
    assert started[:3] == ["code_a1/0", "frozen/0", "frozen/0"]
    assert len(started) == 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": {}}, "arms"),
        ({"seed": [1]}, "unknown field `seed`"),
        ({"arms": {"a/b": []}}, "a name must be letters, digits, - and _, got 'a/b'"),
        ({"arms": {"a": ["data.seed=3"]}}, "which the experiment sets for each run"),
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


def test_narrow_and_wide_programs_are_recorded_and_counted_as_detected(tmp_path):
    def hidden(num_failed):
        outcomes = ["wrong_value"] * num_failed + ["passed"] * (3 - num_failed)
        return {"cases": [case(outcome, call=f"f({n})") for n, outcome in enumerate(outcomes)], "rejections": []}

    def written(source, num_failed):
        return record(0, source=source, hidden_tests=hidden(num_failed))

    base = [written("a", 1), written("b", 1), written("c", 2), written("d", 0)]
    later = [written("a", 1), written("e", 1)]
    run = write_run(tmp_path / "run", validation={0: base, 20: later})
    kinds = kinds_of(RunRecords.open(run))
    assert kinds == {QUESTIONS[0].id: {"a": NARROW, "c": WIDE, "e": NARROW}}
    met = {"a": suite(case("wrong_value")), "c": suite(case()), "e": suite(case())}
    records = [
        record(0, kind="buggy_program", source=source, solved=None, suites=[suites]) for source, suites in met.items()
    ]
    assert detection_rates(records, kinds) == {"narrow_detected": 0.5, "wide_detected": 0.0}


def test_what_holds_no_results_is_refused(tmp_path, capsys):
    path = tmp_path / "results.json"
    for text in ("", "{}", '{"format": 3, "runs": {}, "commands": []}'):
        path.write_text(text)
        assert command.main(["report", str(path)]) == 2
        assert "results.json" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_arm_of_the_shipped_grids_composes(path):
    experiment = Experiment.load(path)
    model = [] if experiment.preset == "cpu" else ["policies.code.model.path=m", "policies.test.model.path=m"]
    for arm in experiment.arms.values():
        read_config(experiment.preset, [*experiment.overrides, *arm.overrides, *model, "run_dir=x"])
