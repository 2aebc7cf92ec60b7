import json

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.jobs import judge_loop
from code_a1_recipe.test_quality.mutation_kill import kill_mutants
from examples.dataset_mutants import __main__ as dataset_mutants
from examples.dataset_mutants.__main__ import main, report
from sandbox import CaseOutcome, SandboxUnavailableError

DOUBLE = {
    "id": "double",
    "prompt": "Double it.",
    "reference": "def f(x):\n    return x + x\n",
    # x * x is 4 for 2 as well; only the last test tells.
    "tests": ["assert f(2) == 4", "assert f(0) == 0", "assert f(2) == 5", "assert f(3) == 6"],
}
BLIND = {
    "id": "blind",
    "prompt": "Is it positive?",
    "reference": "def g(x):\n    return x > 0\n",
    "tests": ["assert g(5) == True", "assert g(-5) == False"],
}
WRONG = {"id": "wrong", "prompt": "p", "reference": "def h(x):\n    return not x\n", "tests": ["assert h(1) == 7"]}
PLAIN = {"id": "plain", "prompt": "p", "reference": "def h(x):\n    return x\n", "tests": ["assert h(1) == 1"]}


@pytest.fixture
def kill(tmp_path, capsys):
    """Run the command on rows; its exit status, what it wrote, and the rows of its output."""

    def run(*rows, arguments=()):
        path, output = tmp_path / "data.jsonl", tmp_path / "out" / "killed.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        code = main([str(path), "--output", str(output), "--workers", "1", *arguments])
        found = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
        return code, capsys.readouterr(), found

    return run


def test_mutants_survive_where_no_right_test_tells_them_from_the_reference(kill):
    code, output, (double, blind, wrong, plain) = kill(DOUBLE, BLIND, WRONG, PLAIN)
    assert code == 0
    assert (double["num_mutants"], double["killed"], double["num_right_tests"]) == (11, 11, 3)
    # x > 0 becomes ==, !=, <, <=, >=, > 1 and > -1 (a number is never compared by `is`).
    assert (blind["num_mutants"], blind["killed"]) == (7, 4)
    operators = [one["operator"].rpartition("_")[2] for one in blind["survivors"]]
    assert operators == ["GtE", "NumberReplacer", "NumberReplacer"]
    assert blind["survivors"][0] == {
        "operator": "ReplaceComparisonOperator_Gt_GtE",
        "occurrence": 0,
        "line": 2,
        "diff": "-    return x > 0\n+    return x >= 0",
    }
    assert (wrong["num_mutants"], wrong["num_right_tests"], plain["num_mutants"]) == (1, 0, 0)
    assert "4 questions, 2 with mutants and right tests, 1 with mutants but no right test; 0 outages" in output.out
    assert "mutants 18, killed 15 (83.33 %), survivors 3\n" in output.out
    assert "this run judged 19 mutants" in output.out
    assert "mean over questions 78.57 %" in output.out  # of 100 % and 4 / 7
    assert "NumberReplacer                   2          2 (100.00 %)" in output.out


def test_a_repeated_command_goes_on_where_it_was(kill, monkeypatch):
    append, row_of = dataset_mutants.JsonlStore.append, dataset_mutants.row_of

    def append_one(output, row):
        if output.done:
            raise KeyboardInterrupt
        append(output, row)

    with monkeypatch.context() as patch:
        patch.setattr(dataset_mutants.JsonlStore, "append", append_one)
        code, output, rows = kill(DOUBLE, BLIND)
    assert (code, len(rows)) == (130, 1)
    assert "repeat the command to resume" in output.err
    seen = []
    monkeypatch.setattr(dataset_mutants, "row_of", lambda item, *rest: seen.append(item) or row_of(item, *rest))
    code, _, all_rows = kill(DOUBLE, BLIND)
    assert (code, seen, [row["question"] for row in all_rows]) == (0, [1 - rows[0]["item"]], ["double", "blind"])
    monkeypatch.setattr(
        "code_a1_recipe.jobs.confinement.JudgeProcesses", lambda *_, **__: pytest.fail("nothing is left to judge")
    )
    code, output, _ = kill(DOUBLE, BLIND)
    assert code == 0
    assert "killed 15" in output.out


