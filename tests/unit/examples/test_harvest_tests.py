"""``python -m examples.harvest_tests``: which tests of a run stay, what they kill, how a repeated command resumes."""

import contextlib
import json
from collections import Counter

import pytest
from huggingface_hub import DatasetCard

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.algorithm.settings import SandboxSettings
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.errors import InputError
from code_a1_recipe.jobs.confinement import Confinement
from code_a1_recipe.jobs.jsonl_store import JsonlStore
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.test_quality.mutants import mutants_of
from examples.harvest_tests import minimal_tests
from examples.harvest_tests.__main__ import main
from examples.harvest_tests.harvest import HarvestOptions, collect, harvest_tests
from examples.harvest_tests.minimal_tests import Found, distinct, minimal_row, summary
from sandbox import Judge, LocalRunner, SandboxUnavailableError

from ..conftest import QUESTIONS, case, loaded, record, suite, write_run

SIGN = Question(
    id="sign",
    prompt="The sign of x.",
    reference="def f(x):\n    if x > 0:\n        return 1\n    return -1 if x < 0 else 0",
)


@pytest.fixture(scope="module")
def runner():
    with LocalRunner() as started:
        yield started


@pytest.fixture
def judge_all(runner):
    def answer(requests):
        judge = Judge(runner)
        return [judge.judge(request) for request in requests]

    return answer


@pytest.fixture
def one_judge(monkeypatch, judge_all):
    """The command's judge processes are this one, whose next answers may be outages."""

    class OneJudge:
        outages = 0
        asked = 0

        def judge_all(self, requests):
            self.asked += 1
            if self.asked <= self.outages:
                return [SandboxUnavailableError("no room")] * len(list(requests))
            return judge_all(requests)

    judge = OneJudge()
    monkeypatch.setattr(Confinement, "judges", lambda self, num_workers: contextlib.nullcontext(judge))
    return judge


def harvested(*tests, broken=None, keys=None, wrong=(), question=SIGN):
    found = Found(
        broken=Counter(dict(zip(tests, broken or (0,) * len(tests), strict=True))),
        keys=dict(zip(tests, keys or tests, strict=True)),
        buggy_programs={source: source for source in wrong},
    )
    return question, found


def killed_by(tests, programs, judge_all, question=SIGN):
    """Places of the programs that some of the tests break, asked anew."""
    verdicts = judge_all([request_for(question, source, tests) for source in programs])
    return {n for n, found in enumerate(verdicts) if any(case.outcome.failed for case in found.suites[0].cases)}


def test_tests_that_kill_nothing_new_go(judge_all):
    wrong = ["def f(x):\n    return 1", "def f(x):\n    return 1 if x else 0", "def f(x):\n    return x"]
    tests = [f"assert f({x}) == {(x > 0) - (x < 0)}" for x in (5, 7, 0, -1, 1, -9)]
    row = minimal_row(harvested(*tests, wrong=wrong), judge_all)
    assert (row["mutants_killed"], row["buggy_programs_killed"]) == (
        row["mutants_killed_after"],
        row["buggy_programs_killed_after"],
    )
    assert row["buggy_programs_killed"] == 3
    assert 0 < row["mutants_killed"] <= row["num_mutants"]
    assert len(row["kept"]) < len(tests)
    programs = [*[mutant.source for mutant in mutants_of(SIGN.reference)], *wrong]
    assert killed_by(row["kept"], programs, judge_all) == killed_by(tests, programs, judge_all)


def test_the_smaller_of_two_suites_by_hand(judge_all, monkeypatch):
    """``f(2)`` kills the first program, ``f(3)`` the second, ``f(5)`` both; ``f(0)`` none."""
    question = Question(id="same", prompt="x", reference="def f(x):\n    return x")
    wrong = [f"def f(x):\n    return x if x not in {bad} else 9" for bad in ((2, 5), (3, 5))]
    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", lambda *_, **__: [])
    found = harvested(
        *[f"assert f({x}) == {x}" for x in (0, 2, 3, 5)], broken=(9, 3, 2, 1), wrong=wrong, question=question
    )
    assert minimal_row(found, judge_all)["kept"] == ["assert f(5) == 5"]
    two = minimal_row(found, judge_all, min_tests=2)
    assert two["kept"] == ["assert f(5) == 5", "assert f(0) == 0"], "the second is the one that broke most in the run"
    assert (two["num_tests"], two["num_mutants"], two["num_buggy_programs"]) == (4, 0, 2)


