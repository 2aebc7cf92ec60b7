"""The command line judges a corpus of cheating, hostile and honest programs."""

import json
import subprocess
import sys

import pytest

from reward_fns.test_llm_reward import test_llm_reward as reward_of_suite
from sandbox import Judge, JudgeRequest, LocalRunner

pytestmark = [pytest.mark.shared, pytest.mark.nightly]

REFUSED_BY_TIER_0 = {"K11": "file writes", "K13": "processes"}
# The corpus notes on T28: the reference is random, but r(1) == 0 always holds, "so 1 valid is also fine".
ALSO_FINE = {"T28": {"pass": 1, "valid": 1}}


def entries(file):
    return {entry["id"]: entry for entry in json.loads(file.read_text())}


def judged(file, repository):
    command = [sys.executable, "-m", "sandbox", "judge", "--workers", "2", str(file)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True, timeout=600)
    lines = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert list(lines) == list(entries(file))
    return lines


@pytest.fixture(scope="module")
def corpus(shared_dir):
    return entries(shared_dir / "corpus/cheating_programs.json")


@pytest.fixture(scope="module")
def lines(shared_dir, repository):
    return judged(shared_dir / "corpus/cheating_programs.json", repository)


def test_nothing_is_credited_beyond_the_honest_verdict(corpus, lines):
    excess = {}
    for name, entry in corpus.items():
        honest = entry["honest"] | ALSO_FINE.get(name, {})
        most = honest["pass"] if honest["pass"] is not None else len(entry["tests"])
        if lines[name]["passed"] > most or lines[name]["valid"] > honest["valid"]:
            excess[name] = (lines[name], honest)
    assert excess == {}


def test_every_control_is_fully_credited_but_what_tier_0_refuses(corpus, lines):
    lost = {
        name: lines[name]
        for name, entry in corpus.items()
        if entry["role"] == "control" and lines[name]["passed"] != entry["honest"]["pass"]
    }
    assert set(lost) == set(REFUSED_BY_TIER_0)
    assert all(line["valid"] == corpus[name]["honest"]["valid"] for name, line in lost.items())


def test_honest_candidates_under_hostile_tests_lose_nothing_but_what_the_policy_says(corpus, lines):
    short = {
        name: (lines[name]["passed"], lines[name]["valid"])
        for name, entry in corpus.items()
        if entry["role"] == "test" and lines[name]["passed"] < entry["honest"]["pass"]
    }
    # T20: because of cancellation the reference returns 0 instead of 1/3. No tolerance can tell 0 from a wrong value.
    assert short == {"T20": (3, 4)}


def test_partly_right_candidates_get_exactly_their_part(lines):
    exact = {name: lines[name]["passed"] for name in ("C24", "C33", "M03", "M04", "R07", "R15", "T29", "T30")}
    assert exact == {"C24": 1, "C33": 3, "M03": 8, "M04": 3, "R07": 8, "R15": 8, "T29": 3, "T30": 3}


# A29 pretends to need time for an input that it has seen early. It sees only its own input, so it pretends nothing and
# is correct. `test_an_input_is_not_known_before_it_is_asked` judges a program that really needs the time.
NO_LONGER_PRETENDS = {"A29"}
# Not refused, but stable: the reference runs in the same way as a candidate, so an equal program passes.
EQUAL_PROGRAMS_PASS = {"C11", "F01"}
# All inputs are valid cases, but all their failures are one family. The next test checks this.
ONE_FAMILY = {"C27", "C29", "C45"}


def test_the_third_round_of_attacks_has_its_deserved_values(shared_dir, repository):
    file = shared_dir / "corpus/attacks_turn3.json"
    other = {}
    lines = judged(file, repository)
    for name, entry in entries(file).items():
        line, honest = lines[name], entry["honest"]
        if name in ONE_FAMILY:
            assert line["passed"] == 0
        elif name in EQUAL_PROGRAMS_PASS:
            assert line["passed"] == line["valid"]
        elif (line["passed"], line["valid"]) != (honest["pass"], honest["valid"]):
            other[name] = line["passed"] - honest["pass"]
    assert other == dict.fromkeys(NO_LONGER_PRETENDS, 1)


@pytest.mark.parametrize("name", sorted(ONE_FAMILY))
def test_one_mistake_earns_as_one_failed_case_among_others(shared_dir, name):
    entry = entries(shared_dir / "corpus/attacks_turn3.json")[name]
    number = len(entry["tests"])
    request = {"reference": entry["gt"], "candidate": entry["code"], "tests": entry["tests"], "kind": "stdin"}
    with LocalRunner() as runner:
        verdict = Judge(runner).judge(JudgeRequest.from_mapping(request))
    assert reward_of_suite(verdict, 0, num_cases=number).terms["fail_new"] == 1 / number
