"""The command that runs tests against mutants: what it calls killed, timed out, survived and equivalent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .run import TESTS, Project, function_spans, read_equivalents

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


FRESH = """
import json, pathlib, sys

sys.path.insert(0, sys.argv[1])
from run import Project, Trial, prepare

prepare()
root, module, texts = pathlib.Path(sys.argv[2]), sys.argv[3], json.load(sys.stdin)
project = Project(root, {module: ("test_sums.py",)}, jobs=2)
seen = {"baseline": project.baseline(module)}
trials = [Trial(module=module, text=text) for text in texts]
seen["outcomes"] = {outcome.trial.text: outcome.status for outcome in project.run(trials, cpu_limit=3)}
try:
    Project(root, {module: ("no_such_test.py",)}, jobs=1).baseline(module)
except ValueError as error:
    seen["failing"] = str(error)
pathlib.Path("seen.json").write_text(json.dumps(seen))
"""


def changed(old, new):
    assert MODULE.count(old) == 1
    return MODULE.replace(old, new)


EXPECTED = {
    changed("result += numbers[0]", "result -= numbers[0]"): "killed",
    changed("def total", "def another_name"): "killed",
    changed("while numbers", "while True or numbers"): "killed",
    changed("numbers = numbers[1:]", "pass"): "timed_out",
    changed("a + 1", "a - 1"): "survived",
}


@pytest.fixture(scope="module")
def seen(project):
    """What a process of its own found: mutants are forked, and a process that runs tests has several threads."""
    module = next(iter(project.tests))
    command = [sys.executable, "-c", FRESH, Path(__file__).parent, project.root, module]
    subprocess.run(command, input=json.dumps(list(EXPECTED)), text=True, check=True, cwd=project.root)
    return json.loads((project.root / "seen.json").read_text())


@pytest.mark.nightly
def test_outcomes_of_mutants(seen):
    assert seen["outcomes"] == EXPECTED


@pytest.mark.nightly
def test_the_baseline_is_what_the_tests_take(seen):
    assert 0 < seen["baseline"] < 60


@pytest.mark.nightly
def test_tests_that_fail_anyway_kill_nothing(seen):
    assert "fail without any mutant" in seen["failing"]


def test_every_listed_file_and_equivalent_is_there(repository):
    for module, files in TESTS.items():
        assert (repository / module).is_file(), module
        assert [name for name in files if not (repository / name).is_file()] == []
    for module, function, before, _ in read_equivalents(repository / "tests/mutation/equivalent.toml"):
        source = (repository / module).read_text()
        assert function in {name for _, _, name in function_spans(source)}, (module, function)
        flat = " ".join(line.strip() for line in source.splitlines())
        assert before in flat, (module, before)
