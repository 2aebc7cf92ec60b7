"""BigCodeBench: rows as its files have them, unit tests in the program's own process, and what is left out."""

import json
from dataclasses import replace

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.errors import InputError
from code_a1_recipe.evaluation.benchmarks.bigcodebench import (
    bigcodebench_tasks,
    is_installed,
    preloads,
    read_bigcodebench,
    read_outcomes,
)
from code_a1_recipe.evaluation.results import Results
from code_a1_recipe.evaluation.scoring.in_process import failing_references
from sandbox import CallResult, CallStatus, LocalRunner, SandboxUnavailableError, encode, probe

from ..stand_in_endpoint import StandInEndpoint

CODE_PROMPT = "import json\nfrom pathlib import Path\n\ndef task_func(path, factor=2):"
TESTS = """import unittest
from unittest.mock import patch


class TestCases(unittest.TestCase):
    def setUp(self):
        with open("numbers.json", "w") as handle:
            json.dump([1, 2], handle)

    def test_file(self):
        self.assertEqual(task_func("numbers.json"), [2, 4])

    def test_mock(self):
        with patch("json.loads", return_value=[5]) as loads:
            self.assertEqual(task_func("numbers.json", 3), [15])
        loads.assert_called_once()

    def test_module(self):
        self.assertIs(__import__("sys").modules["__test__"].task_func, task_func)
        self.assertTrue(sys.version and os.name and environ is not None)
"""
BODY = "    return [factor * n for n in json.loads(Path(path).read_text())]\n"
RIGHT = f"{CODE_PROMPT}\n{BODY}"
needs_files = pytest.mark.skipif(not probe()[1].is_available, reason="needs the sandbox's tier 1, which this lacks")


def row(**changes):
    return {
        "task_id": "BigCodeBench/0",
        "complete_prompt": f'{CODE_PROMPT}\n    """Read numbers and multiply them."""\n',
        "instruct_prompt": "Read numbers and multiply them. Start with:\n" + CODE_PROMPT,
        "canonical_solution": BODY,
        "code_prompt": CODE_PROMPT,
        "test": TESTS,
        "entry_point": "task_func",
        "doc_struct": "{}",
        "libs": "['json', 'pathlib']",
        **changes,
    }


def row_testing(body, **changes):
    """A row with other tests, the methods of the class."""
    source = "import unittest\n\n\nclass TestCases(unittest.TestCase):\n" + body
    return row(test=source, **changes)


def written(tmp_path, *rows):
    path = tmp_path / "bigcodebench.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(tier=1 if probe()[1].is_available else 0) as made:
        yield made


def task_of(tmp_path, runner, one, **options):
    tasks, counts = bigcodebench_tasks(read_bigcodebench(written(tmp_path, one)), runner, **options)
    assert counts == {}
    return tasks[0]


def reason(task, program):
    verdict = task.grading.grade([program])[0]
    assert verdict.passed is (verdict.reason == "")
    return verdict.reason


@needs_files
def test_tests_may_write_files_and_mock(tmp_path, runner):
    task = task_of(tmp_path, runner, row())
    assert task.grading.check_reference().passed
    assert reason(task, RIGHT) == ""
    assert (
        reason(task, RIGHT.replace("factor *", "2 *")) == "failed: test_mock AssertionError: Lists differ: [10] != [15]"
    )
    assert reason(task, RIGHT.replace("Path(path)", "Path('none')")).startswith("failed: test_file FileNotFoundError")


@needs_files
def test_plots_are_drawn_without_a_screen(tmp_path, runner):
    pytest.importorskip("matplotlib")
    stub = "import matplotlib.pyplot as plt\n\ndef task_func(values):"
    body = "    _, axes = plt.subplots()\n    axes.plot(values)\n    axes.set_title('Values')\n    return axes\n"
    tests = (
        "    def test_title(self):\n        axes = task_func([1, 2])\n"
        "        self.assertEqual(axes.get_title(), 'Values')\n        plt.savefig('plot.png')\n"
    )
    one = row_testing(tests, code_prompt=stub, complete_prompt=stub, canonical_solution=body, libs="['matplotlib']")
    task = task_of(tmp_path, runner, one)
    assert reason(task, f"{stub}\n{body}") == ""
    assert reason(task, f"{stub}\n{body}".replace("'Values'", "''")).startswith("failed: test_title AssertionError")


