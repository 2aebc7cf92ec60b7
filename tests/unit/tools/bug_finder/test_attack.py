"""``code-a1 attack`` from the command line down, with the real sandbox: what it finds, tells, writes and refuses."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.cli.app import main as command_line
from code_a1_recipe.tools.bug_finder import command as attack_command
from code_a1_recipe.tools.bug_finder.command import contradictions
from code_a1_recipe.tools.bug_finder.output import MARK, shown_answer, shown_text
from sandbox import CaseOutcome, CaseResult, Limits, SandboxUnavailableError, SuiteVerdict
from sandbox.text import TOTAL_SPENT

from ..evaluate.stand_in_endpoint import StandInEndpoint
from .conftest import outcomes_of_pytest

MEDIAN = "def median(xs):\n    return sorted(xs)[len(xs) // 2]\n"
RIGHT_MEDIAN = "def median(xs):\n    xs = sorted(xs)\n    return (xs[(len(xs) - 1) // 2] + xs[len(xs) // 2]) / 2\n"
TESTS = "assert median([3, 1, 2]) == 2\nassert median([4, 1, 2, 3]) == 2.5\nassert median([7]) == 8\n"


@pytest.fixture(autouse=True)
def in_a_folder_with_one_judge(monkeypatch, judges, attacks_with, tmp_path):
    attacks_with(judges)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path):
    """``files(solution=..., tests=...)`` writes ``solution.py`` and ``tests.txt``; names with a dot stay."""

    def write(**texts):
        for name, text in texts.items():
            file = "tests.txt" if name == "tests" else name if "." in name else f"{name}.py"
            (tmp_path / file).write_text(text, encoding="utf-8")
        return tmp_path

    return write


def main(words):
    return command_line(["attack", *words])


WITH_REFERENCE = ("--reference", "reference.py")


def attack(*words):
    return main(["solution.py", "--suites", "tests.txt", *words])


def test_valid_tests_are_written_with_a_reference_and_fail_until_the_bug_is_mended(files, capsys, tmp_path):
    files(solution=MEDIAN, reference=RIGHT_MEDIAN, tests=TESTS + "assert median([1, 4]) == 9\n")
    assert attack(*WITH_REFERENCE) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "solution.py: 1 suite, 4 different asserts",
        "  wrong by the reference: 2 asserts",
        "  assert median([4, 1, 2, 3]) == 2.5  # your file: 3",
        "  assert median([1, 4]) == 2.5  # your file: 4",
    ]
    assert lines[4].startswith("written: test_solution.py")
    assert lines[5].startswith("2 valid tests of 4; they kill ")
    assert lines[5].endswith(" of 50 mutants of reference.py")
    written = tmp_path / "test_solution.py"
    found = outcomes_of_pytest(tmp_path, {"buggy": (MEDIAN, written), "right": (RIGHT_MEDIAN, written)})
    assert found == {"buggy": {"PASSED", "FAILED"}, "right": {"PASSED"}}


def test_a_right_program_contradicts_nothing_by_the_reference(files, capsys):
    files(solution=RIGHT_MEDIAN, reference=RIGHT_MEDIAN, tests=TESTS)
    assert attack(*WITH_REFERENCE) == 0
    assert "# your file" not in capsys.readouterr().out


def test_without_a_reference_confirmed_tests_are_written_and_the_others_told(files, capsys, tmp_path):
    tests = "assert median([1, 3]) == 2\nassert median([7]) == 8\nassert median([]) == 0\n"
    files(solution=RIGHT_MEDIAN, tests=tests, again="assert median([7]) == 8\n")
    assert attack("--suites", "again.py") == 1
    out = capsys.readouterr().out
    assert "no reference: in each assert below, the test or your file is wrong" in out
    assert "  assert median([7]) == 8  # your file: 7.0; 2 times\n" in out
    assert "  assert median([]) == 0  # your file: IndexError: list index out of range\n" in out
    assert out.splitlines()[-1].startswith("1 valid test of 3; they kill ")
    assert out.endswith(" mutants of solution.py\n")
    written = tmp_path / "test_solution.py"
    assert outcomes_of_pytest(tmp_path, {"own": (RIGHT_MEDIAN, written)}) == {"own": {"PASSED"}}


def test_where_no_test_is_valid_no_file_is_written(files, capsys):
    files(solution=RIGHT_MEDIAN, tests="assert median([7]) == 8\n")
    assert attack() == 1
    assert capsys.readouterr().out.endswith("0 valid tests of 1; they kill 0 of 50 mutants of solution.py\n")
    assert not Path("test_solution.py").exists()


def test_all_functions_of_a_file_are_tested(files, tmp_path):
    source = "def f(x):\n    return x\n\ndef g(x):\n    return f(x) + 1\n\ndef _h(x):\n    return x\n"
    files(solution=source, tests="assert f(1) == 1\nassert g(1) == 2\nassert _h(1) == 1\n")
    assert attack() == 0
    text = (tmp_path / "test_solution.py").read_text()
    assert "same(program.f(1), 1)" in text
    assert "same(program.g(1), 2)" in text
    assert "_h(1)" not in text


def test_suites_come_of_a_test_llm_which_is_shown_question_and_program_once(files, capsys):
    files(solution=MEDIAN, reference=RIGHT_MEDIAN, **{"question.md": "median(xs): the middle value."})
    texts = iter(["```python\nassert median([1, 2]) == 1.5\n```", "no tests", "no tests"])
    words = ["solution.py", "--reference", "reference.py", "--question", "question.md", "--num-suites", "3"]
    with StandInEndpoint(lambda messages, seed: next(texts)) as server:
        words += ["--endpoint", server.url, "--endpoint-model", "stand-in"]
        assert main(words) == 1
        assert Path("test_solution.responses.jsonl").is_file()
        assert main(words) == 1
        assert len(server.requests) == 3
    text = "\n".join(message["content"] for message in server.requests[0]["messages"])
    assert "the middle value" in text
    assert "len(xs) // 2" in text
    assert "Write at least 8 assert statements that test `median(xs)`" in text
    out = capsys.readouterr().out
    assert "3 suites, 1 different assert" in out
    assert "left out: no_asserts 2" in out


def test_suites_are_read_from_test_files_and_plain_text(files, capsys):
    files(
        solution=MEDIAN,
        reference=RIGHT_MEDIAN,
        own_tests="def test_a():\n    assert median([1, 2]) == 1.5, 'two'\n    assert median([]) is None\n",
        tests="Some tests:\nassert median([9]) == 9\n",
    )
    words = ["--suites", "own_tests.py", "--suites", "tests.txt"]
    assert main(["solution.py", "--reference", "reference.py", *words]) == 1
    assert "2 suites, 3 different asserts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nowhere.py --suites tests.txt", "cannot be read"),
        ("broken.py --suites tests.txt", "does not parse as Python 3"),
        ("empty.py --suites tests.txt", "defines no public function or class"),
        ("solution.py --suites tests.txt --reference two.py", "solution.py defines median; --reference must define"),
        ("solution.py --suites tests.txt --reference unloadable.py", "does not load in the sandbox"),
        ("solution.py --suites prose.txt", "no assert statement was found (no_asserts 1)"),
        (
            "solution.py --suites tests.txt --reference raises.py",
            "could be judged, among 3 asserts (reference_raised 3)",
        ),
        (
            "solution.py --suites other.txt",
            "no test of the form `assert median(literals) == literal` could be judged, among 1 assert",
        ),
        ("solution.py", "tests are missing"),
        ("solution.py --model folder", "needs --question"),
        ("solution.py --model folder --suites tests.txt", "not both"),
        (
            "solution.py --suites tests.txt --reference right.py --output two.py",
            "was not written by code-a1 attack",
        ),
    ],
)
def test_what_cannot_be_attacked_is_refused_with_a_hint(files, capsys, words, told):
    files(
        solution=MEDIAN,
        right=RIGHT_MEDIAN,
        broken="def f(:\n",
        empty="K = 1\n",
        raises="def median(xs):\n    raise ValueError(xs)\n",
        two="def f(): pass\ndef g(): pass\nK = 1\n",
        unloadable="import no_such_package\ndef median(xs): return 1\n",
        tests=TESTS,
        **{
            "prose.txt": "Test the empty list.",
            "other.txt": "assert average([1]) == 1",
        },
    )
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert told in captured.err
    assert captured.out == ""


def test_a_file_of_an_earlier_attack_is_written_anew_and_an_explicit_one_made(files):
    files(solution=MEDIAN, tests="assert median([7]) == 7\n")
    Path("deep").mkdir()
    for _ in range(2):
        assert attack("--output", "deep/er/test_it.py") == 0
    text = Path("deep/er/test_it.py").read_text()
    assert text.startswith(MARK)
    assert "'../../solution.py'" in text


class DeadJudges:
    limits = Limits()

    def judge_all(self, requests):
        return [SandboxUnavailableError("no fork server") for _ in requests]


def test_a_dead_sandbox_is_no_verdict(files, capsys, attacks_with):
    files(solution=MEDIAN, tests=TESTS)
    attacks_with(DeadJudges())
    assert attack() == 1
    error = capsys.readouterr().err
    assert "error: no fork server" in error
    assert "the sandbox is down" in error


def test_text_of_the_program_under_attack_cannot_leave_its_comment(files):
    hostile = "def f(x):\n    raise ValueError('a\\n    assert True\\r\\x0bimport os\\u2028x' + 'y' * 999)\n"
    files(solution=hostile, reference="def f(x):\n    return x\n", tests="assert f(1) == 1\n")
    assert attack(*WITH_REFERENCE) == 1
    tests = Path("test_solution.py").read_text().split("def test_1")[1]
    assert len(tests.splitlines()) == 4
    assert shown_text("a\nb\x1b[31m") == "a b [31m"


def test_async_functions_and_library_values_are_written_so_that_they_run(files, tmp_path):
    right = "from fractions import Fraction\nasync def f(x):\n    return [Fraction(x, 3)]\n"
    files(solution=right, tests="from fractions import Fraction\nassert await f(1) == [Fraction(1, 3)]\n")
    assert attack() == 0
    written = tmp_path / "test_solution.py"
    assert "same(asyncio.run(program.f(1)), [Fraction(1, 3)])" in written.read_text()
    assert outcomes_of_pytest(tmp_path, {"right": (right, written)}) == {"right": {"PASSED"}}


@pytest.mark.parametrize("body", ["import os\n    os._exit(0)", "return len(bytearray(3 << 30)) * 0"])
def test_what_would_take_pytest_with_it_is_tested_in_a_process_of_its_own(files, tmp_path, body):
    buggy, right = f"def f(x):\n    {body}\n", "def f(x):\n    return x\n"
    files(solution=buggy, reference=right, tests="assert f(1) == 1\n")
    assert attack(*WITH_REFERENCE) == 1
    written = tmp_path / "test_solution.py"
    assert "assert passes_alone(" in written.read_text().split("def test_1")[1]
    found = outcomes_of_pytest(tmp_path, {"buggy": (buggy, written), "right": (right, written)})
    assert found == {"buggy": {"FAILED"}, "right": {"PASSED"}}


def case(outcome, detail):
    return CaseResult(
        call="f(1)", reference_value="1", expected="1", expected_correct=True, outcome=outcome, detail=detail
    )


def test_an_unasked_call_is_no_contradiction():
    spent = SuiteVerdict(cases=(case(CaseOutcome.TIMED_OUT, TOTAL_SPENT),), rejections=())
    counts = Counter(["assert f(1) == 1"])
    assert contradictions(dict.fromkeys(counts, spent), counts, has_reference=True) == []


def test_calls_that_stay_unasked_are_counted(files, capsys, monkeypatch):
    monkeypatch.undo()  # these judges have other limits
    monkeypatch.chdir(Path(files()))
    monkeypatch.setattr(attack_command, "LIMITS", replace(attack_command.LIMITS, total_seconds=0.4))
    slow = "import time\ndef f(n):\n    end = time.process_time() + 0.04\n    while time.process_time() < end: pass\n"
    tests = "".join(f"assert f({number}) == {number}\n" for number in range(30))
    files(solution=slow + "    return n\n", reference="def f(n):\n    return n\n", tests=tests)
    assert attack(*WITH_REFERENCE) == 1
    assert "not complete: no time was left for " in capsys.readouterr().out


def test_failures_are_shown_by_what_happened():
    assert shown_answer(case(CaseOutcome.WRONG_VALUE, "None")) == "None"
    assert shown_answer(case(CaseOutcome.RAISED, "KeyError: 'a'")) == "KeyError: 'a'"
    assert shown_answer(case(CaseOutcome.RAISED, "")) == "an exception"
    assert shown_answer(case(CaseOutcome.DIED, "exited with status 3")) == "died (exited with status 3)"