def test_ties_go_to_the_test_that_broke_most_programs(judge_all, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", lambda *_, **__: [])
    found = harvested("assert f(1) == 1", "assert f(2) == 1", broken=(1, 4), wrong=["def f(x):\n    return 0"])
    assert minimal_row(found, judge_all)["kept"] == ["assert f(2) == 1"]


def test_a_question_whose_tests_kill_nothing_keeps_the_best(judge_all, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", lambda *_, **__: [])
    row = minimal_row(harvested("assert f(1) == 1", "assert f(2) == 1", broken=(0, 4)), judge_all)
    assert row["kept"] == ["assert f(2) == 1"]
    assert row["num_invalid"] == 0


def test_a_test_that_the_reference_does_not_answer_goes_and_is_counted(judge_all, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", lambda *_, **__: [])
    found = harvested("assert f('a') == 1", "assert f(2) == 1", wrong=["def f(x):\n    return 0"])
    row = minimal_row(found, judge_all, min_tests=2)
    assert (row["kept"], row["num_invalid"]) == (["assert f(2) == 1"], 1)


@pytest.mark.parametrize("wrong", [[], ["def f(x):\n    return 7"]])
def test_a_test_that_the_reference_contradicts_goes_and_is_counted(judge_all, monkeypatch, wrong):
    """With programs to kill, and without any."""
    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", lambda *_, **__: [])
    found = harvested("assert f(1) == 2", "assert f(2) == 1", "assert f(0) == 5", broken=(9, 1, 8), wrong=wrong)
    row = minimal_row(found, judge_all, min_tests=3)
    assert (row["kept"], row["num_contradicted"], row["num_invalid"]) == (["assert f(2) == 1"], 2, 0)
    assert row["buggy_programs_killed"] == row["buggy_programs_killed_after"] == len(wrong)


def test_calls_that_a_program_was_not_asked_kill_nothing(judge_all, monkeypatch):
    """A program that hangs throughout is given up after some calls: the other tests are not known to kill it."""
    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", lambda *_, **__: [])
    tests = [f"assert f({x}) == 1" for x in range(1, 31)]
    found = harvested(*tests, wrong=["def f(x):\n    while True:\n        pass"])
    sizes = []
    monkeypatch.setattr(minimal_tests, "cover", lambda sets, weights, least: sizes.extend(map(len, sets)) or [0])
    minimal_row(found, judge_all)
    assert 0 < sum(sizes) < len(tests)


def test_spellings_of_one_call_are_one_test():
    found = harvested(
        "assert f(3) == 1", "assert f(x=3) == 1", "assert f(4) == 1", broken=(2, 2, 3), keys=("k3", "k3", "k4")
    )
    assert distinct(found[1]) == [("assert f(3) == 1", 4), ("assert f(4) == 1", 3)]


def test_buggy_programs_are_those_that_a_test_broke(tmp_path):
    caught = suite(case("wrong_value", call="f(3)", answer="4"))
    records = [
        record(0, source="def f(x): return 1", suites=[caught]),
        record(0, candidate=1, source="def f(x):  return 1", suites=[caught]),
        record(0, candidate=2, source="def f(x): return 2", suites=[suite(case())]),
        record(0, candidate=3, source="def f(x): return 3", solved=False),
        record(0, candidate=4, source="def f(x): return 4", suites=[caught], outage="gone"),
        record(
            0,
            candidate=5,
            source="def f(x): return 5",
            suites=[suite(case("not_loaded"))],
            verdict=loaded(is_loaded=False),
        ),
    ]
    run = write_run(tmp_path / "run", validation={}, training={1: records})
    ((_, found),) = collect(RunRecords.open(run))
    assert tuple(found.buggy_programs.values()) == ("def f(x): return 1", "def f(x): return 3")


def test_buggy_programs_of_all_steps_count_and_tests_of_the_last_ones(tmp_path):
    def step(number, call):
        return record(
            0, step=number, source=f"def f(x): return {number}", suites=[suite(case("wrong_value", call=call))]
        )

    run = write_run(tmp_path / "run", validation={}, training={1: [step(1, "f(1)")], 2: [step(2, "f(2)")]})
    ((_, found),) = collect(RunRecords.open(run))
    assert found.tests == ("assert f(2) == 2",)
    assert tuple(found.buggy_programs.values()) == ("def f(x): return 1", "def f(x): return 2")


def test_without_minimising_the_command_writes_what_it_always_did(run_folder, tmp_path, capsys):
    assert main([str(run_folder), "--output", str(tmp_path / "new.jsonl"), "--no-minimise"]) == 0
    written = {question.id: question.golden_tests for question in load_questions(tmp_path / "new.jsonl")}
    assert written == {question.id: found.tests for question, found in collect(RunRecords.open(run_folder))}
    assert capsys.readouterr().out == f"{tmp_path / 'new.jsonl'}: 2 questions\n"


def test_the_card_says_whose_tests_these_are_in_the_hubs_form(run_folder, tmp_path):
    (run_folder / "questions.jsonl.card.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    (run_folder / "command.txt").write_text("code-a1 cpu run_dir=run\n")
    target = tmp_path / "new.jsonl"
    assert main([str(run_folder), "--output", str(target), "--no-minimise"]) == 0
    card = DatasetCard.load(tmp_path / "new.jsonl.card.md")
    assert card.data.configs == [{"config_name": "default", "data_files": [{"split": "train", "path": "new.jsonl"}]}]
    assert card.data.license == "cc-by-4.0"
    number = sum(len(question.golden_tests) for question in load_questions(target))
    assert (
        f"2 training questions of the run `run` with {number} tests that its Test LLM wrote up\nto step 2" in card.text
    )
    assert "```bash\ncode-a1 cpu run_dir=run\n```" in card.text


@pytest.fixture
def real_run(tmp_path):
    """Two micro questions, each with six tests that hold."""

    def record_of(index):
        question = QUESTIONS[index]
        calls = [test.removeprefix("assert ").split(" == ") for test in question.hidden_tests[:6]]
        cases = [case(call=call, answer=answer) for call, answer in calls]
        return record(index, source=f"{question.operation.python}\n# again", suites=[suite(*cases)])

    return write_run(tmp_path / "run", validation={}, training={1: [record_of(0), record_of(1)]})


def test_the_command_writes_few_tests_and_says_what_they_kill(real_run, tmp_path, one_judge, capsys):
    target = tmp_path / "tests.jsonl"
    assert main([str(real_run), "--output", str(target)]) == 0
    written = capsys.readouterr().out
    assert f"{target}: 2 questions in " in written
    assert "tests 12 -> " in written
    questions = load_questions(target)
    assert [len(question.golden_tests) < 6 for question in questions] == [True, True]
    assert all(set(question.golden_tests) <= set(question.tests) for question in questions)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "tests.jsonl", "tests.jsonl.card.md"], (
        "nothing is left to take up"
    )


def test_an_outage_keeps_all_tests_and_is_judged_again_by_the_same_command(real_run, tmp_path, one_judge, capsys):
    target, one_judge.outages = tmp_path / "tests.jsonl", 1
    command = [str(real_run), "--output", str(target), "--workers", "1"]
    assert main(command) == 1
    assert "1 questions met an outage of the sandbox and kept all their tests; repeat" in capsys.readouterr().err
    assert 6 in [len(question.golden_tests) for question in load_questions(target)]
    asked = one_judge.asked
    assert main(command) == 0
    assert one_judge.asked == asked + 1, "the other question is not judged again"
    assert max(len(question.golden_tests) for question in load_questions(target)) < 6


def test_an_interrupted_command_goes_on_and_other_settings_are_refused(
    real_run, tmp_path, one_judge, capsys, monkeypatch
):
    target, append = tmp_path / "tests.jsonl", JsonlStore.append

    def stop(self, row):
        append(self, row)
        raise KeyboardInterrupt

    monkeypatch.setattr(JsonlStore, "append", stop)
    command = [str(real_run), "--output", str(target), "--workers", "1"]
    assert main(command) == 130
    assert f"interrupted; what is done is in {target}.kills.jsonl; repeat the command" in capsys.readouterr().err
    assert not target.exists()
    monkeypatch.setattr(JsonlStore, "append", append)
    assert main([*command, "--min-tests", "3"]) == 2
    assert "min_tests was 1, now is 3" in capsys.readouterr().err
    asked = one_judge.asked
    assert main(command) == 0
    assert one_judge.asked == asked + 1
    assert len(load_questions(target)) == 2


def test_a_sandbox_that_is_down_breaks_off_with_what_to_do(real_run, tmp_path, one_judge, capsys, monkeypatch):
    monkeypatch.setattr("code_a1_recipe.jobs.judge_loop.MAX_OUTAGES_IN_A_ROW", 1)
    one_judge.outages = 9
    assert main([str(real_run), "--output", str(tmp_path / "tests.jsonl")]) == 1
    error = capsys.readouterr().err
    assert "the sandbox is down: 1 items in a row were not judged, the last one because of no room" in error
    assert f"what is done is in {tmp_path / 'tests.jsonl'}.kills.jsonl; repeat the command to resume" in error


def test_missing_mutants_are_refused_before_work(real_run, tmp_path, capsys, monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("mutants need the package cosmic-ray (gone): pip install cosmic-ray")

    monkeypatch.setattr("code_a1_recipe.test_quality.mutants.mutants_of", missing)
    assert main([str(real_run), "--output", str(tmp_path / "tests.jsonl")]) == 2
    assert "pip install cosmic-ray" in capsys.readouterr().err
    assert not list(tmp_path.glob("tests*"))


def test_the_confinement_is_the_runs_where_nothing_else_is_said():
    sizes = {"num_workers": 1, "programs_per_worker": 1, "judge_timeout_seconds": 60.0, "max_outage_rate": 0.5}
    keys = {"limits": {"cpu_seconds_per_case": 0.5}, "tier": 1, "allow_missing": ["landlock"]}
    sandbox = SandboxSettings.read(sizes | keys, where="sandbox")
    of_run = Confinement.of_run(sandbox)
    assert (of_run.limits.cpu_seconds_per_case, of_run.tier, of_run.allow_missing) == (0.5, 1, ("landlock",))
    assert Confinement.of_run(sandbox, tier=0, allow_missing=["seccomp"]).tier == 0


def test_the_summary_counts_outages_apart():
    row = {"outage": None, "num_tests": 4, "kept": ["a"], "num_invalid": 1, "num_contradicted": 2, "num_unjudged": 0,
           "num_mutants": 5, "num_buggy_programs": 2, "mutants_killed": 3, "mutants_killed_after": 3,
           "buggy_programs_killed": 1, "buggy_programs_killed_after": 1}  # fmt: skip
    text = summary([row, {"outage": "gone", "num_tests": 9, "kept": ["a", "b"]}])
    assert text.splitlines() == [
        "tests 4 -> 1 (1.0 a question)",
        "killed by them: mutants 3 -> 3 of 5, recorded buggy programs 1 -> 1 of 2",
        "left out: 1 that the reference no longer answers, 2 that it answers otherwise, 0 beyond the first 512 of a "
        "question",
    ]
    assert json.loads(json.dumps(row)) == row


@pytest.mark.parametrize("more", [[], ["--no-minimise"]])
def test_a_file_that_exists_is_replaced_only_when_told_so(real_run, tmp_path, one_judge, capsys, more):
    target = tmp_path / "tests.jsonl"
    target.write_bytes(b"precious")
    command = [str(real_run), "--output", str(target), *more]
    assert main(command) == 2
    assert f"{target} exists; --overwrite replaces it" in capsys.readouterr().err
    assert target.read_bytes() == b"precious"
    assert main([*command, "--overwrite"]) == 0
    assert len(load_questions(target)) == 2


@pytest.mark.parametrize("name", ["questions.jsonl", "metrics.jsonl", "rollouts/train_000001.jsonl"])
def test_a_file_of_the_run_is_never_replaced(real_run, capsys, name):
    before = (real_run / name).read_bytes()
    assert main([str(real_run), "--output", str(real_run / name), "--overwrite"]) == 2
    assert f"would overwrite the input {real_run / name}" in capsys.readouterr().err
    assert (real_run / name).read_bytes() == before


def test_an_unfinished_harvest_replaces_its_own_file_and_no_other(real_run, tmp_path, one_judge):
    target, one_judge.outages = tmp_path / "tests.jsonl", 1
    command = [str(real_run), "--output", str(target), "--workers", "1"]
    assert main(command) == 1
    written = target.read_bytes()
    target.write_bytes(b"another's")
    assert main(command) == 2
    target.write_bytes(written)
    assert main(command) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "tests.jsonl", "tests.jsonl.card.md"]


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
    assert main([str(run), "--output", str(tmp_path / "tests.jsonl")]) == 2
