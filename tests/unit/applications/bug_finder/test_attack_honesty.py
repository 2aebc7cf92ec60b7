"""What an attack must not keep to itself: calls never made, votes never cast, tests never written."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.applications.bug_finder import command as attack_command, run as attack_run, search as attack_module
from code_a1_recipe.applications.bug_finder.expectations import (
    NOT_ASKED,
    MajorityExpectation,
    ReferenceExpectation,
    was_asked,
)
from code_a1_recipe.cli.app import main
from sandbox import (
    HANGS_THROUGHOUT,
    TOTAL_SPENT,
    Call,
    CallResult,
    CallStatus,
    Gate,
    Limits,
    LocalRunner,
    Program,
    ProgramResult,
    Role,
)

SAME = "def f(n):\n    return n\n"
SLOW_LAST = """\
import time
def f(n):
    end = time.process_time() + 0.04
    while time.process_time() < end: pass
    return 99 if n == 19 else n
"""
HANGS = """\
def f(n):
    while n > 5: pass
    return 99 if n == -3 else n
"""


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(limits=attack_command.LIMITS) as started:
        yield started


@pytest.fixture
def short_hangs(monkeypatch):
    monkeypatch.setattr(attack_module, "HANG_SECONDS", 0.6)


@pytest.fixture
def attack(monkeypatch, runner, tmp_path):
    """``attack(texts, *words)``: the command on files of these texts, in the module's sandbox."""

    class Shared:
        def __init__(self, **options):
            pass

        def __enter__(self):
            return runner

        def __exit__(self, *error):
            pass

    monkeypatch.setattr(attack_command, "LocalRunner", Shared)
    monkeypatch.chdir(tmp_path)

    def run(texts, *words):
        for name, text in texts.items():
            Path(f"{name}.py").write_text(text, encoding="utf-8")
        return main(["attack", "solution.py", "--suites", "tests.py", "--entry", "f", *words])

    return run


def asserts(numbers):
    return "".join(f"assert f({number}) == {number}\n" for number in numbers)


def written_outcome(folder="."):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_f_bugs.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.splitlines()[-1].split(" in ")[0]


class ScriptedRunner:
    """Answers so many calls of each run; the others as if the time were spent."""

    limits = Limits()

    def __init__(self, *answered, detail=TOTAL_SPENT):
        self.answered = list(answered)
        self.detail = detail
        self.asked = []

    def run(self, program, *, role):
        self.asked.append(program)
        count = self.answered.pop(0) if self.answered else 0
        answers = [
            CallResult(status=CallStatus.VALUE, value=call.expression.encode())
            if index < count
            else CallResult(status=CallStatus.TIMED_OUT, detail=self.detail)
            for index, call in enumerate(program.calls)
        ]
        return ProgramResult(loaded=True, load_error="", results=tuple(answers), cpu_seconds=0, wall_seconds=0)

    def close(self):
        pass


def program_of(number):
    calls = tuple(Call(expression=f"f({index})") for index in range(number))
    seconds = tuple(float(index) for index in range(number))
    return Program(prelude="", source=SAME, calls=calls, reference_cpu_seconds=seconds, limits=Limits())


@pytest.mark.parametrize("detail", [TOTAL_SPENT, HANGS_THROUGHOUT])
def test_calls_that_were_not_made_are_known(detail):
    result = ScriptedRunner(1, detail=detail).run(program_of(3), role=Role.CANDIDATE)
    assert [was_asked(answer) for answer in result.results] == [True, False, False]


def test_other_programs_that_hang_in_their_first_calls_are_asked_the_others(runner):
    limits = replace(attack_run.LIMITS, cpu_seconds_per_case=0.1)
    hangs = "def f(n):\n    while n < 12: pass\n    return n\n"
    calls = [Call(expression=f"f({number})") for number in range(13)]
    expectation = MajorityExpectation([hangs], runner, limits=limits)
    assert [call.expression for call in expectation.expect(calls)] == ["f(12)"]


def test_a_call_that_times_out_was_asked():
    assert was_asked(CallResult(status=CallStatus.TIMED_OUT, detail="more than 0.2 s of CPU time"))


def test_an_attack_gives_programs_more_time_than_a_judge():
    assert attack_run.LIMITS.total_seconds == 8 * Limits().total_seconds


def test_calls_that_stay_unasked_are_counted_and_are_not_nothing_found(attack, capsys, monkeypatch):
    monkeypatch.setattr(attack_run, "LIMITS", replace(attack_run.LIMITS, total_seconds=0.4))
    texts = {"solution": SLOW_LAST, "reference": SAME, "tests": asserts(range(20))}
    assert attack(texts, "--reference", "reference.py", "--no-mutate") == 1
    *_, told, last = capsys.readouterr().out.splitlines()
    assert told.startswith("not complete: 1")
    assert "calls could not be asked (time)" in told
    assert last == "nothing found in the others"


