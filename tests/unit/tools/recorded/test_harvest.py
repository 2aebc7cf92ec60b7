"""``code-a1 harvest``: which tests of a run stay, what they kill, how a repeated command resumes."""

import sys

import pytest

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.cli.app import main
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.tools.recorded import harvest
from code_a1_recipe.tools.recorded.harvest import Found, collect, minimal_row
from code_a1_recipe.tools.test_quality.mutants import mutants_of

from ...conftest import QUESTIONS, case, loaded, record, suite, write_run

SIGN = Question(
    id="sign",
    prompt="The sign of x.",
    reference="def f(x):\n    if x > 0:\n        return 1\n    return -1 if x < 0 else 0",
)


def found_tests(*tests, broken=None, wrong=()):
    found = Found(SIGN, programs={source: source for source in wrong})
    found.num_broken.update(dict(zip(tests, broken or (0,) * len(tests), strict=True)))
    return found


def killed_by(tests, programs, judge_all):
    """Places of the programs that some of the tests break, asked anew."""
    verdicts = judge_all([request_for(SIGN, source, tests) for source in programs])
    return {n for n, found in enumerate(verdicts) if any(case.outcome.failed for case in found.suites[0].cases)}


def test_tests_that_kill_nothing_new_go(judge_all):
    wrong = ["def f(x):\n    return 1", "def f(x):\n    return 1 if x else 0", "def f(x):\n    return x"]
    tests = [f"assert f({x}) == {(x > 0) - (x < 0)}" for x in (5, 7, 0, -1, 1, -9)]
    mutants = [mutant.source for mutant in mutants_of(SIGN.reference)]
    row = minimal_row(found_tests(*tests, wrong=wrong), mutants, judge_all)
    assert len(row["golden_tests"]) < len(tests) == row["num_harvested"]
    killed = killed_by(row["golden_tests"], [*mutants, *wrong], judge_all)
    assert killed == killed_by(tests, [*mutants, *wrong], judge_all)
    assert (row["num_killed"], row["num_programs"]) == (len(killed), len(mutants) + 3)


@pytest.mark.parametrize("wrong", [[], ["def f(x):\n    return 0"]], ids=["none kills", "both kill"])
def test_ties_go_to_the_test_that_broke_most_programs(judge_all, wrong):
    found = found_tests("assert f(1) == 1", "assert f(2) == 1", broken=(1, 4), wrong=wrong)
    assert minimal_row(found, [], judge_all)["golden_tests"] == ["assert f(2) == 1"]


@pytest.mark.parametrize("wrong", [[], ["def f(x):\n    return 7"]])
def test_a_test_that_the_reference_does_not_confirm_goes(judge_all, wrong):
    tests = ("assert f('a') == 1", "assert f(1) == 2", "assert f(2) == 1")
    row = minimal_row(found_tests(*tests, broken=(9, 8, 1), wrong=wrong), [], judge_all)
    assert (row["golden_tests"], row["num_killed"]) == (["assert f(2) == 1"], len(wrong))


def test_calls_that_a_program_was_not_asked_kill_nothing(judge_all, monkeypatch):
    """A program that hangs throughout is given up after some calls: the other tests are not known to kill it."""
    tests = [f"assert f({x}) == 1" for x in range(1, 31)]
    sizes = []
    monkeypatch.setattr(harvest, "cover", lambda sets: sizes.extend(map(len, sets.values())) or ["any"])
    minimal_row(found_tests(*tests, wrong=["def f(x):\n    while True:\n        pass"]), [], judge_all)
    assert 0 < sum(sizes) < len(tests)


def test_incorrect_programs_are_those_that_load_and_that_a_test_broke(tmp_path):
    caught = suite(case("wrong_value", call="f(3)", answer="4"))
    records = [
        record(0, source="def f(x): return 1", suites=[caught]),
        record(0, candidate=1, source="def f(x):  return 1", suites=[caught]),
        record(0, candidate=2, source="def f(x): return 2", suites=[suite(case())]),
        record(0, candidate=3, source="def f(x): return 3", solved=False),
        record(0, candidate=4, source="def f(x): return 4", suites=[caught], outage="gone"),
        record(0, candidate=5, suites=[suite(case("not_loaded"))], verdict=loaded(is_loaded=False)),
    ]
    run = write_run(tmp_path / "run", validation={}, training={1: records})
    (found,) = collect(RunRecords.open(run))
    assert tuple(found.programs.values()) == ("def f(x): return 1", "def f(x): return 3")
    assert found.tests == ["assert f(3) == 4", "assert f(1) == 2"], "those first that broke most programs"


