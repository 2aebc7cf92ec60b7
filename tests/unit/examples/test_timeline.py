"""``examples.timeline``: its numbers, checked by hand, and what it refuses."""

import json

import matplotlib.image
import msgspec
import numpy as np
import pytest

from code_a1_recipe.runs.reader import RunRecords
from examples.timeline.__main__ import main
from examples.timeline.figure import draw_timelines
from examples.timeline.step_times import median_step_seconds, read_step, steps_with_times

from ..conftest import record, suite, write_run


def timed(index, *, step=2, candidate=0, code=None, suites=(), judge=None, **fields):
    """A program's record with its spans."""
    written = [suite(span=span) for span in suites]
    base = {"step": step, "candidate": candidate, "span": code, "judge_span": judge, "suites": written}
    return msgspec.structs.replace(record(index % 6, **base | fields), index=index)


# Code LLM 0-3, Test LLM 2-5, judge 5-6, nothing 6-8; the program of question 1 met an outage.
PROGRAMS = (
    {"index": 1, "code": [1, 3], "suites": [[3, 4]]},
    {"index": 0, "code": [0, 2], "suites": [[2, 5], [2, 4]], "judge": [5, 6]},
    {"index": 0, "candidate": 1, "code": [0, 1]},
)
SECONDS = {
    "timing_s/step": 12.0,
    "timing_s/episodes": 8.0,
    "timing_s/update_code": 1.0,
    "timing_s/update_test": 2.0,
    "timing_s/update_weights": 0.5,
}


def write_timed_run(folder, *, steps=(1, 2), programs=PROGRAMS, seconds=SECONDS, layout="colocated"):
    training = {step: [timed(step=step, **program) for program in programs] for step in steps}
    metrics = [{"step": 0, "val/code/pass@1": 0.5}, *({"step": step} | seconds for step in steps)]
    run = write_run(folder, validation={}, training=training, metrics=metrics)
    with (run / "resolved_config.yaml").open("a") as config:
        config.write(f"layout: {layout}\n")
    return run


def cells(printed, first):
    """The row of a table that begins with these words, without them."""
    (row,) = [line.strip() for line in printed.splitlines() if line.strip().startswith(first)]
    return row.removeprefix(first).split()