def test_a_wrong_value_is_found_behind_many_calls_that_hang(attack, capsys, short_hangs):
    texts = {"solution": HANGS, "reference": SAME, "tests": asserts([*range(6, 18), -3])}
    assert attack(texts, "--reference", "reference.py", "--no-mutate") == 1
    assert "assert f(-3) == -3  # your function: 99" in capsys.readouterr().out


def test_a_call_that_hangs_takes_no_time_from_the_others(attack, capsys, short_hangs):
    hangs_once = SLOW_LAST.replace("0.04", "0.1").replace("    end", "    while n == 0: pass\n    end")
    texts = {"solution": hangs_once, "reference": SAME, "tests": asserts(range(20))}
    assert attack(texts, "--reference", "reference.py", "--no-mutate") == 1
    out = capsys.readouterr().out
    assert "time-out (1 call)\n" in out
    assert "assert f(19) == 19  # your function: 99" in out


def test_a_references_calls_beyond_its_total_time_are_counted(runner):
    slow = SLOW_LAST.replace("0.04", "0.02")
    calls = [Call(expression=f"f({number})") for number in range(80)]
    expectation = ReferenceExpectation(slow, runner, limits=replace(attack_run.LIMITS, total_seconds=0.45))
    assert 0 < len(expectation.expect(calls)) < 80
    assert expectation.refusals == {NOT_ASKED: len(expectation.unasked)}


def test_where_nothing_is_compared_the_attack_is_refused(attack, capsys):
    raises = "def f(n):\n    raise ValueError(n)\n"
    texts = {"solution": SAME, "other": raises, "tests": asserts([1])}
    assert attack(texts, "--reference", "other.py", "--no-mutate") == 2
    assert "got none (reference_raised 1)" in capsys.readouterr().err
    assert attack(texts, "--candidates", "other.py", "--no-mutate") == 2
    assert "got none (most other programs fail 1)" in capsys.readouterr().err


def test_what_other_programs_left_behind_is_no_disagreement(attack, capsys):
    leaves = "def f(n, seen=[]):\n    seen.append(n)\n    return len(seen)\n"
    texts = {"solution": "def f(n):\n    return 1\n", "other": leaves, "tests": asserts([1, 2, 3])}
    texts["tests"] = "assert f(1) == 1\nassert f(2) == 1\nassert f(3) == 1\n"
    assert attack(texts, "--candidates", "other.py") == 0
    assert capsys.readouterr().out.endswith("nothing found\n")


def test_a_program_that_was_not_asked_has_no_vote():
    calls = list(program_of(2).calls)
    expectation = MajorityExpectation([SAME, SAME], ScriptedRunner(1, 1), limits=Limits())
    # The scripted value is no encoded one: what counts is which call had votes at all.
    expectation.expect(calls)
    assert dict(expectation.refusals) == {"the answer is no plain value": 1, NOT_ASKED: 1}
    assert expectation.unasked == {calls[1]}


def test_an_unasked_call_is_no_incorrect_assertion():
    case = Gate(SAME, ("f",), assert_chars=100).suite(["assert f(1) == 1"]).cases[0]
    spent = CallResult(status=CallStatus.TIMED_OUT, detail=TOTAL_SPENT)
    assert attack_run.other_expectations([case], {case.call: spent}) == []


def test_a_call_that_dies_after_the_time_limit_has_a_test(attack, capsys):
    dies = "import os, time\ndef f(n):\n    while time.process_time() < 0.6: pass\n    os._exit(0)\n"
    texts = {"solution": dies, "reference": SAME, "tests": asserts([1])}
    assert attack(texts, "--reference", "reference.py", "--no-mutate") == 1
    assert "(1 test; run" in capsys.readouterr().out
    assert "def test_1_the_process_ends()" in Path("test_f_bugs.py").read_text()
    assert written_outcome() == "1 failed"


def test_a_slow_call_that_is_right_in_the_end_has_no_test(attack, capsys):
    slow = "import time\ndef f(n):\n    while time.process_time() < 0.6: pass\n    return n\n"
    texts = {"solution": slow, "reference": SAME, "tests": asserts([0])}
    assert attack(texts, "--reference", "reference.py", "--no-mutate") == 1
    assert "(no minimal call: slow but right" in capsys.readouterr().out
    assert not Path("test_f_bugs.py").exists()


def test_a_byte_order_mark_is_read_over(attack):
    texts = {"solution": "\ufeff" + SAME, "reference": "\ufeff" + SAME, "tests": "\ufeff" + asserts([1])}
    assert attack(texts, "--reference", "reference.py") == 0
