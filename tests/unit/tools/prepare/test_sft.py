"""``code-a1 data sft`` from the command line down: what it makes of questions, and what it refuses."""

from typing import NamedTuple

import pyarrow.parquet
import pytest

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.cli.app import main as command_line
from reward_fns import extract_suite

pytestmark = pytest.mark.usefixtures("one_judge")
SIGN = {
    "id": "sign",
    "prompt": "The sign of x, in f.",
    "reference": "def f(x):\n    if x > 0:\n        return 1\n    return -1 if x < 0 else 0",
    "tests": [f"assert f({x}) == {(x > 0) - (x < 0)}" for x in (-9, -2, 0, 3, 4, 5)],
    "buggy_programs": ["def f(x):\n    return 1 if x else 0", "def f(x):\n    return 1 if x > 0 else -1"],
}
DOUBLE = {
    "id": "double",
    "prompt": "Twice x, in f.",
    "reference": "def f(x):\n    return 2 * x",
    "tests": ["assert f(1) == 2", "assert f(5) == 11", "assert f('a') == 'aa'", "assert f(None) == 0"],
}


SIX = [DOUBLE | {"id": f"double{n}", "prompt": f"Twice, {n}"} for n in range(6)]


@pytest.fixture
def run_sft(tmp_path, write):
    """Run the command on questions; returns the exit status."""

    def run(*questions, arguments=("--val-frac", "0")):
        path = write(*questions, name="questions.jsonl")
        return main([str(path), "--output", str(tmp_path / "d.parquet"), "--workers", "1", *arguments])

    return run


@pytest.fixture
def make(tmp_path, capsys, run_sft):
    """Run the command on questions; returns exit status, text, training rows, validation rows, and the card."""

    def run(*questions, **arguments):
        status, card = run_sft(*questions, **arguments), tmp_path / "d.parquet.card.md"
        rows = [rows_of(tmp_path / name) for name in ("d.parquet", "d.val.parquet")]
        return Made(status, "".join(capsys.readouterr()), *rows, card.read_text() if card.exists() else "")

    return run


class Made(NamedTuple):
    status: int
    text: str
    rows: list
    held: list
    card: str

    @property
    def questions(self):
        return {row["extra_info"]["question"] for row in self.rows}


def main(words):
    return command_line(["data", "sft", *words])


def rows_of(path):
    return pyarrow.parquet.read_table(path).to_pylist() if path.exists() else []


def by_program(rows):
    """(what is shown, number of asserts that break it) -> the suite."""
    return {
        (row["extra_info"]["shown"], row["extra_info"]["num_breaking"]): extract_suite(row["messages"][-1]["content"])
        for row in rows
    }


def test_each_program_gets_right_asserts_that_break_it_where_some_do(make):
    made = make(SIGN, arguments=["--cases", "3", "--val-frac", "0"])
    suites = by_program(made.rows)
    assert set(suites) == {("reference", 0), ("buggy_program", 2), ("buggy_program", 1)}
    assert all(len(suite) == 3 and set(suite) <= set(SIGN["tests"]) for suite in suites.values())
    assert {"assert f(-9) == -1", "assert f(-2) == -1"} == set(suites["buggy_program", 2][:2])
    assert suites["buggy_program", 1][0] == "assert f(0) == 0"
    shown = [row["messages"][-2]["content"] for row in made.rows if row["extra_info"]["shown"] == "buggy_program"]
    assert all(any(program in text for program in SIGN["buggy_programs"]) for text in shown)


def test_every_assert_is_right_when_it_is_judged_again(make, judge_all):
    rows = make(SIGN, DOUBLE, arguments=["--mutants", "2", "--val-frac", "0"]).rows
    assert {row["extra_info"]["shown"] for row in rows} == {"reference", "buggy_program", "mutant"}
    for row in rows:
        question = {"sign": SIGN, "double": DOUBLE}[row["extra_info"]["question"]]
        program = row["messages"][-2]["content"].split("```python\n")[1].split("\n```")[0]
        asserts = extract_suite(row["messages"][-1]["content"])
        (verdict,) = judge_all([request_for(Question(**question), program, asserts)])
        (suite,) = verdict.suites
        assert suite.rejections == ()
        assert all(case.expected_correct for case in suite.cases)
        assert suite.num_failed == row["extra_info"]["num_breaking"]
        assert row["extra_info"]["shown"] != "mutant" or suite.num_failed > 0
        assert f"Write at least {len(suite.cases)} assert statements" in row["messages"][-2]["content"]


def test_tests_that_do_not_hold_or_are_too_long_are_left_out_and_counted(make):
    long = f"assert f('{'a' * 300}') == '{'a' * 600}'"
    made = make(DOUBLE | {"tests": [*DOUBLE["tests"], long]})
    assert set(by_program(made.rows)["reference", 0]) == {"assert f(1) == 2", "assert f('a') == 'aa'"}
    assert "- tests refused, or not right: 2\n- tests that are too long: 1" in made.card


