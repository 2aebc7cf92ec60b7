"""``code-a1 attack`` from the command line down, with the real sandbox: what it finds, tells, writes and refuses."""

from pathlib import Path

import pytest

from code_a1_recipe.cli.app import main as command_line
from code_a1_recipe.tools.bug_finder.failures import failure_of, one_line
from code_a1_recipe.tools.bug_finder.output import MARK
from sandbox import CallResult, CallStatus, Limits, SandboxUnavailableError

from ..evaluate.stand_in_endpoint import StandInEndpoint
from .attack_programs import PROGRAMS
from .conftest import outcomes_of_pytest

BY_NAME = {program.entry: program for program in PROGRAMS}
MEDIAN = "def median(xs):\n    return sorted(xs)[len(xs) // 2]\n"
RIGHT_MEDIAN = "def median(xs):\n    xs = sorted(xs)\n    return (xs[(len(xs) - 1) // 2] + xs[len(xs) // 2]) / 2\n"
TESTS = "assert median([3, 1, 2]) == 2\nassert median([4, 1, 2, 3]) == 2.5\nassert median([7]) == 8\n"


@pytest.fixture(autouse=True)
def in_a_folder_with_one_runner(monkeypatch, runner, attacks_with, tmp_path):
    attacks_with(runner)
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


QUICKLY = ("--reference", "reference.py", "--max-calls", "1")


def attack(entry, *words):
    return main(["solution.py", "--entry", entry, "--suites", "tests.txt", *words])


def assert_fails_until_mended(written, buggy, right):
    found = outcomes_of_pytest(written.parent, {"buggy": (buggy, written), "right": (right, written)})
    assert found == {"buggy": {"FAILED"}, "right": {"PASSED"}}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("mean", "  assert mean([]) == 0.0  # your function: ZeroDivisionError: division by zero\n"),
        ("is_leap", "  assert is_leap(100) == False  # your function: True\n"),
        ("collect", "  collect(0); assert collect(0) == [0]  # your function: [0, 0]\n"),
        ("Counter2", "  assert Counter2(0).down() == 0  # your function: 1\n"),
    ],
)
def test_a_bug_is_found_shrunk_and_written_as_a_test_that_fails_until_it_is_mended(files, capsys, name, line):
    program = BY_NAME[name]
    folder = files(solution=program.buggy, reference=program.reference, tests="\n".join(program.asserts))
    assert attack(name, "--reference", "reference.py") == 1
    assert line in capsys.readouterr().out
    assert_fails_until_mended(folder / f"test_{name.lower()}_bugs.py", program.buggy, program.reference)


def test_a_right_program_gives_nothing_and_keeps_the_tests_of_an_earlier_attack(files, capsys):
    files(solution=MEDIAN, reference=RIGHT_MEDIAN, tests=TESTS)
    assert attack("median", *QUICKLY) == 1
    earlier = Path("test_median_bugs.py").read_text()
    files(solution=RIGHT_MEDIAN)
    assert attack("median", *QUICKLY) == 0
    assert capsys.readouterr().out.endswith("nothing found\n")
    assert Path("test_median_bugs.py").read_text() == earlier


def test_without_a_reference_tests_that_expect_something_else_are_told_and_nothing_is_written(files, capsys, tmp_path):
    files(solution=RIGHT_MEDIAN, tests="assert median([1, 3]) == 2\n")
    assert attack("median") == 0
    files(tests="assert median([1, 3]) == 2\nassert median([7]) == 8\n")
    assert attack("median", "--suites", "tests.txt") == 1
    out = capsys.readouterr().out
    assert "no reference: in each assert below, the test or your function is wrong" in out
    assert "assert median([7]) == 8  # your function: 7.0; 2 suites\n" in out
    assert not list(tmp_path.glob("test_*"))


def test_suites_come_of_a_test_llm_which_is_shown_question_and_program_once(files, capsys):
    files(solution=MEDIAN, reference=RIGHT_MEDIAN, **{"question.md": "median(xs): the middle value."})
    texts = iter(["```python\nassert median([1, 2]) == 1.5\n```", "no tests", "no tests"])
    words = ["solution.py", "--reference", "reference.py", "--question", "question.md", "--num-suites", "3"]
    with StandInEndpoint(lambda messages, seed: next(texts)) as server:
        words += ["--endpoint", server.url, "--endpoint-model", "stand-in"]
        assert main(words) == 1
        assert Path("test_median_bugs.responses.jsonl").is_file()
        assert main(words) == 1
        assert len(server.requests) == 3
    text = "\n".join(message["content"] for message in server.requests[0]["messages"])
    assert "the middle value" in text
    assert "len(xs) // 2" in text
    assert "Write at least 8 assert statements that test `median(xs)`" in text
    out = capsys.readouterr().out
    assert "3 suites, 1 assert" in out
    assert "left out: no_asserts 2" in out


