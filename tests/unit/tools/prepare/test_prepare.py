"""``code-a1 data prepare`` from the command line down, with the real judge."""

import json
import shutil

import datasets
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard

from code_a1_recipe.cli.app import main
from code_a1_recipe.data.reader import COLUMNS, load_questions
from code_a1_recipe.jobs.jsonl_store import JsonlStore

from .conftest import card_in, row

GOOD = row("alpha")
FLAKY = "import time\ndef delta(x): return time.perf_counter_ns()"
SLOW = "def echo(x):\n    while True: pass"
ROWS = [
    GOOD,
    row("bravo", tests=["assert bravo(1) == 6", "assert bravo(2) == 8"]),
    row("charlie", reference="import no_such_module\ndef charlie(x): return no_such_module"),
    row("delta", reference=FLAKY),
    row("echo", reference=SLOW),
    row("foxtrot", reference="def foxtrot(x): return object()"),
    row("golf", tests=[]),
    row("hotel", reference="def hotel(:"),
    row("india", prompt=GOOD["prompt"]),
    row("juliett", reference=GOOD["reference"], tests=["assert alpha(1) == 6"]),
    row("kilo", tests=["assert kilo(1) == 5", "assert kilo(1) > 5"]),
]
EVAL_PROMPT = "Given a list of words, return the longest of them that reads the same backwards, or nothing."


def test_rows_stay_or_go_with_a_reason_and_the_card_tells_them(run, write, dropped, tmp_path, kept):
    path = write(*ROWS)
    status, out, _ = run(path)
    assert status == 0
    assert kept() == ["alpha", "kilo"]
    assert {name: line["reason"] for name, line in dropped().items()} == {
        "bravo": "reference_fails",
        "charlie": "load_failed",
        "delta": "reference_nondeterministic",
        "echo": "reference_slow",
        "foxtrot": "unencodable",
        "golf": "too_few_tests",
        "hotel": "unusable row: reference: must be Python 3",
        "india": "duplicate_prompt",
        "juliett": "duplicate_reference",
    }
    assert [line["row"] for line in dropped().values()] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert "no_such_module" in dropped()["charlie"]["detail"]
    assert dropped()["bravo"]["detail"] == "1 of 2 tests do not hold, the first: bravo(2) is 7, expected 8"
    assert "2 of 11 rows kept" in out
    assert "left out: reference_fails 1, " in out
    card = card_in(tmp_path)
    for told in (
        f"| {path} | native | 11 | ", "| reference_fails | 1 |", "| load_failed | 1 |", "no evaluation set was named",
        "Tests: 2, golden tests: 0, removed: unreadable 1.", "data.train_files=out.parquet", "code-a1 data prepare",
    ):  # fmt: skip
        assert told in card


def test_the_first_reading_that_holds_is_kept_and_of_none_the_first_is_told(run, write, dropped, judge, tmp_path):
    def taco(question, *solutions):
        tests = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1, 2], [2, 3]]}
        texts = {"solutions": json.dumps(solutions), "input_output": json.dumps(tests)}
        return {"question": question, "starter_code": "", **texts}

    wrong, right = "def f(x): return x", "def f(x): return x, x + 1"
    rows = write(taco("Return a number and the next one.", wrong, right), taco("Something else entirely.", wrong))
    status, _, _ = run(rows)
    assert status == 0
    (question,) = load_questions(tmp_path / "out.parquet")
    assert (question.reference, question.tests) == (right, ("assert f(1) == (1, 2)", "assert f(2) == (2, 3)"))
    assert [line["detail"] for line in dropped().values()] == [
        "2 of 2 tests do not hold, the first: f(1) is 1, expected [1, 2]"
    ]
    judge.down_for = "return x, x + 1"
    status, out, _ = run(rows, output="again.parquet")
    assert (status != 0, "reference_fails 2" in out) == (True, False)


def test_the_output_has_the_native_columns_and_nothing_else(run, write, tmp_path):
    extra = row(
        "alpha", entry_points=["alpha"], prelude="import math", data_source="mine", unknown="x", buggy_programs=["w"]
    )
    run(write(extra))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == list(COLUMNS)
    given = {name: value for name, value in extra.items() if name in COLUMNS}
    assert table.to_pylist() == [given | {"golden_tests": [], "kind": "functions", "checker": "decimals"}]


def test_questions_without_tests_may_stay_where_their_reference_loads(run, write, dropped, kept):
    broken = row("lima", tests=[], reference="raise ValueError\ndef lima(): pass")
    status, _, _ = run(write(row("golf", tests=[]), broken), "--min-tests", "0")
    assert (status, kept()) == (0, ["golf"])
    assert "ValueError" in dropped()["lima"]["detail"]


def test_what_repeats_an_evaluation_set_goes_unjudged_and_is_named(run, write, dropped, judge, tmp_path, kept):
    against = write({"id": "Eval/1", "prompt": EVAL_PROMPT, "reference": "def f(x): return x"}, name="held out.jsonl")
    status, _, _ = run(write(GOOD, row("mike", prompt=f"Hard one. {EVAL_PROMPT}")), "--against", against)
    assert (status, kept(), judge.num_requests) == (0, ["alpha"], 1)
    (overlap,) = dropped()["mike"]["overlaps"]
    assert (overlap["set"], overlap["id"], overlap["how"]) == ("held out", "Eval/1", "prompt")
    card = card_in(tmp_path)
    assert "| held out | 1 | 1 | 1 |" in card


