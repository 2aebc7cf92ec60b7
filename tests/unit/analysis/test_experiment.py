"""Grids of runs: what is refused, what is run, what is taken up again. The trainer is replaced by a small script."""

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from code_a1_recipe.analysis import experiment_runs as module
from code_a1_recipe.analysis.experiment import Arm, Experiment
from code_a1_recipe.analysis.experiment_checks import settings_of
from code_a1_recipe.analysis.experiment_runs import command_of, run_experiment
from code_a1_recipe.analysis.report import open_experiment
from code_a1_recipe.analysis.run_results import Results, RunResult, Validation, load_results, result_of, save_results
from code_a1_recipe.analysis.summary import ExperimentSummary, difference_table, equal_table, headline_table
from code_a1_recipe.cli.app import main
from code_a1_recipe.curation.harvest import HarvestOptions, collect, harvest_tests
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.errors import InputError, SettingsError
from code_a1_recipe.files import portable
from code_a1_recipe.runs.reader import RunRecords

from ..conftest import record, write_run

GRID = """
folder: {folder}
seeds: [0, 1]
overrides: [trainer.total_training_steps=2]
arms:
  code_a1: [arm=code_a1]
  static:
    overrides: [arm=static]
    harvest: code_a1
"""


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text(GRID.format(folder=tmp_path / "out"))
    return Experiment.load(path)


@pytest.fixture
def fake_training(monkeypatch, run_folder):
    """Each run becomes a copy of ``run_folder``; those named in ``failing`` end with status 3."""
    failing: set[str] = set()
    started: list[str] = []

    def command_of_copy(experiment, arm, seed):
        name = f"{arm.name}/{seed}"
        started.append(name)
        target = str(experiment.run_folder(arm.name, seed))
        script = f"import shutil, sys; print('working'); {'sys.exit(3); ' if name in failing else ''}"
        script += "import time; time.sleep(1); " if failing else ""
        return [sys.executable, "-c", script + f"shutil.copytree({str(run_folder)!r}, {target!r})"]

    monkeypatch.setattr(module, "command_of", command_of_copy)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    return failing, started


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


def test_only_the_files_arms_and_seeds_are_reported(grid, fake_training):
    run_experiment(grid)
    shutil.copytree(grid.folder / "code_a1", grid.folder / "old_arm")
    shutil.copytree(grid.run_folder("code_a1", 0), grid.run_folder("code_a1", 9))
    runs = open_experiment(grid.folder).runs
    assert {arm: list(by_seed) for arm, by_seed in runs.items()} == {"code_a1": [0, 1], "static": [0, 1]}


def test_an_arm_that_began_with_other_models_has_a_base_of_its_own(tmp_path):
    summary = summary_of(tmp_path, code_a1=({0: 0.2, 4: 0.8}, 3.0), golden=({0: 0.2, 4: 0.4}, 2.0))
    other = replace(
        summary_of(tmp_path / "b", self_play=({0: 0.6, 4: 0.8}, 3.0)).runs["self_play"][0], models=("both",)
    )
    found = headline_table(ExperimentSummary({**summary.runs, "self_play": {0: other}})).rows
    assert [row[0] for row in found] == ["base", "base of self_play", "code_a1", "golden", "self_play"]
    assert [row[3] for row in found[:2]] == ["0.200 ± ?", "0.600 ± ?"]


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


def test_harvested_tests_are_the_valid_cases_those_that_broke_programs_first(run_folder, tmp_path):
    first, second = (found.tests for _, found in collect(RunRecords.open(run_folder)))
    assert first == ("assert f(1) == 2",)
    assert second == ("assert f(3) == 4", "assert f(1) == 2")
    harvest_tests(HarvestOptions(run=run_folder, output=tmp_path / "tests.jsonl", minimise=False))
    assert len(load_questions(tmp_path / "tests.jsonl")) == 2


def test_a_run_without_suites_has_no_tests_to_harvest(tmp_path):
    run = write_run(tmp_path / "run", validation={}, training={1: [record(0)]})
    with pytest.raises(InputError, match="no valid case in its rollouts; harvest a run in which a Test LLM took part"):
        harvest_tests(HarvestOptions(run=run, output=tmp_path / "tests.jsonl", minimise=False))
    assert main(["harvest", str(run), "--output", str(tmp_path / "tests.jsonl")]) == 2


def test_the_tables_have_an_arm_a_row(grid, fake_training):
    run_experiment(grid)
    summary = ExperimentSummary(open_experiment(grid.folder).runs)
    table = headline_table(summary)
    head, (base, code_a1, _) = table.columns, table.rows
    assert head[:5] == ("arm", "seeds", "seconds", "pass@1", "greedy")
    assert base[:4] == ("base", "2", "0", "0.333 ± 0.000")
    assert code_a1[:4] == ("code_a1", "2", "6", "0.833 ± 0.000")
    assert dict(zip(head, code_a1, strict=True))["reward_false_positive_rate"] == "0.333 ± 0.000"
    assert dict(zip(head, code_a1, strict=True))["forgotten"] == "1.000 ± 0.000"
    assert [row[:2] for row in difference_table(summary).rows] == [
        ("base", "+0.500 ± 0.000"),
        ("static", "+0.000 ± 0.000"),
    ]


