"""What setup installs: the pins of pyproject.toml agree with constraints/, and help needs no set-up."""

import re
import subprocess
import tomllib

import pytest


def pins_of_constraints(repository, flavour):
    lines = (repository / "constraints" / f"{flavour}.txt").read_text().splitlines()
    return dict(normalised(*line.split("==")) for line in lines if line and not line.startswith("#"))


def normalised(name, version):
    return re.sub(r"[-_.]+", "-", name).lower(), version


@pytest.mark.parametrize(("flavour", "extras"), [("cpu", ("cpu", "eval", "dev")), ("gpu", ("gpu", "eval", "dev"))])
def test_each_requirement_has_its_exact_version_in_the_constraints(repository, flavour, extras):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    pinned = pins_of_constraints(repository, flavour)
    missing, other = [], []
    for line in wanted:
        name, version = normalised(re.match(r"[\w.-]+", line)[0], line.partition("==")[2])
        if name not in pinned:
            missing.append(line)
        elif version and version != pinned[name]:
            other.append(f"{line}, constraints/{flavour}.txt has {pinned[name]}")
    assert (missing, other) == ([], [])


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["setup", "--help"]])
def test_help_before_anything_is_set_up_prints_and_installs_nothing(repository, tmp_path, words):
    done = subprocess.run(
        ["bash", "run_codea1.sh", *words],
        cwd=repository,
        env={"PATH": "/usr/bin:/bin", "CODE_A1_VENV": str(tmp_path / "venv")},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "train --help" in done.stdout
    assert not (tmp_path / "venv").exists()