def test_other_settings_are_refused_by_name(kill):
    kill(DOUBLE, arguments=["--max-mutants", "3"])
    code, output, rows = kill(DOUBLE)
    assert (code, rows[0]["num_mutants"], rows[0]["dropped"]) == (2, 3, {"over_limit": 8})
    assert output.err.startswith("error: ")
    assert "max_mutants was 3, now is null" in output.err


def test_an_outage_is_a_row_without_a_result_and_is_tried_again(kill, monkeypatch):
    def outage(*_):
        raise SandboxUnavailableError("no fork server")

    with monkeypatch.context() as patch:
        patch.setattr(dataset_mutants, "kill_mutants", outage)
        code, output, rows = kill(DOUBLE)
        assert (code, rows[0]["outage"]) == (1, "no fork server")
        assert "1 outages" in output.out
    code, _, rows = kill(DOUBLE)
    assert (code, rows[0]["killed"]) == (0, 11)


def test_many_outages_in_a_row_end_the_run(kill, monkeypatch):
    monkeypatch.setattr(judge_loop, "MAX_OUTAGES_IN_A_ROW", 2)

    def outage(*_):
        raise SandboxUnavailableError("no fork server")

    monkeypatch.setattr(dataset_mutants, "kill_mutants", outage)
    code, output, rows = kill(*(DOUBLE | {"id": str(index)} for index in range(4)))
    assert (code, len(rows)) == (1, 1)
    assert (
        "error: the sandbox is down: 2 items in a row were not judged, the last one because of no fork server"
        in output.err
    )


def test_unusable_input_is_refused(kill, tmp_path, capsys):
    code, output, _ = kill({"a": 1})
    assert code == 2
    assert "no adapter knows these columns" in output.err
    assert main([str(tmp_path / "missing.jsonl"), "--output", str(tmp_path / "x.jsonl")]) == 2
    assert main([str(tmp_path / "data.jsonl"), "--output", "x", "--max-mutants", "0"]) == 2
    assert "Invalid value" in capsys.readouterr().err


def test_help_says_what_the_command_does(capsys):
    assert main(["--help"]) == 0
    assert "How many small mistakes in its references" in capsys.readouterr().out


@pytest.fixture
def staged(make_case, make_suite, make_verdict):
    """A judge of candidates whose source is the number of the test that kills them; remembers what it was asked."""
    asked = []

    def judge_all(requests):
        for request in requests:
            (tests,) = request.suites
            asked.append((request.candidate, len(tests)))
            cases = tuple(
                make_case(
                    call=text,
                    expected_correct=text != "7",
                    outcome=CaseOutcome.TIMED_OUT if text == request.candidate else CaseOutcome.PASSED,
                )
                for text in tests
            )
            suite = type(make_suite())(cases=cases, rejections=())
            yield make_verdict(suite)

    return judge_all, asked


def test_survivors_alone_meet_more_tests(staged):
    judge_all, asked = staged
    question = Question(id="q", prompt="p", reference="def f(): pass")
    tests = [str(index) for index in range(100)]
    # Test 7 is an incorrect assertion: it kills nothing. Tests 0 to 7, 8 to 63 and 64 to 99 are the stages.
    found = kill_mutants(question, ["0", "7", "8", "63", "64", "never"], tests, judge_all)
    assert asked == [(name, 8) for name in ("0", "7", "8", "63", "64", "never")] + [
        (name, 56) for name in ("7", "8", "63", "64", "never")
    ] + [(name, 36) for name in ("7", "64", "never")]  # fmt: skip
    assert found.survivors == (1, 5)
    assert found.killed_by_stage == (1, 2, 1)
    assert found.num_right_tests == 99


def test_nothing_is_judged_where_nothing_is_left(staged):
    judge_all, asked = staged
    question = Question(id="q", prompt="p", reference="def f(): pass")
    assert kill_mutants(question, ["0"], ["0"] * 9, judge_all).killed_by_stage == (1, 0, 0)
    assert kill_mutants(question, [], ["0"], judge_all).killed_by_stage == (0, 0, 0)
    assert kill_mutants(question, ["0"], [], judge_all).survivors == (0,)
    assert asked == [("0", 8)]


def test_a_report_without_any_row_is_still_one():
    assert report([]) == (
        "0 questions, 0 with mutants and right tests, 0 with mutants but no right test; 0 outages\n"
        "mutants 0, killed 0, survivors 0\n"
        "dropped: none\n"
    )
