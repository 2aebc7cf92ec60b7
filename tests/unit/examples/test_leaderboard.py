"""The leaderboard: which programs are recorded, what counts as detected, and the table."""

import json

from code_a1_recipe.runs.reader import RunRecords
from examples.leaderboard.detection import curves, ratios, table
from examples.leaderboard.recorded import NARROW, WIDE, buggy_programs, kinds_file
from examples.leaderboard.row import README, ROWS, with_table
from examples.leaderboard.tester_alone import table_of

from ..conftest import QUESTIONS, case, loaded, record, suite, write_run


def hidden(num_failed):
    outcomes = ["wrong_value"] * num_failed + ["passed"] * (3 - num_failed)
    return {"cases": [case(outcome, call=f"f({n})") for n, outcome in enumerate(outcomes)], "rejections": []}


def written(index, source, num_failed, **changes):
    return record(index, source=source, hidden_tests=hidden(num_failed), **changes)


def test_of_each_stage_one_narrow_and_one_wide_program_of_a_question_are_recorded(tmp_path):
    base = [written(0, "a", 1), written(0, "b", 1), written(0, "c", 2), written(0, "d", 0)]
    later = [written(0, "a", 1), written(0, "e", 1), written(1, "f", 3, verdict=loaded(is_loaded=False))]
    found = buggy_programs(RunRecords.open(write_run(tmp_path / "run", validation={0: base, 20: later})))
    kinds = {source: (one["stage"], one["kind"]) for source, one in found[QUESTIONS[0].id].items()}
    assert kinds == {"a": (0, NARROW), "c": (0, WIDE), "e": (20, NARROW)}
    assert QUESTIONS[1].id not in found


def test_a_program_is_detected_where_any_case_of_its_suites_breaks_it(tmp_path):
    quiet, breaking = suite(case()), suite(case("wrong_value", right=False))

    def buggy(source, *suites):
        return record(0, kind="buggy_program", source=source, solved=None, suites=suites)

    for arm, first in (("frozen", [quiet, quiet]), ("mine", [quiet, breaking])):
        step = [buggy("a", *first), buggy("b", breaking), buggy("c", breaking)]
        write_run(tmp_path / arm / "seed0", validation={0: step})
        (tmp_path / arm / "seed0.json").write_text("{}")  # what an experiment writes beside
    kinds = {
        QUESTIONS[0].id: {
            "a": {"stage": 0, "kind": NARROW}, "b": {"stage": 0, "kind": WIDE}, "c": {"stage": 9, "kind": NARROW}
        }
    }  # fmt: skip
    found = curves(tmp_path, kinds)
    rates = found["mine"]["seed0"][0]
    assert (rates["narrow"], rates["wide"], rates["narrow caught"]) == (1.0, 1.0, 0.0)
    assert found["frozen"]["seed0"][0]["narrow at 0"] == 0.0
    assert "| mine | 0 | 1.000 ± ? |" in table(found)
    assert "| mine | 2.000 ± ? | 1.000 ± ? |" in ratios(found, "frozen")


def test_the_kinds_stand_beside_the_questions(tmp_path):
    assert kinds_file(tmp_path / "recorded.jsonl") == tmp_path / "recorded.jsonl.kinds.json"


def test_the_readme_has_the_rows_that_are_kept():
    text, rows = README.read_text(encoding="utf-8"), json.loads(ROWS.read_text(encoding="utf-8"))
    assert with_table(text, rows) == text


def test_the_table_of_the_tester_by_itself_is_that_of_its_rows():
    rows = [json.loads(line) for line in README.with_name("alone.jsonl").read_text(encoding="utf-8").splitlines()]
    assert table_of(rows) in README.read_text(encoding="utf-8")
