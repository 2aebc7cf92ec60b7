"""``python -m examples.simulator``: tables, what they say of themselves, and refusals."""

import pytest
import yaml

from examples.simulator.__main__ import main

from .run_folders import write_run
from .test_calibration import true_rates

SMALL = ["paper_1.5b", "questions=4", "num_candidates=2", "num_suites=2"]


def shown(capsys, *words, status=0):
    assert main(list(words)) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


def test_all_layouts_and_modes_stand_in_one_table(capsys):
    text = shown(capsys, *SMALL)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert [row[:2] for row in cells] == [
        ["colocated", "streaming"],
        ["colocated", "barrier"],
        ["separate", "streaming"],
        ["separate", "barrier"],
    ]
    assert cells[-1][-1] == "1.00"
    assert "Q 4, C 2, S 2" in text


def test_a_table_says_that_its_rates_are_assumed(capsys):
    assert "Rates are ASSUMED (derived by arithmetic, not measured)" in shown(capsys, *SMALL)


def test_one_layout_is_still_compared_with_the_baseline(capsys):
    lines = shown(capsys, *SMALL, "--layout", "colocated", "--mode", "streaming").strip().splitlines()
    assert lines[-1].split("|")[1:4] == [" colocated ", " streaming ", " 8    "]
    assert float(lines[-1].strip("| ").split("|")[-1]) > 0


def test_numbers_of_gpus_and_values_of_a_key_give_a_table_each(capsys):
    text = shown(capsys, *SMALL, "--layout", "colocated", "--gpus", "2", "4")
    assert text.count("| colocated | streaming |") == 2
    text = shown(capsys, *SMALL, "--layout", "colocated", "--sweep", "program_tokens.sigma=0.1,1.0")
    assert "program_tokens.sigma=0.1;" in text
    assert text.count("| colocated | streaming |") == 2


def test_a_split_can_be_given(capsys):
    assert "| separate | barrier   | 6 + 2 |" in shown(capsys, *SMALL, "--layout", "separate", "--code-gpus", "6")
    message = "the Code LLM's GPUs must be fewer than all 8, so that the Test LLM has one, got 8"
    assert message in shown(capsys, *SMALL, "--code-gpus", "8", status=2)


def test_one_gpu_has_nothing_to_split(capsys):
    text = shown(capsys, *SMALL, "--gpus", "1")
    assert "separate |" not in text
    assert "layout separate needs a GPU for each policy; got 1 GPU" in shown(
        capsys, *SMALL, "--gpus", "1", "--layout", "separate", status=2
    )


def test_changes_may_follow_the_numbers_of_gpus(capsys):
    text = shown(capsys, "--gpus", "1", "2", *SMALL[1:], "--layout", "colocated")
    assert text.count("Q 4, C 2, S 2") == text.count("| colocated | streaming |") == 2
    assert text == shown(capsys, *SMALL, "--gpus", "1", "2", "--layout", "colocated")


def test_a_split_of_a_machine_without_gpus_is_refused(capsys):
    message = "the Code LLM's GPUs must be left out where the machine has none (machine.servers_on_host), got 1"
    assert message in shown(capsys, *SMALL, "machine.servers_on_host=true", "--code-gpus", "1", status=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus", "0"], "--gpus must be integers of at least 1, got '0'"),
        (["--gpus", "8", "paper_7b"], "got 'paper_7b'; a file of rates stands before it"),
        (["--gpus", "questions=8"], "--gpus must have a number of GPUs, got only questions=8; write --gpus N"),
        (["--output", "x.yaml"], "writes its rates, got 'x.yaml' without it; add --calibrate RUN ..., or leave"),
        (["--cores", "2"], "got 2 without either; to predict for another host write machine.host_cores=N"),
        (["--check", "a", "b", "--cores", "0.5"], "--cores must be a finite number of at least 1, got 0.5; leave it"),
        (["--calibrate", "a", "--output", "x.yaml", "--cores", "-3"], "--cores must be a finite number of at least 1"),
        (["--check", "a", "b", "--cores", "nan"], "--cores must be a finite number of at least 1, got nan"),
        (["--code-gpus", "3", "--layout", "colocated"], "got 3 with --layout colocated, where both policies have all"),
        (["nowhere.yaml"], "no rates 'nowhere.yaml'"),
        (["qestions=3"], "unknown key 'qestions'"),
        (["--sweep", "questions"], "--sweep must be KEY=VALUE,VALUE,..."),
        (["--calibrate", "here"], "--calibrate needs --output FILE.yaml"),
        (["--check", "here"], "here cannot be read as a run folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(capsys, words, message):
    assert message in shown(capsys, *words, status=2)


def test_calibrated_rates_are_read_again_and_say_so(capsys, tmp_path):
    folder = write_run(tmp_path / "run", true_rates(), num_steps=1)
    path = tmp_path / "rates.yaml"
    assert "fitted to run" in shown(capsys, "--calibrate", str(folder), "--output", str(path), "--cores", "2")
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["machine"]["host_cores"] == 2.0
    text = shown(capsys, str(path))
    assert "no GPU; Q 4, C 3, S 4" in text
    assert "Rates are MEASURED (fitted to runs): fitted to run" in text