def summary_of(tmp_path, **arms):
    """Per arm: pass@1 by step of one seed, one question a fifth; every step took two seconds, or ``seconds``."""
    runs = {}
    for name, (by_step, seconds) in arms.items():
        validation = {
            step: [record(index, solved=index < round(5 * share)) for index in range(5)]
            for step, share in by_step.items()
        }
        metrics = [{"step": step, "timing_s/step": seconds} for step in range(1, max(by_step) + 1)]
        run = write_run(tmp_path / name, validation=validation, metrics=[{"step": 0}, *metrics])
        runs[name] = {0: result_of(RunRecords.open(run))}
    return ExperimentSummary(runs)


def test_arms_are_compared_at_equal_steps_and_at_equal_seconds(tmp_path):
    summary = summary_of(
        tmp_path, code_a1=({0: 0.2, 4: 0.8}, 3.0), golden=({0: 0.2, 4: 0.4, 8: 0.6}, 2.0), short=({0: 0.2, 4: 0.4}, 1.0)
    )
    own, golden, short = equal_table(summary, "pass@1").rows
    assert own == ("pass@1", "code_a1", "0.800 ± ?", "", "0.800 ± ?", "", "12")
    assert golden[2:4] == ("0.400 ± ?", "+0.400 ± ?")
    assert golden[4:6] == ("0.500 ± ?", "+0.300 ± ?"), "twelve seconds are six of its steps, half way between 4 and 8"
    assert short[2:4] == ("0.400 ± ?", "+0.400 ± ?")
    assert short[4:] == ("0.400 ± ?", "+0.000 ± ?", "4"), "after its four seconds code_a1 was a third of the way"


def test_arms_stand_side_by_side_at_the_same_step_and_longer_ones_below(tmp_path):
    summary = summary_of(
        tmp_path, code_a1=({0: 0.2, 4: 0.8}, 3.0), golden=({0: 0.2, 4: 0.4, 8: 0.6}, 2.0), other=({0: 0.2, 3: 0.4}, 1.0)
    )
    rows = {row[0]: row[2:4] for row in headline_table(summary, ["pass@1"]).rows}
    assert rows == {
        "base": ("0", "0.200 ± ?"),
        "code_a1": ("12", "0.800 ± ?"),
        "golden": ("8", "0.400 ± ?"),
        "other, 3 steps": ("3", "0.400 ± ?"),
        "golden, 8 steps": ("16", "0.600 ± ?"),
    }
    assert list(rows) == ["base", "code_a1", "golden", "other, 3 steps", "golden, 8 steps"]
    assert [row[:2] for row in difference_table(summary).rows] == [
        ("base", "+0.600 ± ?"),
        ("golden", "+0.400 ± ?"),
        ("other, 3 steps", "+0.400 ± ?"),
        ("golden, 8 steps", "+0.200 ± ?"),
    ]


def result(validations, steps, training=None):
    """A run that measured nothing else."""
    return RunResult(
        validations=validations, steps=steps, models=(), training=training or {}, parts={}, wall_seconds=None
    )


def test_a_mean_at_equal_seconds_needs_every_seed():
    def run(*points):
        measured = tuple(
            Validation(step=s, seconds=s, measures={"reward_false_positive_rate": f} if f is not None else {})
            for s, f in points
        )
        return result(measured, points[-1][0])

    leaders = {0: run((0, None), (2, 0.5), (4, 0.1)), 1: run((0, None), (2, 0.5), (8, 0.1))}
    summary = ExperimentSummary({"code_a1": leaders, "short": {seed: run((0, None), (1, 0.2)) for seed in (0, 1)}})
    assert equal_table(summary, "reward_false_positive_rate").rows[1][4:] == ("", "", ""), (
        "code_a1 had no reward to err with before step 1"
    )


def test_undeserved_full_rewards_are_compared_at_equal_steps(tmp_path):
    summary = ExperimentSummary(
        {
            name: {
                0: result(
                    tuple(
                        Validation(step=step, seconds=step, measures={"reward_false_positive_rate": value})
                        for step, value in enumerate(by_step)
                    ),
                    len(by_step) - 1,
                    {"reward_false_positive_rate": by_step[-1]},
                )
            }
            for name, by_step in {"code_a1": (0.5, 0.1), "golden": (0.5, 0.4, 0.2)}.items()
        }
    )
    own, golden = equal_table(summary, "reward_false_positive_rate").rows
    assert own[2] == "0.100 ± ?"
    assert golden[2:4] == ("0.400 ± ?", "-0.300 ± ?"), "not the 0.2 at the end of its longer training"


def test_results_are_passed_on_without_the_folders_of_their_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"code-a1 run_dir={tmp_path}/outputs/a model={Path.home()}/.cache/b /elsewhere"
    assert portable(text) == "code-a1 run_dir=outputs/a model=~/.cache/b /elsewhere"


