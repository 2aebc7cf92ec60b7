"""Measures, intervals and the before/after table on records whose answers are known."""

import itertools
import math
import statistics

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.metrics import distinct_call_rate
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.stats.estimates import mean_estimate, paired_difference
from code_a1_recipe.tools.report.measures import change_table, measures_of

from ...conftest import QUESTIONS, case, record, suite


def test_each_measure_counts_what_it_says():
    records = [
        record(0, solved=True),
        record(0, candidate=1, solved=False),
        record(0, kind="greedy", solved=False, reward=None),
        record(0, kind="buggy_program", solved=None, suites=[suite(case("died"), case(), valid=0.6), suite(valid=0.2)]),
        record(1, kind="buggy_program", candidate=1, solved=None, suites=[suite(case("timed_out"), valid=1.0)]),
        record(1, kind="buggy_program", solved=None, suites=[suite(case("wrong_value", right=False), valid=0.0)]),
        record(2, solved=True, outage="lost"),
    ]
    found = measures_of(records)
    one, two = QUESTIONS[0].id, QUESTIONS[1].id
    assert found["pass@1"] == {one: 0.5}
    assert found["greedy"] == {one: 0.0}
    assert found["valid"] == {one: pytest.approx(0.4), two: 0.5}
    assert found["kill"] == {one: 0.5, two: 1.0}
    assert found["kill_per_case"] == {one: 0.5, two: 1.0}
    assert found["detection_rate"] == {one: 0.5, two: 0.5}


def test_a_measure_that_was_not_taken_is_left_out():
    assert measures_of([record(0)]).keys() == {"pass@1"}
    assert measures_of([]) == {}


def test_a_question_without_hidden_cases_is_not_solved():
    empty = record(0, hidden_tests={"cases": [], "rejections": []})
    assert measures_of([empty])["pass@1"] == {QUESTIONS[0].id: 0.0}


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=8))
def test_the_distinct_call_rate_is_that_of_all_pairs(calls):
    pairs = list(itertools.combinations(calls, 2))
    assert distinct_call_rate(calls) == pytest.approx(statistics.fmean(one != other for one, other in pairs))
    assert distinct_call_rate(calls[:1]) is None


def test_the_interval_is_students():
    found = mean_estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.value, found.num_values) == (3.0, 5)
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert found.plus_minus() == "3.000 ± 1.963"
    assert mean_estimate([0.5]).half_width == math.inf
    assert mean_estimate([0.5]).plus_minus(signed=True) == "+0.500 ± ?"
    assert not mean_estimate([0.5]).excludes_zero
    with pytest.raises(ValueError, match="at least one data point"):
        mean_estimate([])


def test_differences_are_paired_by_key():
    before, after = {"a": 0.0, "b": 1.0, "x": 9.0}, {"a": 0.5, "b": 1.5, "y": 9.0}
    assert paired_difference(after, before).value == 0.5
    assert paired_difference(after, before).half_width == 0.0
    assert not paired_difference(after, before).excludes_zero, "two pairs that happen to agree"
    assert paired_difference({**after, "c": 1.0}, {**before, "c": 0.5}).excludes_zero


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(-2, 2))
def test_an_interval_moves_with_its_values(values, shift):
    found, moved = mean_estimate(values), mean_estimate([value + shift for value in values])
    assert found.value == pytest.approx(statistics.fmean(values))
    assert moved.value == pytest.approx(found.value + shift, abs=1e-9)
    assert moved.half_width == pytest.approx(found.half_width, abs=1e-9)


def test_before_and_after_are_compared_question_by_question(run_folder):
    lines = change_table(RunRecords.open(run_folder)).splitlines()
    assert lines[0].startswith("held-out questions (6), step 0 -> step 2")
    rows = {line[:38].strip(): line[40:] for line in lines[1:]}
    assert rows["Code LLM, pass@1 at temperature 1"] == "0.333 -> 0.833   +0.500 ± 0.575"
    assert rows["Test LLM, validity"] == "0.600 -> 0.800   +0.200 ± 0.000  better"


def test_a_run_with_one_validation_has_nothing_to_compare(run_folder):
    (run_folder / "rollouts" / "val_000002.jsonl").unlink()
    assert change_table(RunRecords.open(run_folder)) == ""


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no run: resolved_config.yaml is missing; name the folder"):
        RunRecords.open(tmp_path)


def test_a_half_written_last_line_is_not_there_yet_and_a_broken_one_is_named(run_folder):
    metrics = run_folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text() + '{"step": 3, "co')
    assert RunRecords.open(run_folder).steps == [1, 2]
    metrics.write_text('{"step": \n' + metrics.read_text())
    with pytest.raises(InputError, match=r"metrics.jsonl, line 1 is not JSON"):
        _ = RunRecords.open(run_folder).metrics