def test_suites_are_read_from_test_files_and_plain_text(files, capsys):
    files(
        solution=MEDIAN,
        reference=RIGHT_MEDIAN,
        own_tests="def test_a():\n    assert median([1, 2]) == 1.5, 'two'\n    assert median([]) is None\n",
        tests="Some tests:\nassert median([9]) == 9\n",
    )
    words = ["--suites", "own_tests.py", "--suites", "tests.txt", "--max-calls", "1"]
    assert main(["solution.py", "--reference", "reference.py", *words]) == 1
    assert "2 suites, 3 asserts, 3 different calls" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nowhere.py --suites tests.txt", "cannot be read"),
        ("broken.py --suites tests.txt", "does not parse as Python 3"),
        ("solution.py --suites tests.txt --entry medina", "does not define 'medina'; it defines median"),
        ("two.py --suites tests.txt", "defines f, g"),
        ("solution.py --suites tests.txt --reference two.py", "two.py does not define 'median'"),
        ("solution.py --suites tests.txt --reference unloadable.py", "does not load in the sandbox"),
        ("solution.py --suites prose.txt", "no assert statement was found (no_asserts 1)"),
        (
            "solution.py --suites other.txt",
            "no test of the form `assert median(literals) == literal` among 1 assert in 1 suite",
        ),
        ("solution.py", "tests are missing"),
        ("solution.py --model folder", "needs --question"),
        ("solution.py --model folder --suites tests.txt", "not both"),
        ("solution.py --suites tests.txt --output x.py", "--output needs --reference"),
        (
            "solution.py --suites tests.txt --reference right.py --output two.py",
            "was not written by code-a1 attack",
        ),
        ("solution.py --suites tests.txt --candidates right.py", "name it with --reference"),
    ],
)
def test_what_cannot_be_attacked_is_refused_with_a_hint(files, capsys, words, told):
    files(
        solution=MEDIAN,
        right=RIGHT_MEDIAN,
        broken="def f(:\n",
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
    files(solution=MEDIAN, reference=RIGHT_MEDIAN, tests=TESTS)
    Path("deep").mkdir()
    for _ in range(2):
        assert attack("median", *QUICKLY, "--output", "deep/er/test_it.py") == 1
    text = Path("deep/er/test_it.py").read_text()
    assert text.startswith(MARK)
    assert "'../../solution.py'" in text


class DeadRunner:
    limits = Limits()

    def run(self, program, *, role):
        raise SandboxUnavailableError("no fork server")


def test_a_dead_sandbox_is_no_verdict(files, capsys, attacks_with):
    files(solution=MEDIAN, tests=TESTS)
    attacks_with(DeadRunner())
    assert attack("median") == 1
    error = capsys.readouterr().err
    assert "error: no fork server" in error
    assert "the sandbox is down" in error


def test_text_of_the_program_under_attack_cannot_leave_its_comment(files):
    hostile = "def f(x):\n    raise ValueError('a\\n    assert True\\r\\x0bimport os\\u2028x' + 'y' * 999)\n"
    files(solution=hostile, reference="def f(x):\n    return x\n", tests="assert f(1) == 1\n")
    assert attack("f", *QUICKLY) == 1
    tests = Path("test_f_bugs.py").read_text().split("def test_1")[1]
    assert len(tests.splitlines()) == 4
    assert one_line("a\nb\x1b[31m") == "a b [31m"


def test_async_functions_and_library_values_are_written_so_that_they_run(files, tmp_path):
    right = "from fractions import Fraction\nasync def f(x):\n    return [Fraction(x, 3)]\n"
    files(solution="async def f(x):\n    return []\n", reference=right, tests="assert await f(1) == [2]\n")
    assert attack("f", *QUICKLY) == 1
    written = tmp_path / "test_f_bugs.py"
    assert "same(asyncio.run(program.f(0)), [Fraction(0, 1)])" in written.read_text()
    assert outcomes_of_pytest(tmp_path, {"right": (right, written)}) == {"right": {"PASSED"}}


@pytest.mark.parametrize(
    ("kind", "body"),
    [("the_process_ends", "import os\n    os._exit(0)"), ("raises_memoryerror", "return len(bytearray(3 << 30)) * 0")],
)
def test_what_would_take_pytest_with_it_is_tested_in_a_process_of_its_own(files, tmp_path, kind, body):
    buggy, right = f"def f(x):\n    {body}\n", "def f(x):\n    return x\n"
    files(solution=buggy, reference=right, tests="assert f(1) == 1\n")
    assert attack("f", *QUICKLY) == 1
    written = tmp_path / "test_f_bugs.py"
    assert f"def test_1_{kind}():" in written.read_text()
    assert_fails_until_mended(written, buggy, right)


def value(data):
    return CallResult(status=CallStatus.VALUE, value=data)


def test_failures_are_named_by_what_happened():
    answers = [
        value(b"N"),
        value(b"t1:i1;"),
        value(b"l0:"),
        CallResult(status=CallStatus.RAISED, detail="KeyError: 'a'"),
        CallResult(status=CallStatus.DIED, detail="exited with status 3"),
        CallResult(status=CallStatus.TIMED_OUT, detail="the program's total time is spent"),
    ]
    kinds = [failure.kind if (failure := failure_of(b"l1:i1;", answer)) else None for answer in answers]
    named = ["returns None", "wrong value", "wrong value", "raises KeyError", "the process ends"]
    assert kinds == [*named, None]