def test_the_report_of_an_experiment_is_one_page(grid, fake_training, capsys):
    run_experiment(grid)
    shutil.rmtree(grid.run_folder("static", 1))
    assert main(["report", str(grid.folder)]) == 0
    printed = capsys.readouterr().out
    assert "| code_a1 | 2 " in printed
    page = (grid.folder / "report" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 5
    assert "http" not in page.replace("http-equiv", "")
    assert (grid.folder / "report" / "curves_by_step.png").stat().st_size > 10_000


def test_a_report_can_be_made_again_from_its_results(grid, fake_training, capsys, tmp_path):
    run_experiment(grid)
    assert main(["report", str(grid.folder)]) == 0
    first = capsys.readouterr().out
    kept = tmp_path / "kept"
    kept.mkdir()
    shutil.copy(grid.folder / "report" / "results.json", kept)
    shutil.rmtree(grid.folder)
    assert main(["report", str(kept / "results.json")]) == 0
    assert capsys.readouterr().out.replace(str(kept), "X") == first.replace(str(grid.folder / "report"), "X")
    assert len(re.findall(r"\| code_a1 +\|", (kept / "tables.md").read_text())) == 6


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 1}',
        '{"format": 3, "runs": {}, "commands": []}',
        '{"format": 3, "runs": {"a": {}}, "commands": []}',
        '{"format": 3, "runs": [], "commands": []}',
        '{"format": 3, "runs": {"a": {"0": {"validations": [], "steps": "many"}}}, "commands": []}',
        '{"format": 3, "runs": {"a": {"0": {"validations": [], "steps": 1, "models": [], "training": {"valid": NaN}, '
        '"parts": {}, "wall_seconds": null}}}, "commands": []}',
        "[" * 100_000,
    ],
)
def test_what_holds_no_results_is_refused(tmp_path, capsys, text):
    (tmp_path / "results.json").write_text(text)
    assert main(["report", str(tmp_path / "results.json")]) == 2
    assert "results.json" in capsys.readouterr().err


def test_results_come_back_as_they_were(run_folder, tmp_path):
    results = Results(runs={"a": {3: result_of(RunRecords.open(run_folder))}}, commands=("x",))
    save_results(results, tmp_path / "results.json")
    assert load_results(tmp_path / "results.json") == results


def test_the_report_of_a_run_shows_what_a_reader_wants(run_folder, capsys):
    assert main(["report", str(run_folder)]) == 0
    page = (run_folder / "report" / "index.html").read_text()
    for words in (
        "Before and after", "+0.500", "assert f(3) == 4", "Commands and versions",
        "Incorrect programs and the tests that detected them", "Incorrect programs that no test they met broke",
    ):  # fmt: skip
        assert words in page
    assert f"report: {run_folder}/report/index.html" in capsys.readouterr().out


def test_a_page_never_runs_what_a_model_wrote(tmp_path):
    evil = record(0, solved=False, source="<script>alert(1)</script>")
    run = write_run(tmp_path / "run", validation={}, training={1: [evil]})
    assert main(["report", str(run)]) == 0
    assert "<script>alert" not in (run / "report" / "index.html").read_text()


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "holds neither a run (resolved_config.yaml) nor finished runs" in capsys.readouterr().err
    assert main(["experiment", str(tmp_path / "none.yaml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_rollouts_are_browsed_by_step_question_and_outcome(run_folder, capsys):
    assert main(["data", "inspect", str(run_folder), "--step", "1", "--outcome", "detected"]) == 0
    printed = capsys.readouterr().out
    assert "x assert f(3) == 4  right; broke it: wrong_value" in printed
    assert "assert g(1) == 2  no valid case: no_call" in printed
    assert printed.endswith("1 of 1 that match, of 2 at step 1\n")
    assert main(["data", "inspect", str(run_folder), "--question", "micro-", "--outcome", "undetected"]) == 0
    assert "1 of 1 that match, of 2 at step 2" in capsys.readouterr().out
    assert main(["data", "inspect", str(run_folder), "--outcome", "any", "--step", "9"]) == 2
    assert "has rollouts of steps 1 to 2" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '"x"', '{"wall_seconds": NaN}', '{"wall_seconds": "x"}', "{}"])
def test_a_damaged_mark_of_a_finished_run_is_named(grid, fake_training, capsys, text):
    run_experiment(grid, arms=["code_a1"], seeds=[0])
    (grid.run_folder("code_a1", 0) / "finished.json").write_text(text)
    assert main(["report", str(grid.folder)]) == 2
    assert "seed0/finished.json cannot be read" in capsys.readouterr().err


def test_an_experiment_says_how_many_runs_are_finished(grid, fake_training):
    run_experiment(grid, seeds=[0])
    main(["report", str(grid.folder)])
    assert "2 arms, 2 finished runs of 4" in (grid.folder / "report" / "index.html").read_text()
