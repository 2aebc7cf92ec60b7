"""``code-a1 data prepare --rates``: questions stay or go by the verdicts of ``code-a1 eval code``."""

import re
from collections import Counter

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.files import json_lines

from ..evaluate.stand_in_endpoint import StandInEndpoint
from .conftest import card_in, row

NAMES = ("alpha", "bravo2", "charlie", "delta")
NUM_SOLVED = {"alpha": 0, "bravo2": 1, "charlie": 2, "delta": 4}
"""Of 4 programs."""
ROWS = [row(name) for name in NAMES]


def verdicts_of(solved, number=4):
    """Rows as ``eval code`` writes them: of each question's programs the first ones pass."""
    return [
        {"question": name, "sample": sample, "passed": sample < passes, "outage": ""}
        for name, passes in solved.items()
        for sample in range(number)
    ]


@pytest.fixture
def rates(tmp_path):
    """``rates(rows)``: an output folder of ``eval code`` with these verdicts."""

    def to_folder(rows):
        (tmp_path / "rated").mkdir(exist_ok=True)
        (tmp_path / "rated" / "verdicts.jsonl").write_text(json_lines(rows))
        return tmp_path / "rated"

    return to_folder


def test_questions_that_are_solved_sometimes_stay_bounds_included(run, write, dropped, rates, tmp_path, kept):
    folder = rates(verdicts_of(NUM_SOLVED))
    status, out, _ = run(write(*ROWS), "--rates", folder, "--keep", "0.25", "0.5")
    assert (status, kept()) == (0, ["bravo2", "charlie"])
    assert {name: (line["reason"], line["detail"]) for name, line in dropped().items()} == {
        "alpha": ("too_hard", "0 of 4 programs solve it"),
        "delta": ("too_easy", "4 of 4 programs solve it"),
    }
    shown = "solve them: 0/4: 1, 1/4: 1, 2/4: 1, 4/4: 1; --keep 0.25 0.5"
    assert shown in out
    card = card_in(tmp_path)
    assert f"{shown}.\n" in card
    assert "| too_easy | 1 |" in card


def test_without_a_range_only_what_is_nearly_always_or_never_solved_goes(run, write, rates, kept):
    status, out, _ = run(write(*ROWS), "--rates", rates(verdicts_of(NUM_SOLVED)))
    assert (status, kept()) == (0, ["bravo2", "charlie"])
    assert "--keep 0.05 0.95" in out


def test_what_goes_for_another_reason_is_not_counted(run, write, dropped, rates):
    bad = row("echo", tests=["assert echo(1) == 77"])
    again = row("foxtrot", prompt=ROWS[1]["prompt"])
    folder = rates(verdicts_of(NUM_SOLVED | {"echo": 2, "foxtrot": 2}))
    _, out, _ = run(write(*ROWS, bad, again), "--rates", folder, "--keep", "0", "1")
    assert "solve them: 0/4: 1, 1/4: 1, 2/4: 1, 4/4: 1;" in out
    assert {name: line["reason"] for name, line in dropped().items()} == {
        "echo": "reference_fails",
        "foxtrot": "duplicate_prompt",
    }


def test_a_question_without_all_its_verdicts_goes_and_the_command_is_named(run, write, dropped, rates, kept):
    rows = verdicts_of({"alpha": 2, "bravo2": 2, "charlie": 2})
    rows[0] |= {"passed": None, "outage": "the sandbox is on fire"}
    path, folder = write(*ROWS), rates(rows)
    status, out, _ = run(path, "--rates", folder)
    assert (status, kept()) == (0, ["bravo2", "charlie"])
    assert "left out: not_rated 2" in out
    assert {name: line["reason"] for name, line in dropped().items()} == {"alpha": "not_rated", "delta": "not_rated"}
    assert f"run `code-a1 eval code {path} --output {folder}` with the model" in dropped()["delta"]["detail"]


def test_when_no_question_is_left_the_rates_and_a_way_out_are_told(run, write, rates, tmp_path, kept):
    status, out, err = run(write(ROWS[0], ROWS[3]), "--rates", rates(verdicts_of(NUM_SOLVED)))
    assert "solve them: 0/4: 1, 4/4: 1; --keep 0.05 0.95" in out
    assert status == 1
    assert "no row is left" in err
    assert "widen --keep, or name other questions" in err
    assert kept() == []
    assert (tmp_path / "out.parquet.card.md").exists()


def test_the_folder_is_what_an_evaluation_writes(run, write, tmp_path, kept, capsys):
    asked = Counter()

    def answer(messages, seed):
        name = re.search(r"function (\w+), which", messages[-1]["content"])[1]
        asked[name] += 1
        added = len(name) if asked[name] <= NUM_SOLVED[name] else -1
        return f"```python\ndef {name}(x):\n    return x + {added}\n```"

    path, folder = write(*ROWS), tmp_path / "rated"
    with StandInEndpoint(answer) as model:
        words = ["eval", "code", str(path), *model.words, "--samples", "4", "--output", str(folder), "--workers", "1"]
        assert main([*words, "--temperature", "1"]) == 0
        assert run(path, "--rates", folder, "--keep", "0.25", "0.5")[0] == 0
        assert kept() == ["bravo2", "charlie"]
        assert main([*words, "--temperature", "0.5"]) == 0
    capsys.readouterr()
    status, _, err = run(path, "--rates", folder, "--overwrite")
    assert (status, "evaluate into a new folder" in err) == (2, True), "rates of two settings are not mixed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--keep 0.05 0.95", "name its folder with --rates FOLDER"),
        ("--rates {folder} --keep 0.9 0.1", "0 <= LOW <= HIGH <= 1, got 0.9 0.1"),
        ("--rates {folder} --keep nan 1", "got nan 1"),
        ("--rates /no/such/folder", "/no/such/folder: has no verdicts.jsonl; name the --output of `code-a1 eval code`"),
    ],
)
def test_bad_input_is_refused_before_any_work(run, write, judge, rates, tmp_path, arguments, words):
    folder = rates(verdicts_of(NUM_SOLVED))
    status, out, err = run(write(*ROWS), *arguments.format(folder=folder).split())
    assert (status, out, judge.num_requests) == (2, "", 0)
    assert words in " ".join(err.split())
    assert not list(tmp_path.glob("out.parquet*"))