def test_the_hub_finds_the_questions_and_what_they_are_by_the_card(run, write, tmp_path):
    run(write(GOOD, row("kilo")))
    card, published = DatasetCard.load(tmp_path / "out.parquet.card.md"), tmp_path / "published"
    assert (card.data.license, card.data.task_categories) == (None, ["text-generation"])
    published.mkdir()
    for name, file in (("README.md", "out.parquet.card.md"), ("out.parquet", "out.parquet")):
        shutil.copy(tmp_path / file, published / name)
    (published / "other.parquet").write_bytes(b"no part of the set")
    loaded = datasets.load_dataset(str(published), cache_dir=str(tmp_path / "cache"))
    assert {split: rows["id"][:] for split, rows in loaded.items()} == {"train": ["alpha", "kilo"]}


def test_an_interrupted_command_goes_on_where_it_stopped(run, write, judge, kept, tmp_path, interrupted_after):
    path = write(*map(row, ("alpha", "bravo", "charlie", "delta")))
    with interrupted_after(2):
        status, _, err = run(path)
    assert status == 130
    work_file = tmp_path / "out.parquet.judged.jsonl"
    assert f"interrupted; finished work is in {work_file}; repeat the command to resume" in err
    assert len(work_file.read_text().splitlines()) == 2
    assert kept() == []
    judge.num_requests = 0
    assert run(path)[0] == 0
    assert judge.num_requests == 2
    assert len(kept()) == 4


def test_a_full_disk_ends_the_command_and_says_how_to_go_on(run, write, monkeypatch):
    def fail(self, row):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(JsonlStore, "append", fail)
    status, _, err = run(write(GOOD))
    assert status == 1
    assert "No space left on device" in err
    assert "repeat the command to resume" in err


def test_what_is_decided_on_the_facts_may_change_without_judging_again(run, write, judge):
    path = write(*ROWS[:2])
    run(path)
    judge.num_requests = 0
    assert run(path, "--min-tests", "2", "--overwrite")[0] == 1
    assert judge.num_requests == 0
    status, _, err = run(path, "--slow-seconds", "2", "--overwrite")
    assert (status, "slow_seconds was 1.0, now is 2.0" in err) == (2, True)


def test_outages_are_left_out_reported_and_tried_again(run, write, judge, dropped, tmp_path, kept):
    path = write(GOOD, row("bravo"))
    judge.down_for = "def bravo"
    status, _, err = run(path)
    assert (status, kept()) == (1, ["alpha"])
    assert dropped()["bravo"]["reason"] == "outage"
    assert "1 rows could not be judged" in err
    assert "**1 rows could not be judged**" in (tmp_path / "out.parquet.card.md").read_text()
    judge.down_for = ""
    judge.num_requests = 0
    assert run(path)[0] == 0, "the repeated command replaces what it wrote itself"
    assert (judge.num_requests, kept()) == (1, ["alpha", "bravo"])
    assert run(path)[0] == 2, "the work is finished"


def test_a_sandbox_that_is_down_ends_the_command(run, write, judge, kept):
    judge.down_for = "def"
    status, _, err = run(write(*(row(f"n{number}") for number in range(30))))
    assert (status, "the sandbox is down" in err) == (1, True)
    assert kept() == []


def test_the_same_reference_is_judged_once(run, write, judge):
    run(write(*(GOOD | {"id": f"q{number}"} for number in range(5))))
    assert judge.num_requests == 1


def test_dropped_rows_are_listed_in_the_order_of_the_inputs(run, write, dropped):
    bad = {"reference": "import no_such_module\ndef f(): pass"}
    one = write(GOOD, row("bravo", tests=[]), row("charlie", **bad), name="z.jsonl")
    run(one, write(row("delta", **bad), row("echo", tests=[]), name="a.jsonl"))
    assert list(dropped()) == ["bravo", "charlie", "delta", "echo"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{rows} --against missing.parquet", "missing.parquet: no such file"),
        ("{odd} --columns prompt=nothing", "needs the columns"),
        ("{rows} {there}", "would overwrite the input"),
    ],
)
def test_bad_input_is_refused_before_any_work(run, write, judge, tmp_path, arguments, words):
    there = tmp_path / "out.parquet"
    places = {"rows": write(GOOD), "odd": write({"a": 1}, name="odd.jsonl"), "there": there}
    status, out, err = run(*arguments.format(**places).split())
    assert (status, out, judge.num_requests) == (2, "", 0)
    assert err.startswith("error: ")
    assert words in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.jsonl", "rows.jsonl"]


@pytest.mark.parametrize(
    ("output", "words"), [("out.jsonl", "must end in .parquet"), (".", "must end in"), ("d.parquet", "be no folder")]
)
def test_an_output_of_another_kind_is_refused(run, write, tmp_path, output, words):
    (tmp_path / "d.parquet").mkdir()
    status, _, err = run(write(GOOD), output=output)
    assert (status, words in err) == (2, True)


def test_the_page_that_the_help_names_lists_every_reason(capsys, repository):
    from code_a1_recipe.tools.prepare.rows import Reason

    assert main(["data", "prepare", "--help"]) == 0
    shown = capsys.readouterr().out
    page = "code_a1_recipe/data/README.md"
    assert page in shown
    listed = (repository / page).read_text(encoding="utf-8")
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in listed] == []
    assert "code-a1 data prepare kodcode.parquet --output train.parquet" in shown
