"""The command that runs tests against mutants: what it calls killed, timed out, survived and equivalent."""

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

from .run import (
    TESTS,
    Project,
    Trial,
    changed_lines,
    function_spans,
    innermost,
    prepare,
    read_equivalents,
    report_row,
    wanted,
)

MODULE = """\
def total(numbers):
    result = 0
    while numbers:
        result += numbers[0]
        numbers = numbers[1:]
    return result


def untested(a):
    return a + 1
"""
TEST = """\
from mutated_package.sums import total


def test_total():
    assert total([1, 2, 4]) == 7
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    for name, text in {
        "mutated_package/__init__.py": "",
        "mutated_package/sums.py": MODULE,
        "test_sums.py": TEST,
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return Project(root, {"mutated_package/sums.py": ("test_sums.py",)}, jobs=2)


@pytest.fixture
def fresh_process():
    """Mutants are forked, which only a process with a single thread may do; one that runs tests has several."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=prepare) as executor:
        yield executor


def outcomes_of(project, trials, cpu_limit):
    return {outcome.trial: outcome.status for outcome in project.run(trials, cpu_limit=cpu_limit)}


def changed(old, new):
    assert MODULE.count(old) == 1
    return Trial(module="mutated_package/sums.py", text=MODULE.replace(old, new))


def test_outcomes_of_mutants(project, fresh_process):
    trials = {
        changed("result += numbers[0]", "result -= numbers[0]"): "killed",
        changed("def total", "def another_name"): "killed",
        changed("while numbers", "while True or numbers"): "killed",
        changed("numbers = numbers[1:]", "pass"): "timed_out",
        changed("a + 1", "a - 1"): "survived",
    }
    assert fresh_process.submit(outcomes_of, project, list(trials), 3).result() == trials


def test_the_baseline_is_what_the_tests_take(project, fresh_process):
    assert 0 < fresh_process.submit(project.baseline, "mutated_package/sums.py").result() < 60


def test_tests_that_fail_anyway_kill_nothing(project, fresh_process):
    failing = Project(project.root, {"mutated_package/sums.py": ("no_such_test.py",)}, jobs=1)
    with pytest.raises(ValueError, match="fail without any mutant"):
        fresh_process.submit(failing.baseline, "mutated_package/sums.py").result()


def test_mutants_know_their_place(project):
    trials = project.trials("mutated_package/sums.py")
    assert {trial.function for trial in trials} == {"total", "untested"}
    minus = next(trial for trial in trials if trial.after == "return a - 1")
    assert (minus.line, minus.before, minus.operator) == (10, "return a + 1", "ReplaceBinaryOperator_Add_Sub")


def test_functions_are_named_by_the_innermost():
    source = "class A:\n    def f(self):\n        def g():\n            return 1\n        return g\nx = 1\n"
    spans = function_spans(source)
    assert [innermost(spans, line) for line in (2, 4, 5, 6)] == ["A.f", "A.f.g", "A.f", ""]
    assert changed_lines("-  a\n-  b\n+  c", "-") == "a b"


def test_patterns_name_modules():
    tests = {"pack/replay.py": (), "pack/spans.py": ()}
    assert wanted(tests, []) == list(tests)
    assert wanted(tests, ["spans", "pack/*.py"]) == ["pack/spans.py", "pack/replay.py"]
    with pytest.raises(ValueError, match=r"no module matches 'repaly'; known: pack/replay.py"):
        wanted(tests, ["repaly"])


def test_a_row_counts_survivors_that_are_not_equivalent():
    row = report_row("m", Counter(killed=6, timed_out=1, equivalent=2, survived=1))
    assert row == "| m | 10 | 6 | 1 | 2 | 1 | 70.0% |"


def test_every_listed_file_and_equivalent_is_there(repository):
    for module, files in TESTS.items():
        assert (repository / module).is_file(), module
        assert [name for name in files if not (repository / name).is_file()] == []
    for module, function, before, _ in read_equivalents(repository / "tests/mutation/equivalent.toml"):
        source = (repository / module).read_text()
        assert function in {name for _, _, name in function_spans(source)}, (module, function)
        flat = " ".join(line.strip() for line in source.splitlines())
        assert before in flat, (module, before)


def test_an_equivalent_without_a_reason_is_an_error(tmp_path):
    path = tmp_path / "equivalent.toml"
    assert read_equivalents(path) == {}
    path.write_text('[[mutant]]\nfile = "a.py"\nfunction = "f"\nbefore = "x"\nafter = "y"\n')
    with pytest.raises(ValueError, match="needs file, function, before, after and reason"):
        read_equivalents(path)
