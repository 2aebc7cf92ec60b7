"""Testers write suites for programs, in confinement, and are judged like a Test LLM."""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.cli.app import main as code_a1
from code_a1_recipe.errors import InputError
from code_a1_recipe.evaluation.results import Results
from examples.baselines import confine, questions as subsets
from examples.baselines.__main__ import function_under_test, main
from examples.baselines.confine import run_confined
from examples.baselines.detect import detect, read_written
from examples.baselines.observe import observed_asserts
from examples.baselines.testers import find_calls
from sandbox import JudgeProcesses, LocalRunner

SIZE = "def size(items):\n    while items and items[0] < 0:\n        pass\n    return len(items)\n"
LARGEST = {
    "id": "largest",
    "prompt": "Write largest(items).",
    "reference": "def largest(items):\n    return max(items) if items else 0\n",
    "entry_points": ["largest"],
    "tests": ["assert largest([1, 2]) == 2", "assert largest([3]) == 3"],
    "buggy_programs": ["def largest(items):\n    return max(items)\n"],
}
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop rights and enter namespaces here")
PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(num_workers=1) as started:
        yield started


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(LARGEST) + "\n", encoding="utf-8")
    return path


def question(reference, *names):
    return Question(id="q", prompt="p", reference=reference, entry_points=names)


def test_observed_calls_become_asserts_with_what_the_program_returned(runner):
    calls = ["size([1, 2])", "size([ 1, 2 ])", "other(1)", "size(x)", "size([-1])", "size(None)", "size(())"]
    asked = question(SIZE, "size")
    found = observed_asserts(asked, SIZE, calls, num_asserts=5, keep_failing=False, runner=runner)
    assert found == ["assert size([1, 2]) == 2", "assert size(()) == 0"]
    found = observed_asserts(asked, SIZE, calls, num_asserts=2, keep_failing=True, runner=runner)
    assert found == ["assert size([1, 2]) == 2", "assert size([-1]) == None"]
    assert (
        observed_asserts(asked, "import nothing_like_it", calls, num_asserts=5, keep_failing=True, runner=runner) == []
    )


def test_a_suite_detects_by_its_calls_whatever_it_expects(runner):
    row = {**LARGEST, "entry_points": ("largest",), "tests": (), "buggy_programs": tuple(LARGEST["buggy_programs"])}
    with JudgeProcesses(1) as judges:
        asked = Question(**row)
        found = detect(asked, ["assert largest([]) == None", "assert largest([5]) == 5"], judges.judge_all, None)
        assert (found.num_valid, found.num_correct, found.by_calls, found.as_written) == (2, 1, True, False)
        blind = detect(asked, ["assert largest([5]) == 5"], judges.judge_all, runner)
        assert (blind.by_calls, blind.by_attack) == (False, True)
        none = detect(asked, [], judges.judge_all, runner)
        assert (none.num_valid, none.by_calls, none.by_attack) == (0, False, False)


def test_the_kernel_ends_a_tool_that_spins_and_its_seconds_are_counted(monkeypatch):
    monkeypatch.setattr(confine, "EXTRA_CPU_SECONDS", 0)
    spin = "import sys\nprint('begun', flush=True)\nwhile True: pass\n"
    done = run_confined(PYTHON, ["spin.py"], files={"spin.py": spin}, cpu_seconds=1, confinement="limits")
    assert done.output == "begun\n"
    assert -done.exit_status in (signal.SIGXCPU, signal.SIGKILL)
    assert done.cpu_seconds >= 0.9


@is_root
def test_the_tool_has_no_network_no_rights_and_no_home():
    look = """
import os, socket
print(os.geteuid(), [name for _, name in socket.if_nameindex()])
for path in ("/etc/x", "/root/x", os.path.dirname(os.path.abspath("..")) + "/x"):
    try: open(path, "w"); print("wrote", path)
    except OSError: pass
open("mine", "w")
"""
    done = run_confined(PYTHON, ["look.py"], files={"look.py": look}, cpu_seconds=2)
    assert done.output == "65534 ['lo']\n", done.errors
    assert done.exit_status == 0


def test_sampled_calls_reach_the_lines_of_a_program():
    program = (
        "def f(a: int, b: list[str]):\n"
        "    if a > 5:\n"
        "        return b[0]\n"
        "    return sum(range(10**12)) if a == 3 else a\n"  # hangs where no signal handler runs
    )
    found = find_calls(
        "random", program, "f", python=PYTHON, cpu_seconds=1.5, num_calls=4, seed=0, confinement="limits"
    )
    calls = [call for call in found.calls if not call.startswith("f(3,")]
    firsts = [int(call[2:].split(",")[0]) for call in calls]
    assert any(one > 5 for one in firsts)
    assert any(one <= 5 for one in firsts)
    broken = find_calls(
        "random", "raise SystemExit(3)", "f", python=PYTHON, cpu_seconds=1, num_calls=4, seed=0, confinement="limits"
    )
    assert (broken.calls, broken.note[:12]) == ((), "exit status ")


