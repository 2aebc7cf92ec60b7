"""Measures, intervals and the before/after table on records whose answers are known."""

import itertools
import math
import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_a1_recipe.analysis.before_after import change_table, changes_of
from code_a1_recipe.analysis.intervals import interval_of, paired_difference
from code_a1_recipe.analysis.measures import measures_of
from code_a1_recipe.analysis.records import RecordsError, RunRecords
from code_a1_recipe.analysis.results import result_of
from code_a1_recipe.analysis.training_measures import RewardErrors, distinct_calls, forgetting, reward_errors
from code_a1_recipe.episode_metrics import distinct_share

from .conftest import QUESTIONS, case, record, suite, write_run


def test_each_measure_counts_what_it_says():
    records = [
        record(0, solved=True),
        record(0, candidate=1, solved=False),
        record(0, kind="greedy", solved=False, reward=None),
        record(0, kind="probe", solved=None, suites=[suite(case("died"), case(), valid=0.6), suite(valid=0.2)]),
        record(1, kind="probe", candidate=1, solved=None, suites=[suite(case("timed_out"), valid=1.0)]),
        record(1, kind="probe", solved=None, suites=[suite(case("wrong_value", right=False), valid=0.0)]),
        {**record(2, solved=True), "outage": "lost"},
    ]
    found = measures_of(records)
    one, two = QUESTIONS[0].id, QUESTIONS[1].id
    assert found["pass@1"] == {one: 0.5}
    assert found["greedy"] == {one: 0.0}
    assert found["valid"] == {one: pytest.approx(0.4), two: 0.5}
    assert found["kill"] == {one: 0.5, two: 1.0}
    assert found["kill_per_case"] == {one: 0.5, two: 1.0}
    assert found["caught"] == {one: 0.5, two: 0.5}
    assert found["kill_first"] == {one: 0.5, two: 1.0}
    assert found["kill_others"] == {two: 1.0}


def test_a_measure_that_was_not_taken_is_left_out():
    assert measures_of([record(0)]).keys() == {"pass@1"}
    assert measures_of([]) == {}


def test_a_question_without_hidden_cases_is_not_solved():
    empty = {**record(0), "hidden_tests": {"cases": [], "rejections": []}}
    assert measures_of([empty])["pass@1"] == {QUESTIONS[0].id: 0.0}


def test_rewards_and_hidden_tests_disagree_in_four_ways():
    broken = [suite(case(), case("wrong_value"))]
    replayed = {"loaded": True, "history": [case("wrong_value")]}
    records = [
        record(0),
        record(0, reward=0.9),
        record(1, solved=False),
        record(2, solved=False, reward=0.5, suites=broken),
        {**record(2, solved=False, reward=0.5), "verdict": replayed},
        record(2, solved=False, reward=0.5, suites=[suite()]),
        {**record(3, solved=False, reward=0.0), "verdict": {"loaded": False, "history": []}},
        record(3, solved=None),
    ]
    assert reward_errors(records) == RewardErrors(fooled=1 / 2, missed=2 / 4, missed_by_new=3 / 4, denied=1 / 2)
    nothing = RewardErrors(fooled=None, missed=None, missed_by_new=None, denied=None)
    assert reward_errors([record(0, solved=False, reward=None)]) == nothing


@pytest.mark.parametrize("key", ["given_tests", "pooled_tests"])
def test_given_and_pooled_tests_break_a_program_as_new_ones_do(key):
    wrong = record(0, solved=False, reward=0.0)
    found = [reward_errors([{**wrong, key: {"cases": cases}}]) for cases in ([case()], [case("died")])]
    assert [(one.missed, one.missed_by_new) for one in found] == [(1.0, 1.0), (0.0, 0.0)]


def test_each_validation_has_the_ten_steps_of_training_before_it(tmp_path):
    training = {step: [record(0, step=step, solved=step > 5)] for step in range(1, 21)}
    run = write_run(tmp_path / "run", validation={step: [record(0)] for step in (0, 10, 20)}, training=training)
    result = result_of(RunRecords.open(run))
    assert [found.measures.get("fooled") for found in result.validations] == [None, 0.5, 0.0]
    assert result.final["fooled"] == 0.0


def visit(*solved):
    """One step; of each question the outcomes of its programs."""
    return [record(index, solved=value) for index, values in enumerate(solved) for value in values]


def test_a_question_is_forgotten_when_most_programs_solved_it_before_and_fail_at_last():
    found = forgetting([visit([True], [True], [False]), visit([False], [], [True])])
    assert found.forgotten == 1.0
    assert forgetting([visit([True, True, False], [True]), visit([True], [False])]).forgotten == 0.5
    assert forgetting([visit([True, False, False]), visit([False])]).forgotten is None