def test_incorrect_programs_of_all_steps_count_and_tests_of_the_last_ones(tmp_path):
    def step(number, call):
        broken = suite(case("wrong_value", call=call))
        return record(0, step=number, source=f"def f(x): return {number}", suites=[broken])

    run = write_run(tmp_path / "run", validation={}, training={1: [step(1, "f(1)")], 2: [step(2, "f(2)")]})
    (found,) = collect(RunRecords.open(run))
    assert found.tests == ["assert f(2) == 2"]
    assert set(found.programs.values()) == {"def f(x): return 1", "def f(x): return 2"}


@pytest.fixture
def target(tmp_path):
    return tmp_path / "tests.jsonl"


@pytest.fixture
def command_for(tmp_path, target):
    """``command_for(name, *indices)``: the command on micro questions, each with six tests that hold."""

    def record_of(index):
        question = QUESTIONS[index]
        calls = [test.removeprefix("assert ").split(" == ") for test in question.hidden_tests[:6]]
        cases = [case(call=call, answer=answer) for call, answer in calls]
        return record(index, source=f"{question.operation.python}\n# again", suites=[suite(*cases)])

    def build(name, *indices):
        run = write_run(tmp_path / name, validation={}, training={1: list(map(record_of, indices))})
        return ["harvest", str(run), "--output", str(target), "--workers", "1"]

    return build


@pytest.fixture
def command(command_for):
    return command_for("run", 0, 1)


def test_the_command_writes_few_tests_and_says_what_they_kill(command, target, one_judge, capsys):
    assert main(command) == 0
    assert f"{target}: 2 questions, tests 12 -> " in capsys.readouterr().out
    for question in load_questions(target):
        assert 0 < len(question.golden_tests) < 6
        assert set(question.golden_tests) <= set(question.tests)


def test_an_outage_keeps_all_tests_and_is_judged_again_by_the_same_command(command, target, one_judge, capsys):
    one_judge.outages = 1
    assert main(command) == 1
    assert "1 questions met an outage and kept all their tests; repeat the command" in capsys.readouterr().err
    assert 6 in [len(question.golden_tests) for question in load_questions(target)]
    asked = one_judge.asked
    assert main(command) == 0
    assert one_judge.asked == asked + 1, "the other question is not judged again"
    assert max(len(question.golden_tests) for question in load_questions(target)) < 6


def test_an_interrupted_command_goes_on_and_another_run_is_refused(
    command, command_for, target, one_judge, capsys, interrupted_after
):
    with interrupted_after(1):
        assert main(command) == 130
    assert f"interrupted; finished work is in {target}" in capsys.readouterr().err
    assert main(command_for("other", 0)) == 2
    assert "recorded was " in capsys.readouterr().err
    asked = one_judge.asked
    assert main(command) == 0
    assert one_judge.asked == asked + 1
    assert len(load_questions(target)) == 2


def test_missing_mutants_are_refused_before_work(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cosmic_ray.plugins", None)
    assert main(command) == 2
    assert "pip install cosmic-ray" in capsys.readouterr().err
    assert not list(tmp_path.glob("tests*"))


def test_a_name_of_another_format_is_refused_before_work(tmp_path, capsys):
    assert main(["harvest", str(tmp_path), "--output", "tests.parquet"]) == 2
    words = " ".join(capsys.readouterr().err.replace("│", "").split())
    assert "is written as JSON lines; name it tests.jsonl, got tests.parquet" in words


@pytest.mark.parametrize("name", ["tests.jsonl", "run/questions.jsonl", "run/rollouts/train_000001.jsonl"])
def test_a_file_of_somebody_else_is_left_alone(command, tmp_path, capsys, name):
    file = tmp_path / name
    before = file.read_bytes() if file.exists() else b"precious"
    file.write_bytes(before)
    assert main([*command, "--output", str(file)]) == 2
    assert "not as an output that can be taken up" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_run_without_suites_has_no_tests_to_harvest(tmp_path, target, capsys):
    run = write_run(tmp_path / "run", validation={}, training={1: [record(0)]})
    assert main(["harvest", str(run), "--output", str(target)]) == 2
    assert "no valid case in its rollouts; harvest a run in which a Test LLM took part" in capsys.readouterr().err
