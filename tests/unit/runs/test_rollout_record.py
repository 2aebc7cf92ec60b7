"""Rollout records on disk: what a line holds, that it comes back as it was, and what is refused."""

import json
from dataclasses import fields

import msgspec
import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.reader import read_rollouts
from code_a1_recipe.runs.rollout_record import (
    MAX_FAILED_CASES,
    REPLAYED,
    SUITE,
    VERSION,
    RewardRecord,
    RolloutRecord,
    SuiteRecord,
    encode_records,
    hidden_tests_record,
)
from sandbox import CaseResult, SuiteVerdict

from ..conftest import case, loaded, record, suite


def test_the_fields_are_those_of_the_version():
    """Whoever changes one of these raises ``VERSION``, or adds one with a default, so that older lines are read."""
    assert VERSION == 8
    names_of = {kind: " ".join(field.name for field in fields(kind)) for kind in (CaseResult, SuiteVerdict)}
    names_of |= {kind: " ".join(kind.__struct_fields__) for kind in (RewardRecord, SuiteRecord, RolloutRecord)}
    assert names_of == {
        CaseResult: "call reference_value expected expected_correct outcome detail key family",
        SuiteVerdict: "cases rejections",
        RewardRecord: "total parts terms",
        SuiteRecord: "response response_tokens prompt_tokens cached_tokens extraction_failure reward verdict span",
        RolloutRecord: "v index step question data_source kind candidate response response_tokens "
        "prompt_tokens source extraction_failure is_too_long_to_test outage verdict reward given_tests pooled_tests "
        "hidden_tests selected span judge_span hidden_span pooled_span suites",
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rollouts.jsonl"


def test_records_come_back_as_they_were_one_a_line(path):
    written = [record(0, suites=[suite(case("died"), span=(1, 2.5))], source="a\n\u2028"), record(1, outage="gone")]
    path.write_bytes(encode_records(written))
    assert list(read_rollouts(path)) == written
    assert [json.loads(line)["index"] for line in path.read_bytes().splitlines()] == [0, 1]
    assert b'"outcome":"died"' in path.read_bytes()


def test_hidden_tests_are_kept_as_counts_and_the_first_failed_cases(make_suite, make_verdict):
    judged = make_suite(3000, num_failed=MAX_FAILED_CASES + 5)
    kept = hidden_tests_record(make_verdict(judged))
    assert kept.cases == judged.cases[:MAX_FAILED_CASES]
    assert (kept.num_failed, kept.num_valid) == (judged.num_failed, judged.num_valid)
    assert hidden_tests_record(None) is None


def test_half_a_character_becomes_a_question_mark(path):
    path.write_bytes(encode_records([record(0, response="a\ud800b")]))
    assert [one.response for one in read_rollouts(path)] == ["a?b"]


def test_the_tests_that_a_program_met_are_told_apart():
    met = record(0, suites=[suite(case()), suite(verdict=None)], verdict=loaded(case("died")))
    assert [(name, len(cases)) for name, cases in met.met_cases()] == [(SUITE, 1), (REPLAYED, 1)]
    assert met.is_broken()
    assert not met.is_broken(by_replays=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v": 6}, "no rollout record of format version 8 (it has v: 6); train again"),
        ({"v": None}, "so this is no rollout record of format version 8 (it has v: None)"),
        ({"index": "0"}, "line 2: Expected `int`, got `str` - at `$.index`; the file was changed: restore it"),
        ({"span": [1]}, "Expected `array` of length 2 - at `$.span`"),
        ({"suites": ["f(1)"]}, "Expected `object`, got `str` - at `$.suites[0]`"),
    ],
)
def test_a_line_of_another_version_or_a_damaged_one_is_refused_with_its_place(path, change, words):
    row = msgspec.to_builtins(record(0)) | change
    path.write_bytes(encode_records([record(0)]) + json.dumps(row).encode() + b"\n")
    with pytest.raises(InputError) as refused:
        list(read_rollouts(path))
    assert str(refused.value).startswith(f"{path}, ")
    assert words in str(refused.value)


def test_a_line_that_is_being_written_is_not_there_yet(path):
    lines = encode_records([record(0), record(1)])
    path.write_bytes(lines[:-40])
    assert [one.index for one in read_rollouts(path)] == [0]
    path.write_bytes(lines[:100] + b"\n" + lines)
    with pytest.raises(InputError, match="line 1 is not JSON"):
        list(read_rollouts(path))