def test_failures_after_a_pass_are_counted_at_the_next_visit_and_at_the_same_one():
    found = forgetting([visit([True, True, False]), visit([True, False, False, False]), visit([False, True])])
    assert found.fails_next_visit == pytest.approx((2 * 3 + 1 * 1) / (2 * 4 + 1 * 2))
    assert found.fails_same_visit == pytest.approx((2 * 1 + 1 * 3) / (2 * 2 + 1 * 3))
    alone = forgetting([visit([True, False])])
    assert (alone.forgotten, alone.fails_next_visit, alone.fails_same_visit) == (None, None, None)


@given(st.integers(0, 2**32), st.floats(0.2, 0.8))
def test_a_policy_that_stays_as_it_is_fails_alike_at_both_visits(seed, skill):
    random = Random(seed)
    steps = [[record(0, solved=random.random() < skill) for _ in range(4)] for _ in range(400)]
    found = forgetting(steps)
    assert found.fails_next_visit == pytest.approx(1 - skill, abs=0.12)
    assert found.fails_same_visit == pytest.approx(1 - skill, abs=0.12)


def test_distinct_calls_are_counted_for_each_program():
    repeated = [suite(case()), suite(case()), suite(case(), case(call="f(2)"))]
    alone, nothing = record(1, suites=[suite(case())]), record(2, suites=[suite()])
    different = record(3, suites=[suite(case()), suite(case(call="f(2)"))])
    assert distinct_calls([record(0, suites=repeated), alone, nothing, different]) == pytest.approx((1 / 2 + 1) / 2)
    assert distinct_calls([record(0)]) is None


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=8))
def test_the_distinct_share_is_that_of_all_pairs(calls):
    pairs = list(itertools.combinations(calls, 2))
    assert distinct_share(calls) == pytest.approx(statistics.fmean(one != other for one, other in pairs))
    assert distinct_share(calls[:1]) is None


def test_the_interval_is_students():
    found = interval_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.num_values) == (3.0, 5)
    assert found.half_width == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)
    assert found.text() == "3.000 ± 1.963"
    assert interval_of([0.5]).half_width == math.inf
    assert interval_of([0.5]).text(signed=True) == "+0.500 ± ?"
    assert not interval_of([0.5]).excludes_zero
    with pytest.raises(ValueError, match="at least one value"):
        interval_of([])


def test_differences_are_paired_by_key():
    before, after = {"a": 0.0, "b": 1.0, "x": 9.0}, {"a": 0.5, "b": 1.5, "y": 9.0}
    assert paired_difference(after, before).mean == 0.5
    assert paired_difference(after, before).half_width == 0.0
    assert not paired_difference(after, before).excludes_zero, "two pairs that happen to agree"
    assert paired_difference({**after, "c": 1.0}, {**before, "c": 0.5}).excludes_zero


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(-2, 2))
def test_an_interval_moves_with_its_values(values, shift):
    found, moved = interval_of(values), interval_of([value + shift for value in values])
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert moved.mean == pytest.approx(found.mean + shift, abs=1e-9)
    assert moved.half_width == pytest.approx(found.half_width, abs=1e-9)


def test_before_and_after_are_compared_question_by_question(run_folder):
    changes = {change.measure: change for change in changes_of(RunRecords.open(run_folder))}
    assert changes["pass@1"].before.mean == pytest.approx(2 / 6)
    assert changes["pass@1"].after.mean == pytest.approx(5 / 6)
    assert changes["pass@1"].difference.mean == pytest.approx(0.5)
    assert changes["valid"].difference.mean == pytest.approx(0.2)
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
    path.write_text(path.read_text().replace('"index": 5', '"index": 5').replace(QUESTIONS[5].id, "hard-1"))
    lines = [line.replace('"data_source": "micro"', '"data_source": "hard"') if "hard-1" in line else line
             for line in path.read_text().splitlines()]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    final = result_of(RunRecords.open(run_folder)).final
    assert final["pass@1"] == 1.0
    assert final["pass@1 on hard"] == 0.0


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RecordsError, match=r"holds no run: resolved_config.yaml is missing; name the folder"):
        RunRecords.open(tmp_path)


def test_a_half_written_last_line_is_not_there_yet_and_a_broken_one_is_named(run_folder):
    metrics = run_folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text() + '{"step": 3, "co')
    assert RunRecords.open(run_folder).steps == [1, 2]
    metrics.write_text('{"step": \n' + metrics.read_text())
    with pytest.raises(RecordsError, match=r"metrics.jsonl, line 1 is not JSON"):
        _ = RunRecords.open(run_folder).metrics
