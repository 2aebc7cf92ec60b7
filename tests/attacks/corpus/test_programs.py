"""The project's own corpus of attacks, hostile suites and controls; ``python -m sandbox judge`` reads it too.

An entry's ``honest`` is the number of cases that a judge which cannot be fooled credits, ``valid`` the
number of asserts it accepts; a ``control`` must be credited in full.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox import Judge, JudgeRequest, Limits, LocalRunner, SuiteVerdict

FILE = Path(__file__).with_name("programs.json")
ENTRIES = {entry["id"]: entry for entry in json.loads(FILE.read_text())}
LIMITS = Limits(
    cpu_seconds_per_case=0.2, wall_seconds_per_case=0.8, reference_cpu_seconds_per_case=0.5, memory_bytes=512 << 20
)


@pytest.fixture(scope="module")
def verdicts() -> Iterator[dict[str, SuiteVerdict]]:
    def judge(entry: dict) -> SuiteVerdict:
        request = JudgeRequest(
            question_id=entry["id"], reference=entry["gt"], candidate=entry["code"], suites=(tuple(entry["tests"]),)
        )
        return Judge(runner).judge(request).suites[0]

    with LocalRunner(num_workers=2, limits=LIMITS) as runner, ThreadPoolExecutor(2) as pool:
        yield dict(zip(ENTRIES, pool.map(judge, ENTRIES.values()), strict=True))


def num_passed(suite: SuiteVerdict) -> int:
    return suite.num_valid - suite.num_failed


def test_nothing_is_credited_beyond_the_honest_verdict(verdicts):
    excess = {
        name: num_passed(suite) for name, suite in verdicts.items() if num_passed(suite) > ENTRIES[name]["honest"]
    }
    assert excess == {}


def test_nothing_honest_is_lost(verdicts):
    lost = {name: num_passed(suite) for name, suite in verdicts.items() if num_passed(suite) < ENTRIES[name]["honest"]}
    assert lost == {}


def test_every_control_is_credited_in_full(verdicts):
    controls = {name: entry for name, entry in ENTRIES.items() if entry["control"]}
    assert {name: num_passed(verdicts[name]) for name in controls} == {
        name: len(entry["tests"]) for name, entry in controls.items()
    }


def test_exactly_the_asserts_that_test_something_are_valid(verdicts):
    differing = {name: suite.num_valid for name, suite in verdicts.items() if suite.num_valid != ENTRIES[name]["valid"]}
    assert differing == {}


def test_the_corpus_mixes_attacks_hostile_suites_and_controls():
    kinds = [entry["category"] for entry in ENTRIES.values()]
    assert len(kinds) >= 60
    assert kinds.count("control") >= 15
    assert kinds.count("tests") >= 10
    assert len(set(kinds)) >= 8
