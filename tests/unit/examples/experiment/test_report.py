"""What stands in the report of an experiment, and what is refused. Runs are copies of one made by hand."""

import re
import shutil
from dataclasses import replace

import pytest

from code_a1_recipe.runs.reader import RunRecords
from examples.experiment.__main__ import main
from examples.experiment.report import open_experiment
from examples.experiment.results import Results, RunResult, Validation, load_results, result_of, save_results
from examples.experiment.runs import run_experiment
from examples.experiment.summary import ExperimentSummary, difference_table, equal_table, headline_table

from ...conftest import record, write_run


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


def test_what_is_no_experiment_is_refused(tmp_path, run_folder, capsys):
    assert main(["report", str(run_folder)]) == 2
    assert "holds no finished run of an experiment" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.yaml")]) == 2
    assert "cannot be read" in capsys.readouterr().err
