"""What an attack must not keep to itself: calls never made, tests never written."""

from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.tools.bug_finder import command as attack_command, search as attack_module
from sandbox import Call, CallResult, CallStatus
from sandbox.text import TOTAL_SPENT, Gate

from .conftest import outcomes_of_pytest

SAME = "def f(n):\n    return n\n"
QUICKLY = ("--reference", "reference.py", "--max-calls", "1")
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


@pytest.fixture
def short_hangs(monkeypatch):
    monkeypatch.setattr(attack_module, "HANG_SECONDS", 0.6)


@pytest.fixture
def attack(monkeypatch, runner, attacks_with, tmp_path):
    """``attack(texts, *words)``: the command on files of these texts, in the module's sandbox."""
    attacks_with(runner)
    monkeypatch.chdir(tmp_path)

    def run(texts, *words):
        for name, text in texts.items():
            Path(f"{name}.py").write_text(text, encoding="utf-8")
        return main(["attack", "solution.py", "--suites", "tests.py", "--entry", "f", *words])

    return run


def asserts(numbers):
    return "".join(f"assert f({number}) == {number}\n" for number in numbers)


def test_calls_that_stay_unasked_are_counted_and_are_not_nothing_found(attack, capsys, monkeypatch):
    monkeypatch.setattr(attack_command, "LIMITS", replace(attack_command.LIMITS, total_seconds=0.4))
    texts = {"solution": SLOW_LAST, "reference": SAME, "tests": asserts(range(20))}
    assert attack(texts, *QUICKLY) == 1
    *_, told, last = capsys.readouterr().out.splitlines()
    assert told.startswith("not complete: no time was left for 1")
    assert last == "nothing found in the other calls"


def test_a_wrong_value_is_found_behind_many_calls_that_hang(attack, capsys, short_hangs):
    texts = {"solution": HANGS, "reference": SAME, "tests": asserts([*range(6, 18), -3])}
    assert attack(texts, *QUICKLY) == 1
    assert "assert f(-3) == -3  # your function: 99" in capsys.readouterr().out


def test_a_references_calls_beyond_its_total_time_are_counted(runner):
    limits = replace(attack_command.LIMITS, total_seconds=0.45)
    gate = Gate(SLOW_LAST, ("f",), assert_chars=100)
    slow = SLOW_LAST.replace("0.04", "0.02")
    search = attack_module.Attack(source=SAME, reference=slow, runner=runner, limits=limits, gate=gate)
    assert 0 < len(search.expect([Call(expression=f"f({number})") for number in range(80)])) < 80
    assert search.refusals == {attack_module.NOT_ASKED: len(search.unasked)}


def test_where_nothing_is_compared_the_attack_is_refused(attack, capsys):
    raises = "def f(n):\n    raise ValueError(n)\n"
    texts = {"solution": SAME, "other": raises, "tests": asserts([1])}
    assert attack(texts, "--reference", "other.py", "--max-calls", "1") == 2
    assert "got no value (reference_raised 1)" in capsys.readouterr().err


def test_an_unasked_call_is_no_incorrect_assertion():
    case = Gate(SAME, ("f",), assert_chars=100).suite(["assert f(1) == 1"]).cases[0]
    spent = CallResult(status=CallStatus.TIMED_OUT, detail=TOTAL_SPENT)
    assert attack_command.contradictions([case], {case.call: spent}) == []


def test_a_call_that_dies_after_the_time_limit_has_a_test(attack, capsys, tmp_path):
    dies = "import os, time\ndef f(n):\n    while time.process_time() < 0.6: pass\n    os._exit(0)\n"
    texts = {"solution": dies, "reference": SAME, "tests": asserts([1])}
    assert attack(texts, *QUICKLY) == 1
    assert "(1 test; run" in capsys.readouterr().out
    written = tmp_path / "test_f_bugs.py"
    assert written.read_text().count("def test_1_the_process_ends()") == 1
    assert outcomes_of_pytest(tmp_path, {"again": (dies, written)}) == {"again": {"FAILED"}}


def test_a_slow_call_that_is_right_in_the_end_has_no_test(attack, capsys):
    slow = "import time\ndef f(n):\n    while time.process_time() < 0.6: pass\n    return n\n"
    texts = {"solution": slow, "reference": SAME, "tests": asserts([0])}
    assert attack(texts, *QUICKLY) == 1
    assert "(no minimal call: the call is slow but correct" in capsys.readouterr().out
    assert not Path("test_f_bugs.py").exists()
