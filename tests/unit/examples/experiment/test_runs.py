"""Grids of runs: what is refused, what is run, what is resumed. The trainer is replaced by a small script."""

import json
import sys
from dataclasses import replace

import pytest
from filelock import FileLock

from code_a1_recipe.errors import InputError, SettingsError
from examples.experiment import runs as module
from examples.experiment.checks import settings_of
from examples.experiment.grid import Arm, Experiment
from examples.experiment.runs import command_of, run_experiment


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a\n", "must be a mapping with the keys preset"),
        ("arms: {a: []}\nseed: [1]\n", r"unknown keys \['seed'\]; known: preset"),
        ("arms: {}\n", "arms must map names to lists of overrides"),
        ("arms: {a: []}\nseeds: [one]\n", "seeds must be a list of integers of at least 0"),
        ("arms: {a: []}\nseeds: [0, 0]\n", "every seed runs once"),
        ("arms: {'a/b': []}\n", "the name becomes a folder"),
        ("arms: {a: [fast]}\n", "arms.a must be a list of key=value"),
        ("arms: {a: [data.seed=3]}\n", "which the experiment sets for each run; leave it out"),
        ("arms: {a: {harvest: b}}\n", "arms.a.harvest must name an arm above it, got 'b'"),
        ("arms: {a: {override: []}}\n", r"unknown keys under arms.a: \['override'\]"),
        ("arms: [\n", "cannot be read"),
        ("", "must be a mapping"),
        ("arms: {a: []}\nfolder: 3\n", "folder must be text, got 3"),
        ("arms: {a: []}\npreset: [cpu]\n", "preset must be text"),
        ("arms:\n  a: []\n  a: [arm=golden]\n", "duplicate key a"),
        ("arms: {1: []}\n", "a name must be text; put it in quotes"),
        ("arms: {_a: []}\n", "the name becomes a folder"),
        ("arms: {a: [+run_dir=x]}\n", "which the experiment sets for each run; leave it out"),
        ("arms: {a: ['=3']}\n", "arms.a must be a list of key=value"),
    ],
)
def test_a_grid_that_cannot_work_is_refused(tmp_path, text, words):
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        Experiment.load(path)


def test_a_runs_command_is_the_users(grid):
    _, static = grid.arms
    words = command_of(grid, static, 1)
    assert words[1:4] == ["-m", "code_a1_recipe", "cpu"]
    assert words[4:] == [
        "trainer.total_training_steps=2",
        "arm=static",
        f"run_dir={grid.folder}/static/seed1",
        "data.seed=1",
        f"data.train_files={grid.folder}/static/tests_seed1.jsonl",
    ]


def test_all_arms_of_a_seed_come_before_the_next_seed_and_none_twice(grid, fake_training):
    _, started = fake_training
    finished = run_experiment(grid)
    assert started == ["code_a1/0", "static/0", "code_a1/1", "static/1"]
    assert [path.name for path in finished] == ["seed0", "seed0", "seed1", "seed1"]
    run_experiment(grid)
    assert len(started) == 4


def test_a_run_that_breaks_off_names_its_log_and_the_rest_stays(grid, fake_training):
    failing, started = fake_training
    failing.add("static/0")
    with pytest.raises(InputError, match=r"arm 'static', seed 0 ended with status 3.*\n.*working"):
        run_experiment(grid)
    failing.clear()
    run_experiment(grid)
    assert started == ["code_a1/0", "static/0", "static/0", "code_a1/1", "static/1"]


def test_runs_at_once_wait_for_the_tests_they_harvest(grid, fake_training):
    _, started = fake_training
    finished = run_experiment(grid, parallel=3)
    assert set(started[:2]) == {"code_a1/0", "code_a1/1"}
    assert [path.parent.name for path in finished] == ["code_a1", "static"] * 2
    assert json.loads((finished[0] / "finished.json").read_text())["parallel"] == 3


