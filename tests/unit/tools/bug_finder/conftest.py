"""Judge processes with the limits of an attack, in the place of those that a command would start."""

import contextlib
import shutil
import subprocess
import sys

import pytest

from code_a1_recipe.jobs.confinement import Confinement
from code_a1_recipe.tools.bug_finder.command import LIMITS


@pytest.fixture(scope="session")
def judges():
    with Confinement(limits=LIMITS).judges(1) as started:
        yield started


@pytest.fixture
def attacks_with(monkeypatch):
    """``attacks_with(judges)``: commands use them, and leave them open."""
    return lambda judges: monkeypatch.setattr(
        Confinement, "judges", lambda self, num_workers: contextlib.nullcontext(judges)
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