def test_a_calibrated_program_finds_the_imports_of_its_task(tmp_path, runner):
    one = row_testing("    def test_it(self):\n        self.assertEqual(task_func('3'), 6)\n")
    program = "from __future__ import annotations\n\ndef task_func(text):\n    return 2 * json.loads(text)\n"
    assert reason(task_of(tmp_path, runner, one), program) == ""
    uncalibrated = task_of(tmp_path, runner, one, calibrated=False)
    assert reason(uncalibrated, program).startswith("failed: test_it NameError: name 'json' is not defined")
    assert reason(uncalibrated, "import json\n" + program.partition("\n")[2]) == ""
    assert reason(task_of(tmp_path, runner, one), "x = 1").startswith(
        "failed: test_it AssertionError: None != 6"
    )  # the stub


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    def test_a(self):\n        self.fail('no')\n", "failed: test_a AssertionError: no"),
        ("    def test_a(self):\n        raise SystemExit\n", "failed: test_a SystemExit"),
        ("    def test_a(self):\n        self.skipTest('later')\n", ""),
        (
            "    def test_a(self):\n        for i in range(2):\n            with self.subTest(i=i):\n"
            "                self.assertEqual(i, 0)\n",
            "failed: test_a AssertionError: 1 != 0",
        ),
        (
            "    @classmethod\n    def setUpClass(cls):\n        raise OSError('no disk')\n"
            "    def test_a(self):\n        pass\n",
            "failed: setUpClass OSError: no disk",
        ),
        (
            "    def test_a(self):\n        pass\n    def test_b(self):\n        1 / 0\n",
            "failed: test_b ZeroDivisionError",
        ),
        ("    async def test_a(self):\n        pass\n", ""),
        ("    def test_a(self):\n        os._exit(0)\n", "died: exited with status 0"),
    ],
)
def test_a_task_is_passed_when_no_test_fails_or_raises(tmp_path, runner, body, told):
    found = reason(task_of(tmp_path, runner, row_testing(body)), RIGHT)
    assert found.startswith(told)
    assert bool(found) is bool(told)


def test_a_program_that_does_not_load_or_ends_it_all_fails(tmp_path, runner):
    task = task_of(tmp_path, runner, row_testing("    def test_a(self):\n        pass\n"))
    assert reason(task, "def task_func(:").startswith("not loaded: SyntaxError")
    assert reason(task, "import sys\nsys.exit()").startswith("not loaded: SystemExit")


def test_a_program_that_hangs_ends_with_its_task(tmp_path, runner):
    task = task_of(tmp_path, runner, row_testing("    def test_a(self):\n        task_func(1)\n"))
    limits = task.grading.tests.limits
    assert (limits.cpu_seconds_per_case, limits.wall_seconds_per_case) == (30, 30)
    short = replace(limits, cpu_seconds_per_case=0.2, wall_seconds_per_case=0.5)
    grading = replace(task.grading, tests=replace(task.grading.tests, limits=short))
    for body in ("while True: pass", "__import__('time').sleep(60)"):
        verdict = grading.grade([f"def task_func(x):\n    {body}\n"])[0]
        assert verdict.reason.startswith("timed_out:")


@pytest.mark.parametrize(("num_tests", "seconds"), [(1, 30), (3, 30), (4, 40), (24, 240), (25, 240)])
def test_the_time_of_a_task_grows_with_its_tests(tmp_path, runner, num_tests, seconds):
    methods = "".join(f"    def test_{n}(self):\n        pass\n" for n in range(num_tests))
    assert task_of(tmp_path, runner, row_testing(methods)).grading.tests.limits.cpu_seconds_per_case == seconds


def test_a_program_can_forge_its_outcome_as_the_module_says(tmp_path, runner):
    task = task_of(tmp_path, runner, row_testing("    def test_a(self):\n        self.assertEqual(task_func(1), 7)\n"))
    forger = "import unittest\nunittest.TestCase.assertEqual = lambda *_: None\ndef task_func(x):\n    return 0\n"
    assert reason(task, forger) == ""


def answer(value):
    return CallResult(status=CallStatus.VALUE, value=encode(value))


def test_outcomes_are_read_from_an_untrusted_process():
    assert read_outcomes(answer([["test_a", "passed", ""]])) == [("test_a", "passed", "")]
    for value in (None, "x", [1], [["a"]], [["a", "passed", 1]], {"a": 1}):
        assert read_outcomes(answer(value)) is None
    assert read_outcomes(CallResult(status=CallStatus.VALUE, value=b"garbage")) is None
    assert read_outcomes(CallResult(status=CallStatus.DIED)) is None


def test_a_test_that_was_not_told_about_is_not_passed(tmp_path, runner):
    task = task_of(
        tmp_path, runner, row_testing("    def test_a(self):\n        pass\n    def test_b(self):\n        pass\n")
    )
    failure_of = task.grading.tests.failure_of
    assert failure_of("", answer([["test_a", "passed", ""], ["test_b", "passed", ""]])) == ""
    assert failure_of("", answer([["test_a", "passed", ""]])) == "not run: test_b"
    assert failure_of("", answer([])) == "not run: test_a, test_b"


def test_tasks_whose_libraries_are_missing_are_left_out_and_listed(tmp_path, runner):
    lacking = row(task_id="BigCodeBench/1", code_prompt="import no_such_library\n" + CODE_PROMPT)
    by_column = row(task_id="BigCodeBench/2", libs="['no_such_library', 'nor_this.part']")
    rows = read_bigcodebench(written(tmp_path, row(), lacking, by_column))
    assert [one.missing for one in rows] == [(), ("no_such_library",), ("no_such_library", "nor_this")]
    tasks, counts = bigcodebench_tasks(rows, runner)
    assert [task.id for task in tasks] == ["BigCodeBench/0"]
    assert counts == {
        "BigCodeBench tasks left out": 2,
        "libraries that are missing": "no_such_library (2), nor_this (1)",
    }