def test_a_run_that_breaks_off_lets_the_others_finish_and_starts_no_more(grid, fake_training):
    failing, started = fake_training
    failing.add("code_a1/0")
    with pytest.raises(InputError, match="arm 'code_a1', seed 0 ended with status 3"):
        run_experiment(grid, parallel=2)
    assert started == ["code_a1/0", "code_a1/1"]
    assert (grid.run_folder("code_a1", 1) / "finished.json").is_file()


def test_tests_of_a_run_that_nobody_makes_are_refused(grid, fake_training):
    _, started = fake_training
    with pytest.raises(SettingsError, match="takes the tests of arm 'code_a1', seed 1, which has no finished run"):
        run_experiment(grid, arms=["static"], seeds=[1])
    with pytest.raises(SettingsError, match="at least 1 run at once, got 0"):
        run_experiment(grid, parallel=0)
    assert started == []


def test_an_interruption_ends_the_run_as_ctrl_c_would(grid, monkeypatch, tmp_path):
    script = """
import pathlib, time
try:
    pathlib.Path({ready!r}).touch()
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path({ended!r}).touch()
"""
    ready, ended = tmp_path / "ready", tmp_path / "ended"
    words = [sys.executable, "-c", script.format(ready=str(ready), ended=str(ended))]
    monkeypatch.setattr(module, "command_of", lambda *_: words)

    def interrupt(_run):
        while not ready.exists():
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(module._Run, "progress", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(grid)
    assert ended.exists()


@pytest.mark.parametrize(
    ("text", "step"), [("", 0), ('{"step": 1}\n{"step": 2}\n', 2), ('{"step": 1}\n{"st', 0), ("[]", 0), ('{"a": 1}', 0)]
)
def test_the_step_of_a_run_is_read_while_its_metrics_are_written(tmp_path, text, step):
    (tmp_path / "metrics.jsonl").write_text(text)
    assert module._last_step(tmp_path / "metrics.jsonl") == step
    assert module._last_step(tmp_path / "none.jsonl") == 0


def test_a_run_that_was_cut_off_starts_anew_unless_it_can_be_resumed(grid, fake_training):
    cut = grid.run_folder("code_a1", 0)
    cut.mkdir(parents=True)
    (cut / "metrics.jsonl").write_text('{"step": 1}\n')
    cut.with_suffix(".json").write_text(json.dumps({"settings": settings_of(grid, grid.arms[0]), "wall_seconds": "?"}))
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    assert json.loads((cut / "finished.json").read_text())["wall_seconds"] >= 0


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_an_experiment_did_not_make_is_never_deleted(grid, fake_training, tmp_path, kind):
    _, started = fake_training
    place = grid.run_folder("static", 1)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years")
    place.parent.mkdir(parents=True)
    if kind == "folder":
        mine.rename(place)
    elif kind == "link":
        place.symlink_to(mine)
    else:
        place.write_text("years")
    with pytest.raises(SettingsError, match="move it away"):
        run_experiment(grid)
    assert started == []
    assert "years" in ((place / "thesis.txt") if place.is_dir() else place).read_text()


def test_a_run_that_ended_after_its_experiment_was_killed_counts(grid, fake_training, run_folder):
    _, started = fake_training
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    run = grid.run_folder("code_a1", 0)
    (run / "finished.json").unlink()
    config = run / "resolved_config.yaml"
    config.write_text(config.read_text().replace("trainer: {}", "trainer: {total_training_steps: 2}"))
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    assert started == ["code_a1/0"]
    assert json.loads((run / "finished.json").read_text())["wall_seconds"] is None


def test_a_run_brought_from_elsewhere_says_itself_what_made_it(grid, fake_training):
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    run = grid.run_folder("code_a1", 0)
    run.with_suffix(".json").unlink()
    changed = replace(grid, arms=(replace(grid.arms[0], overrides=("arm=golden",)), grid.arms[1]))
    with pytest.raises(SettingsError, match=r"made with other settings \(arm=code_a1, arm=golden\)"):
        run_experiment(changed, arms=["code_a1"])


def test_a_folder_that_cannot_be_made_is_refused(grid, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"folder .*file/out cannot be made"):
        run_experiment(replace(grid, folder=tmp_path / "file" / "out"))


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (Arm(name="x", overrides=("data.train_files=/nope.jsonl",)), "arms.x: data.train_files='/nope.jsonl': there"),
        (Arm(name="x", overrides=("data.val_files=[/nope.jsonl]",)), "arms.x: data.val_files='/nope.jsonl': there"),
        (Arm(name="x", overrides=("policies.code.model.path=/nope",)), "policies.code.model.path='/nope': there is no"),
        (Arm(name="x", overrides=("arm=nope",)), "arms.x: unknown arm 'nope'; known: code_a1, frozen"),
        (Arm(name="x", overrides=("arm=static",), harvest="plain"), "arms.x: harvest: 'plain' has no Test LLM"),
        (Arm(name="x", overrides=(), harvest="code_a1"), "arms.x: harvest gives the tests for rewards.code_tests"),
        (Arm(name="x", overrides=("arm=static", f"data.train_files={__file__}"), harvest="code_a1"), "as well; leave"),
    ],
)
def test_an_arm_that_cannot_start_is_refused_before_the_first_run(grid, fake_training, arm, words):
    _, started = fake_training
    plain = Arm(name="plain", overrides=("arm=golden",))
    with pytest.raises(SettingsError, match=words):
        run_experiment(replace(grid, arms=(*grid.arms, plain, arm)))
    assert started == []


