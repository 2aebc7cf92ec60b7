"""Measures, intervals and the before/after table on records whose answers are known."""

import itertools
import math
import statistics
from random import Random

import msgspec
import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.analysis.measures import (
    change_table,
    changes_of,
    distinct_calls,
    forgetting,
    measures_of,
    reward_errors,
)
from code_a1_recipe.analysis.run_results import result_of
from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.metrics import distinct_call_rate
from code_a1_recipe.runs.reader import RunRecords, read_rollouts
from code_a1_recipe.runs.rollout_record import encode_records
from code_a1_recipe.stats.estimates import mean_estimate, paired_difference

from ..conftest import QUESTIONS, case, loaded, record, suite, write_run


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
    assert found["kill_first"] == {one: 0.5, two: 1.0}
    assert found["kill_others"] == {two: 1.0}


def test_a_measure_that_was_not_taken_is_left_out():
    assert measures_of([record(0)]).keys() == {"pass@1"}
    assert measures_of([]) == {}


def test_a_question_without_hidden_cases_is_not_solved():
    empty = record(0, hidden_tests={"cases": [], "rejections": []})
    assert measures_of([empty])["pass@1"] == {QUESTIONS[0].id: 0.0}


def test_rewards_and_hidden_tests_disagree_in_four_ways():
    broken = [suite(case(), case("wrong_value"))]
    records = [
        record(0),
        record(0, reward=0.9),
        record(1, solved=False),
        record(2, solved=False, reward=0.5, suites=broken),
        record(2, solved=False, reward=0.5, verdict=loaded(case("wrong_value"))),
        record(2, solved=False, reward=0.5, suites=[suite()]),
        record(3, solved=False, reward=0.0, verdict=loaded(is_loaded=False)),
        record(3, solved=None),
    ]
    assert reward_errors(records) == {
        "reward_false_positive_rate": 1 / 2,
        "false_negative_rate": 2 / 4,
        "false_negative_rate_without_replay": 3 / 4,
        "false_rejection_rate": 1 / 2,
    }
    nothing = {
        "reward_false_positive_rate": None,
        "false_negative_rate": None,
        "false_negative_rate_without_replay": None,
        "false_rejection_rate": None,
    }
    assert reward_errors([record(0, solved=False, reward=None)]) == nothing


@pytest.mark.parametrize("key", ["given_tests", "pooled_tests"])
def test_given_and_pooled_tests_break_a_program_as_new_ones_do(key):
    tests = [{"cases": cases, "rejections": []} for cases in ([case()], [case("died")])]
    found = [reward_errors([record(0, solved=False, reward=0.0, **{key: one})]) for one in tests]
    assert [(one["false_negative_rate"], one["false_negative_rate_without_replay"]) for one in found] == [
        (1.0, 1.0),
        (0.0, 0.0),
    ]


def test_each_validation_has_the_ten_steps_of_training_before_it(tmp_path):
    training = {step: [record(0, step=step, solved=step > 5)] for step in range(1, 21)}
    run = write_run(tmp_path / "run", validation={step: [record(0)] for step in (0, 10, 20)}, training=training)
    result = result_of(RunRecords.open(run))
    assert [found.measures.get("reward_false_positive_rate") for found in result.validations] == [None, 0.5, 0.0]
    assert result.final["reward_false_positive_rate"] == 0.0


@pytest.mark.parametrize(
    ("layout", "counted"), [("separate", ["update_test"]), ("colocated", ["update_code", "update_test"])]
)
def test_of_updates_at_once_an_experiment_counts_the_longer_one(tmp_path, layout, counted):
    row = {"step": 1, "timing_s/step": 10.0, "time_frac/update_code": 0.2, "time_frac/update_test": 0.3}
    run = write_run(tmp_path / "run", validation={0: [record(0)]}, metrics=[row])
    config = run / "resolved_config.yaml"
    config.write_text(f"{config.read_text()}layout: {layout}\n")
    assert list(result_of(RunRecords.open(run)).parts) == counted


def visit(*solved):
    """One step; of each question the outcomes of its programs."""
    return [record(index, solved=value) for index, values in enumerate(solved) for value in values]


def test_a_question_is_forgotten_when_most_programs_solved_it_before_and_fail_at_last():
    found = forgetting([visit([True], [True], [False]), visit([False], [], [True])])
    assert found["forgotten"] == 1.0
    assert forgetting([visit([True, True, False], [True]), visit([True], [False])])["forgotten"] == 0.5
    assert forgetting([visit([True, False, False]), visit([False])])["forgotten"] is None


def test_failures_after_a_pass_are_counted_at_the_next_visit_and_at_the_same_one():
    found = forgetting([visit([True, True, False]), visit([True, False, False, False]), visit([False, True])])
    assert found["fails_next_visit"] == pytest.approx((2 * 3 + 1 * 1) / (2 * 4 + 1 * 2))
    assert found["fails_same_visit"] == pytest.approx((2 * 1 + 1 * 3) / (2 * 2 + 1 * 3))
    alone = forgetting([visit([True, False])])
    assert (alone["forgotten"], alone["fails_next_visit"], alone["fails_same_visit"]) == (None, None, None)


@given(st.integers(0, 2**32), st.floats(0.2, 0.8))
def test_a_policy_that_stays_as_it_is_fails_alike_at_both_visits(seed, skill):
    random = Random(seed)
    steps = [[record(0, solved=random.random() < skill) for _ in range(4)] for _ in range(400)]
    found = forgetting(steps)
    assert found["fails_next_visit"] == pytest.approx(1 - skill, abs=0.12)
    assert found["fails_same_visit"] == pytest.approx(1 - skill, abs=0.12)


def test_distinct_calls_are_counted_for_each_program():
    repeated = [suite(case()), suite(case()), suite(case(), case(call="f(2)"))]
    alone, nothing = record(1, suites=[suite(case())]), record(2, suites=[suite()])
    different = record(3, suites=[suite(case()), suite(case(call="f(2)"))])
    assert distinct_calls([record(0, suites=repeated), alone, nothing, different]) == pytest.approx((1 / 2 + 1) / 2)
    assert distinct_calls([record(0)]) is None


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
    with pytest.raises(ValueError, match="at least one value"):
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
    changes = {change.measure: change for change in changes_of(RunRecords.open(run_folder))}
    assert changes["pass@1"].before.value == pytest.approx(2 / 6)
    assert changes["pass@1"].after.value == pytest.approx(5 / 6)
    assert changes["pass@1"].difference.value == pytest.approx(0.5)
    assert changes["valid"].difference.value == pytest.approx(0.2)
    assert changes["valid"].difference.excludes_zero
    table = change_table(RunRecords.open(run_folder))
    assert table.splitlines()[0].startswith("held-out questions (6), step 0 -> step 2")
    assert "Code LLM, pass@1 at temperature 1 " in table
    assert " 0.333 -> 0.833   +0.500 ± 0.575" in table
    assert "better" in table


def test_a_run_with_one_validation_has_nothing_to_compare(run_folder):
    (run_folder / "rollouts" / "val_000002.jsonl").unlink()
    assert change_table(RunRecords.open(run_folder)) == ""


def test_another_data_source_is_told_apart(run_folder):
    path = run_folder / "rollouts" / "val_000002.jsonl"
    records = [
        msgspec.structs.replace(one, question="hard-1", data_source="hard") if one.index == 5 else one
        for one in read_rollouts(path)
    ]
    path.write_bytes(encode_records(records))
    final = result_of(RunRecords.open(run_folder)).final
    assert final["pass@1"] == 1.0
    assert final["pass@1 on hard"] == 0.0


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
