"""One sandbox with the limits of an attack, in the place of the one that a command would start."""

import contextlib
import shutil
import subprocess
import sys

import pytest

from code_a1_recipe.tools.bug_finder import command as attack_command
from sandbox import LocalRunner


@pytest.fixture(scope="session")
def runner():
    with LocalRunner(limits=attack_command.LIMITS) as started:
        yield started


@pytest.fixture
def attacks_with(monkeypatch):
    """``attacks_with(runner)``: commands use it, and leave it open."""
    return lambda runner: monkeypatch.setattr(
        attack_command, "LocalRunner", lambda **options: contextlib.nullcontext(runner)
    )


def outcomes_of_pytest(root, programs):
    """Run plain pytest once on written tests, each file beside the program that it is to test.

    ``programs`` maps a folder's name to (program, written file); returned are ``{name: {"PASSED", ...}}``.
    """
    for name, (text, test_file) in programs.items():
        (root / name).mkdir(parents=True)
        (root / name / "solution.py").write_text(text, encoding="utf-8")
        shutil.copy(test_file, root / name / "test_bugs.py")
    options = ["-q", "-rA", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", str(root)]
    command = [sys.executable, "-m", "pytest", *options, *programs]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    words = [line.split("::")[0].split() for line in done.stdout.splitlines() if "::" in line]
    found = {name: {word[0] for word in words if word[-1] == f"{name}/test_bugs.py"} for name in programs}
    assert all(found.values()), done.stdout
    return found