def test_a_run_that_was_made_with_other_settings_does_not_count(grid, fake_training):
    _, started = fake_training
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    changed = replace(grid, arms=(replace(grid.arms[0], overrides=("arm=golden",)), grid.arms[1]))
    with pytest.raises(SettingsError, match=r"made with other settings \(arm=code_a1, arm=golden\); name"):
        run_experiment(changed, arms=["code_a1"])
    assert started == ["code_a1/0"]
    assert (grid.folder / "experiment.yaml").read_text() == grid.text


def test_two_processes_do_not_work_in_one_folder(grid, fake_training):
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    with FileLock(grid.folder / "experiment.lock"), pytest.raises(InputError, match="another process works in"):
        run_experiment(grid)
    run = grid.run_folder("code_a1", 1)
    run.mkdir(parents=True)
    run.with_suffix(".json").write_text(json.dumps({"settings": settings_of(grid, grid.arms[0])}))
    with FileLock(run / "run.lock"), pytest.raises(InputError, match=r"another process works in .*seed1"):
        run_experiment(grid, arms=["code_a1"])
    assert run.exists()


def test_an_unknown_arm_is_refused(grid):
    with pytest.raises(SettingsError, match=r"unknown arms \['gold'\]; known: code_a1, static"):
        run_experiment(grid, arms=["gold"])
    with pytest.raises(SettingsError, match=r"seeds \[7\] are not in the experiment; it has \[0, 1\]"):
        run_experiment(grid, seeds=[7])


def test_settings_that_cannot_work_are_refused_before_the_first_run(grid, fake_training):
    _, started = fake_training
    wrong = replace(grid, arms=(*grid.arms, Arm(name="wild", overrides=("rewards.alpha=7",))))
    with pytest.raises(SettingsError, match=r"arms.wild: rewards.alpha must be at most 1, got 7"):
        run_experiment(wrong)
    assert started == []


def test_gpus_that_are_not_there_are_refused_before_the_first_run(grid, fake_training, monkeypatch):
    _, started = fake_training
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    wrong = replace(grid, arms=(*grid.arms, Arm(name="large", overrides=("trainer.device=cuda",))))
    with pytest.raises(SettingsError, match=r"arms.large: trainer.device=cuda, but torch sees no GPU here"):
        run_experiment(wrong)
    assert started == []