def refused(arguments, capsys):
    assert main([*map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_the_table_says_where_the_seconds_went(tmp_path, capsys):
    run = write_timed_run(tmp_path / "run")
    assert main([str(run)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("step 2 of run\n")
    assert {
        words: cells(printed, words)
        for words in ("episodes", "only the Code LLM", "only the Test LLM", "both LLMs", "only the judge", "nothing")
    } == {
        "episodes": ["8.00", "66.7%"],
        "only the Code LLM": ["2.00", "16.7%"],
        "only the Test LLM": ["2.00", "16.7%"],
        "both LLMs": ["1.00", "8.3%"],
        "only the judge": ["1.00", "8.3%"],
        "nothing": ["2.00", "16.7%"],
    }
    assert cells(printed, "update code") == ["1.00", "8.3%"]
    assert cells(printed, "update test") == ["2.00", "16.7%"]
    assert cells(printed, "sync") == ["0.50", "4.2%"]
    assert cells(printed, "save") == ["-"]
    assert cells(printed, "other") == ["0.50", "4.2%"]
    assert cells(printed, "Code LLM requests") == ["0.6"]  # (2 + 1 + 2) / 8
    assert cells(printed, "Test LLM requests") == ["0.8"]  # (3 + 2 + 1) / 8
    assert cells(printed, "programs at the judge") == ["0.1"]


def test_the_picture_lies_in_the_report_and_is_named(tmp_path, capsys):
    run = write_timed_run(tmp_path / "run")
    assert main([str(run)]) == 0
    written = run / "report" / "timeline_step2.png"
    assert f"picture: {written}\n" in capsys.readouterr().out
    height, width, _ = matplotlib.image.imread(written).shape
    assert width > height > 300


def test_another_run_stands_beside_it_with_the_ratio(tmp_path, capsys):
    run = write_timed_run(tmp_path / "two_phases" / "seed1", steps=(1, 2, 3))
    other = write_timed_run(tmp_path / "stream$ing$" / "seed1", seconds=SECONDS | {"timing_s/step": 9.0})
    output = tmp_path / "new" / "both.PNG"
    assert main([str(run), "--compare", str(other), "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("step 2 of two_phases/seed1 and stream$ing$/seed1\n")
    assert cells(printed, "episodes") == ["8.00", "66.7%", "8.00", "88.9%"]
    assert cells(printed, "other") == ["0.50", "4.2%", "0.00", "0.0%"]  # 9 - 8 - 3.5 is no time
    assert (
        "median seconds a step, the first one left out: two_phases/seed1 12.00 (2 steps), "
        "stream$ing$/seed1 9.00 (1 step); stream$ing$/seed1 / two_phases/seed1 = 0.75\n"
    ) in printed
    assert output.is_file()


def test_the_median_leaves_the_first_step_out(tmp_path):
    run = write_timed_run(tmp_path / "run", steps=(1, 2, 3, 4))
    rows = [{"step": step, "timing_s/step": seconds} for step, seconds in ((1, 90), (2, 3), (3, 7), (4, 4))]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert median_step_seconds(RunRecords.open(run)) == (4, 3)


def test_a_step_is_shown_only_with_rollouts_and_metrics(tmp_path):
    run = write_timed_run(tmp_path / "run", steps=(1, 2, 3, 4))
    rows = [{"step": 1} | SECONDS, {"step": 2} | SECONDS, {"step": 3, "timing_s/step": None}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert steps_with_times(RunRecords.open(run)) == [1, 2]


def test_timers_that_are_missing_are_no_seconds(tmp_path):
    run = write_timed_run(tmp_path / "run", seconds={"timing_s/step": 7.0, "timing_s/update_code": None})
    times = read_step(RunRecords.open(run), 2)
    assert (times.episode_seconds, times.phases, times.other_seconds) == (6.0, {}, 1.0)


def test_updates_on_gpus_of_their_own_begin_together_and_the_longer_one_counts(tmp_path, capsys):
    run = write_timed_run(tmp_path / "run", seconds=SECONDS | {"timing_s/save_checkpoint": 1.0}, layout="separate")
    times = read_step(RunRecords.open(run), 2)
    assert times.phase_spans == {
        "update_code": (8.0, 9.0),
        "update_test": (8.0, 10.0),
        "save_checkpoint": (10.0, 11.0),
        "update_weights": (11.0, 11.5),
    }
    assert main([str(run)]) == 0
    printed = capsys.readouterr().out
    assert cells(printed, "update code") == ["1.00", "8.3%"]
    assert cells(printed, "other") == ["0.50", "4.2%"]
    one_after_another = read_step(RunRecords.open(write_timed_run(tmp_path / "other")), 2).phase_spans
    assert one_after_another == {"update_code": (8, 9), "update_test": (9, 11), "update_weights": (11, 11.5)}


@pytest.mark.parametrize("seconds", [SECONDS, {key: value for key, value in SECONDS.items() if "code" not in key}])
def test_updates_at_once_stand_above_one_another_and_no_bar_passes_the_end(tmp_path, seconds):
    seconds = seconds | {"timing_s/step": 10.5}
    run = RunRecords.open(write_timed_run(tmp_path / "run", seconds=seconds, layout="separate"))
    times = read_step(run, 2)
    panel = draw_timelines({"run": times}).axes[0]
    bars = dict(zip(times.phases, (bar.get_bbox() for bar in panel.patches), strict=True))
    assert max(bar.x1 for bar in bars.values()) == 10.5
    heights = {name: (bar.y0, bar.y1) for name, bar in bars.items()}
    if "update_code" in bars:
        assert (heights["update_code"], heights["update_test"]) == ((0.5, 1), (0, 0.5))
    else:
        assert heights["update_test"] == (0, 1)
    assert heights["update_weights"] == (0, 1)


def test_hidden_and_pooled_tests_are_time_at_the_judge(tmp_path):
    program = {"index": 0, "code": [0, 2], "suites": [[2, 4]], "judge": [5, 6]}
    run = write_timed_run(tmp_path / "run", programs=[program | {"hidden_span": [2, 3], "pooled_span": [6, 8]}])
    times = read_step(RunRecords.open(run), 2)
    assert times.spans.judge == [(5, 6), (2, 3), (6, 8)]
    assert times.busy.only_judge == 3


def test_a_program_that_shares_suites_has_no_requests_for_them(tmp_path):
    first = {"index": 0, "code": [0, 2], "suites": [[2, 5], [2, 4]], "judge": [5, 6], "hidden_span": None}
    second = {"index": 0, "candidate": 1, "code": [0, 3], "duplicate_of": 0}
    times = read_step(RunRecords.open(write_timed_run(tmp_path / "run", programs=[first, second])), 2)
    assert [len(spans) for spans in times.spans.by_activity] == [2, 2, 1]


def test_a_step_that_is_not_there_is_refused_with_those_that_are(tmp_path, capsys):
    run = write_timed_run(tmp_path / "run", steps=(1, 2, 3, 7))
    error = refused([run, "--step", 9], capsys)
    assert error == f"error: --step must be a step with rollouts and metrics, got 9; {run} has 1 to 3, 7\n"


def test_runs_without_a_step_in_common_are_refused(tmp_path, capsys):
    run, other = write_timed_run(tmp_path / "run", steps=(1, 2)), write_timed_run(tmp_path / "other", steps=(3,))
    assert f"{run} has 1 to 2; {other} has 3" in refused([run, "--compare", other], capsys)
    assert "--compare must name another run" in refused([run, "--compare", run], capsys)


@pytest.mark.parametrize("programs", [[], [{"index": 0}]])
def test_a_step_without_a_single_span_is_refused(tmp_path, capsys, programs):
    assert "no span that is not null" in refused([write_timed_run(tmp_path / "run", programs=programs)], capsys)


def test_what_is_no_run_has_no_step_or_cannot_be_written_is_refused(tmp_path, capsys):
    assert "holds no run" in refused([tmp_path], capsys)
    assert "let the run finish a step" in refused([write_timed_run(tmp_path / "new", steps=())], capsys)
    run = write_timed_run(tmp_path / "run")
    assert "--output must name a PNG file (.png), got" in refused([run, "--output", "step.pdf"], capsys)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused([run, "--output", tmp_path / "file" / "step.png"], capsys)


def row_colors(programs, tmp_path):
    """The image of the questions' rows: [lines, slices, RGBA]."""
    run = RunRecords.open(write_timed_run(tmp_path / "run", programs=programs))
    return np.asarray(draw_timelines({"run": read_step(run, 2)}).axes[1].images[0].get_array())


def test_a_row_is_shared_by_what_goes_on_at_the_same_time(tmp_path):
    image = row_colors(PROGRAMS[1:2], tmp_path)  # code 0-2, suites 2-5, judge 5-6, of 8 seconds
    middle = image[image.shape[0] // 2]
    at = [tuple(np.round(middle[int(second / 8 * len(middle))], 2)) for second in (1, 3, 5.5, 7)]
    assert at == [(0, 0.45, 0.7, 1), (0.84, 0.37, 0, 1), (0, 0.62, 0.45, 1), (0, 0, 0, 0)]
    both = row_colors([{"index": 0, "code": [0, 4], "suites": [[0, 4]]}], tmp_path / "both")[:, 600]
    assert [int((both[:, channel] > 0.6).sum()) for channel in (0, 2)] == [6, 6]  # half red, half blue


def test_a_thousand_questions_take_a_line_each(tmp_path):
    programs = [{"index": q, "code": [0, 4], "suites": [[0, q / 250]]} for q in range(1000)]
    image = row_colors(programs, tmp_path)
    assert image.shape[0] == 1000
    assert tuple(np.round(image[999, 0], 2)) == (0.42, 0.41, 0.35, 1)  # the mean of both colours
    assert tuple(np.round(image[10, 600], 2)) == (0, 0.45, 0.7, 1)


def test_more_changes_than_can_be_drawn_are_means_with_the_same_area(tmp_path):
    programs = [{"index": q % 8, "code": [q / 1000, q / 1000 + 0.5005]} for q in range(5000)]
    run = RunRecords.open(write_timed_run(tmp_path / "run", programs=programs))
    xs, numbers = draw_timelines({"run": read_step(run, 2)}).axes[0].lines[0].get_data()
    assert len(xs) < 2500
    assert float(np.sum(np.diff(xs) * numbers[:-1])) == pytest.approx(2502.5, rel=1e-6)
