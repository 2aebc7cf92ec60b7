"""What a finished run comes to, on records whose answers are known."""

from random import Random

import msgspec
import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.runs.reader import RunRecords, read_rollouts
from code_a1_recipe.runs.rollout_record import encode_records
from examples.experiment.measures import distinct_calls, forgetting, reward_errors, split_kills
from examples.experiment.results import result_of

from ...conftest import QUESTIONS, case, loaded, record, suite, write_run


def test_kills_of_the_first_buggy_program_and_of_the_others_are_told_apart():
    def buggy(index, *suites, **fields):
        return record(index, kind="buggy_program", solved=None, suites=suites, **fields)

    records = [
        buggy(0, suite(case("died"), case()), suite()),
        buggy(1, suite(case("timed_out")), candidate=1),
        buggy(1, suite(case("wrong_value"))),
        buggy(2, suite(case("died")), outage="lost"),
        record(3),
    ]
    one, two = QUESTIONS[0].id, QUESTIONS[1].id
    assert split_kills(records) == {"kill_first": {one: 0.5, two: 1.0}, "kill_others": {two: 1.0}}
    assert split_kills(records[:1]).keys() == {"kill_first"}


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


def test_a_run_that_was_not_validated_at_its_end_has_no_measures_of_held_out_questions(tmp_path):
    metrics = [{"step": step, "timing_s/step": 1.0} for step in (1, 2)]
    run = write_run(tmp_path / "run", validation={0: [record(0)]}, training={1: [record(0)]}, metrics=metrics)
    result = result_of(RunRecords.open(run))
    assert "pass@1" not in result.final
    assert result.at(0)["pass@1"] == 1.0
    assert "reward_false_positive_rate" in result.final