@is_root
@pytest.mark.parametrize("tester", ["random", "hypothesis", "pynguin", "crosshair"])
def test_a_testers_suites_are_measured_like_a_test_llms(tester, file, tmp_path, capsys):
    if tester != "random" and importlib.util.find_spec(tester) is None:
        pytest.skip(f"{tester} is not installed here: requirements-{tester}.txt")
    written = tmp_path / "written.jsonl"
    words = ["write", str(file), "--tester", tester, "--output", str(written), "--seconds", "5", "--tests", "3"]
    assert main(words) == 0
    (row,) = [json.loads(line) for line in written.read_text().splitlines()]
    assert row["responses"][0].startswith("assert largest(")
    out = tmp_path / "out"
    assert code_a1(["eval", "test", str(file), "--written", str(written), "--tests", "3", "--output", str(out)]) == 0
    assert Results.load(out).parts["pass@1"] == {"largest": [1.0, 1.0]}
    assert main(["detect", str(file), "--written", str(written), "--output", str(tmp_path / "found.json")]) == 0
    assert "1 programs; by_calls" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["write", "{file}", "--tester", "evosuite"], "must be one of random, hypothesis, crosshair, pynguin"),
        (["write", "{file}", "--tester", "random", "--python", "/nowhere"], "--python must be an interpreter"),
        (["write", "/nowhere.jsonl", "--tester", "random"], "cannot be read"),
        (["detect", "{file}", "--written", "{file}"], "must hold 'question' and 'responses'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(words, told, file, tmp_path, capsys):
    words = [word.format(file=file) for word in words]
    assert main([*words, "--output", str(tmp_path / "out.jsonl")]) == 2
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert told in error
    assert "Traceback" not in error


def test_a_missing_tool_is_named_with_how_to_get_it(file, tmp_path, capsys):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    words = ["write", str(file), "--tester", "pynguin", "--python", str(python), "--output", str(tmp_path / "x.jsonl")]
    assert main(words) == 2
    assert "requirements-pynguin.txt" in capsys.readouterr().err


def test_the_function_under_test_is_a_top_level_function():
    assert function_under_test(question("def a(): pass\ndef b(): pass\n", "b")) == "b"
    assert function_under_test(question("def a(): pass\ndef b(): pass\n")) == "a"
    assert function_under_test(question("class A:\n    def b(self): pass\n", "A")) is None


def test_subsets_are_the_same_for_the_same_seed_and_testers_see_the_buggy_program(tmp_path):
    many = [Question(id=f"q{n}", prompt="p", reference=f"def f(): return {n}") for n in range(30)]
    assert subsets.chosen(many, 5, 1) == subsets.chosen(many, 5, 1) != subsets.chosen(many, 5, 2)
    assert subsets.chosen(many, 99, 1) == many
    bugs = subsets.shipped_bugs()
    assert len({one.id for one in bugs}) >= 24
    assert [one.reference for one in subsets.as_seen(bugs)] == [one.buggy_programs[0] for one in bugs]
    with pytest.raises(InputError, match="repository's root"):
        subsets.shipped_bugs(tmp_path / "none.py")


def test_the_mutant_of_a_question_is_one_that_its_own_tests_kill():
    asked = Question(
        id="q", prompt="p", reference="def f(x):\n    return x + 1\n", entry_points=("f",), tests=("assert f(2) == 3",)
    )
    untested = Question(id="u", prompt="p", reference=asked.reference, entry_points=("f",), tests=("assert f(2) == 9",))
    with JudgeProcesses(1) as judges:
        (found,) = subsets.with_one_mutant([asked, untested], 2, 0, judges.judge_all)
        assert found.id == "q"
        assert detect(found, asked.tests, judges.judge_all, None).as_written


def test_stored_responses_are_read_as_written_suites(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_text('{"session": "a", "text": "assert f(1) == 1"}\n{"session": "a", "text": "no"}\n')
    assert read_written(path) == {"a": ["assert f(1) == 1", "no"]}
    assert main(["collect", str(path), "--output", str(tmp_path / "w.jsonl")]) == 0
    assert read_written(tmp_path / "w.jsonl") == read_written(path)


def test_the_table_has_a_row_for_each_tester_that_was_recorded(file, tmp_path, capsys):
    written, found = tmp_path / "w.jsonl", tmp_path / "bugs.json"
    row = {"question": "largest", "responses": ["assert largest([]) == None"], "cpu_seconds": 2.5}
    written.write_text(json.dumps(row) + "\n")
    assert main(["detect", str(file), "--written", str(written), "--no-attack", "--output", str(found)]) == 0
    evaluated = tmp_path / "out"
    asked = ["eval", "test", str(file), "--own-tests", "--tests", "5", "--output", str(evaluated)]
    assert code_a1(asked) == 0
    record = tmp_path / "mine.json"
    words = ["--evaluated", str(evaluated), "--detected", str(found), "--written", str(written)]
    assert main(["record", "mine", "--output", str(record), *words]) == 0
    capsys.readouterr()
    assert main(["table", str(record)]) == 0
    head, _, line = capsys.readouterr().out.strip().splitlines()
    cells = dict(zip(head.split("|"), line.split("|"), strict=True))
    shown = {name.strip(): cell.strip() for name, cell in cells.items()}
    assert (shown["tester"], shown["CPU s"], shown["correct asserts (1)"][:4]) == ("mine", "2.5", "40.0")
    assert shown["bugs by its calls (1)"].startswith("100.0")
    assert "bugs by attack (1)" not in shown
    assert main(["table", str(written)]) == 2
    assert "must be JSON with 'tester'" in " ".join(capsys.readouterr().err.split())


def test_calls_of_suites_get_the_values_that_the_reference_returns(file, tmp_path):
    written, output = tmp_path / "w.jsonl", tmp_path / "observed.jsonl"
    suite = "assert largest([4]) == 9\nassert largest([None, 1]) == 1\nassert largest([]) == 0\nassert x == 1"
    written.write_text(json.dumps({"question": "largest", "responses": [suite]}) + "\n")
    assert main(["observe", str(file), "--written", str(written), "--output", str(output)]) == 0
    assert read_written(output) == {"largest": ["assert largest([4]) == 4\nassert largest([]) == 0"]}
    assert main(["observe", str(file), "--tests", "1", "--output", str(output)]) == 0
    assert read_written(output) == {"largest": ["assert largest([1, 2]) == 2"]}