def test_libraries_are_looked_for_and_never_imported(tmp_path, monkeypatch):
    (tmp_path / "trap_library.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert is_installed("trap_library")
    assert not is_installed("no_such_library")
    rows = read_bigcodebench(written(tmp_path, row(libs="['numpy', 'json']")))
    assert preloads(rows) == ("numpy",)


@pytest.mark.parametrize(("split", "begins"), [("instruct", "Read numbers"), ("complete", "import json")])
def test_either_prompt_may_be_asked(tmp_path, runner, split, begins):
    task = task_of(tmp_path, runner, row(), split=split)
    assert task.prompt.startswith(begins)
    assert task.data_source == f"BigCodeBench {split}"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"test": "x ="}, "column 'test': must be Python 3"),
        ({"test": "import unittest\n"}, "column 'test': must define a class TestCases with a method test..."),
        ({"test": TESTS.replace("TestCases", "Tests")}, "column 'test': must define a class TestCases"),
        ({"canonical_solution": "return ("}, "column 'canonical_solution': must be Python 3"),
        ({"code_prompt": None}, "column 'code_prompt': must be a string, got NoneType"),
        ({"instruct_prompt": 1}, "column 'instruct_prompt': must be a string, got int"),
        ({"libs": "['a'"}, "column 'libs': must be a list of names or its text"),
        ({"libs": "[1]"}, "column 'libs': must be a list of names or its text"),
        ({"task_id": 3}, "column 'task_id': must be a string, got int"),
    ],
)
def test_a_bad_row_is_refused_with_its_place_and_a_cure(tmp_path, changes, told):
    path = written(tmp_path, row(), row(**changes))
    with pytest.raises(InputError) as error:
        read_bigcodebench(path)
    assert str(error.value).startswith(f"{path}: row 1, {told}")
    assert str(error.value).endswith("take the file as bigcode/bigcodebench has it, or remove the row")


def test_references_that_fail_here_are_found_once_and_tried_again(tmp_path, runner):
    good = row_testing("    def test_a(self):\n        self.assertEqual(task_func.__name__, 'task_func')\n")
    bad = row_testing("    def test_a(self):\n        open('missing')\n", task_id="BigCodeBench/1")
    tasks, _ = bigcodebench_tasks(read_bigcodebench(written(tmp_path, good, bad)), runner)
    failing = failing_references(tasks, tmp_path, num_workers=1)
    assert list(failing) == ["BigCodeBench/1"]
    assert failing["BigCodeBench/1"].startswith("failed: test_a FileNotFoundError")
    rows = [json.loads(line) for line in (tmp_path / "references.jsonl").read_text().splitlines()]
    assert sorted((one["question"], one["passed"]) for one in rows) == [
        ("BigCodeBench/0", True),
        ("BigCodeBench/1", False),
    ]
    with LocalRunner() as closed:
        pass
    halted = [replace(task, grading=replace(task.grading, runner=closed)) for task in tasks]
    assert failing_references(halted[:1], tmp_path, num_workers=1) == {}  # known
    with pytest.raises(SandboxUnavailableError):
        failing_references(halted, tmp_path, num_workers=1)


def test_eval_code_tells_what_was_left_out_and_what_the_verdicts_are_good_for(tmp_path, capsys):
    good = row_testing("    def test_a(self):\n        self.assertEqual(task_func(3), 6)\n")
    good |= {"complete_prompt": "def task_func(x):", "canonical_solution": "    return 2 * x\n"}
    failing = {**good, "task_id": "BigCodeBench/1", "canonical_solution": "    return x\n"}
    lacking = {**good, "task_id": "BigCodeBench/2", "libs": "['no_such_library']"}
    path = written(tmp_path, good, failing, lacking)
    program = "```python\ndef task_func(x):\n    return x + x\n```"
    with StandInEndpoint(lambda messages, seed: program) as server:
        words = [str(path), "--output", str(tmp_path / "out"), "--endpoint", server.url, "--endpoint-model", "stand-in"]
        assert main(["eval", "code", *words, "--workers", "1"]) == 0
        assert main(["eval", "code", *words, "--workers", "1", "--no-bigcodebench-calibrated"]) == 2
    results = Results.load(tmp_path / "out")
    assert results.parts["pass@1"] == {"BigCodeBench/0": [1.0, 1.0]}
    assert results.counts["BigCodeBench tasks left out"] == 1
    assert results.counts["libraries that are missing"] == "no_such_library (1)"
    assert results.counts["problems graded in the program's own process, which could forge the outcome"] == 1
    assert results.counts["problems left out because their own reference fails here"].startswith("1 (BigCodeBench/1;")
    told = capsys.readouterr()
    assert "which could forge the outcome: 1" in told.out
    assert "bigcodebench_calibrated was null, now is false" in told.err