def test_questions_are_split_and_not_demonstrations(make):
    made = make(*SIX, arguments=["--val-frac", "0.34"])
    assert "4 demonstrations, 2 more for validation" in made.text
    assert made.questions.isdisjoint(row["extra_info"]["question"] for row in made.held)


def test_the_card_and_the_summary_say_what_is_there_and_how_to_train(make, tmp_path):
    made = make(SIGN, DOUBLE)
    for words in (
        "| reference | 2 | 0 |", "| buggy_program | 2 | 2 |", "- asserts in a suite: 2 to 6", "- 2 of 2 questions",
        "data.train_batch_size=4", "data.val_files=null",
    ):  # fmt: skip
        assert words in made.card
    assert f"the training command: {tmp_path / 'd.parquet.card.md'}" in made.text


def test_the_same_command_writes_the_same_file_and_another_seed_another(make, tmp_path):
    arguments = ["--cases", "2", "--overwrite", "--seed"]
    first, again, *others = [make(SIGN, arguments=[*arguments, seed]).rows for seed in "00123"]
    assert first == again
    assert any(other != first for other in others)


def test_an_outage_is_counted_and_judged_by_the_repeated_command(make, one_judge, tmp_path):
    one_judge.outages = 1
    made = make(SIGN, DOUBLE)
    assert (made.status, len(made.questions)) == (1, 1)
    assert "1 questions met an outage of the sandbox; repeat the command" in made.text
    asked = one_judge.asked
    made = make(SIGN, DOUBLE)
    assert (made.status, one_judge.asked, made.questions) == (0, asked + 1, {"sign", "double"})


def test_an_interrupted_command_goes_on_and_other_settings_are_refused(make, interrupted_after, one_judge):
    with interrupted_after(1):
        made = make(SIGN, DOUBLE)
    assert (made.status, made.rows) == (130, [])
    assert "d.parquet.judged.jsonl; repeat the command to resume" in made.text
    made = make(SIGN, DOUBLE, arguments=["--cases", "3"])
    assert (made.status, "cases was 8, now is 3" in made.text) == (2, True)
    asked = one_judge.asked
    made = make(SIGN, DOUBLE)
    assert (made.status, one_judge.asked, made.questions) == (0, asked + 1, {"sign", "double"})


def test_questions_without_right_tests_make_nothing(make):
    made = make(DOUBLE | {"tests": ["assert f(1) == 3"]}, SIGN | {"tests": []})
    assert (made.status, made.rows) == (1, [])
    assert "no demonstration could be made of questions.jsonl (left out: " in made.text
    assert "questions without tests 1" in made.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "Missing argument"),
        ("q.jsonl --output x.jsonl", "must end in .parquet"),
        ("gone.jsonl", "gone.jsonl: cannot be read"),
        ("q.jsonl --val-frac 1", "'--val-frac'"),
    ],
)
def test_what_cannot_be_is_refused_before_work(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--output", "d.parquet", *arguments.split()]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# ------------------------------ what is not to be destroyed ------------------------------


@pytest.mark.parametrize("name", ["d.parquet", "d.val.parquet", "d.parquet.card.md", "d.parquet.judged.jsonl"])
def test_an_output_that_is_an_input_is_refused_even_with_overwrite(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_bytes(b"precious")
    (tmp_path / "link.jsonl").symlink_to(path)
    for source in (path, tmp_path / "link.jsonl"):
        assert main([str(source), "--output", str(tmp_path / "d.parquet"), "--overwrite"]) == 2
        assert f"would overwrite the input {source}" in capsys.readouterr().err
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["d.parquet", "d.val.parquet", "d.parquet.card.md"])
def test_a_file_that_exists_is_replaced_only_when_told_so(run_sft, tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"precious")
    arguments = ["--val-frac", "0.34"]
    assert run_sft(*SIX, arguments=arguments) == 2
    assert f"{tmp_path / name} exists; --overwrite replaces it" in capsys.readouterr().err
    assert (tmp_path / name).read_bytes() == b"precious"
    assert not list(tmp_path.glob("*judged*"))
    assert run_sft(*SIX, arguments=[*arguments, "--overwrite"]) == 0
    assert (tmp_path / name).read_bytes() != b"precious"


def test_unfinished_work_replaces_its_own_files_and_no_others(run_sft, one_judge, tmp_path):
    one_judge.outages = 1
    assert run_sft(SIGN, DOUBLE) == 1
    file = tmp_path / "d.parquet"
    written = file.read_bytes()
    file.write_bytes(written + b"another's")
    assert run_sft(SIGN, DOUBLE) == 2
    file.write_bytes(written)
    assert run_sft(SIGN, DOUBLE) == 0
    assert run_sft(SIGN, DOUBLE) == 2, "the work is finished"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.parquet", "d.parquet.card.md", "questions.jsonl"]
