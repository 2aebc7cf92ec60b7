"""The loop that judges many items: several at once, into a store that resumes, with outages told apart."""

import contextlib
import threading
from unittest.mock import Mock

import pytest

from code_a1_recipe.errors import OutageError
from code_a1_recipe.jobs.confinement import Confinement, judge_confined
from code_a1_recipe.jobs.jsonl_store import JsonlStore
from code_a1_recipe.jobs.judge_loop import MAX_OUTAGES_IN_A_ROW, in_parallel, judge_into


@pytest.fixture
def store(tmp_path):
    with JsonlStore(tmp_path / "out" / "rows.jsonl", settings={"seed": 0}, key="name") as opened:
        yield opened


def row(name, outage=None):
    return {"name": name, "outage": outage}


def test_some_items_are_taken_at_a_time_and_worked_on_together():
    """With 3 threads at most 6 items are taken ahead, and 3 of them are worked on at the same time."""
    together = threading.Barrier(3, timeout=20)
    taken = []

    def many():
        for number in range(12):
            taken.append(number)
            yield number

    def work(number):
        together.wait()
        return number * number

    results = in_parallel(many(), work, num_threads=3)
    number, square = next(results)
    assert square == number * number
    assert len(taken) <= 6
    assert sorted(one for one, _ in results) == [one for one in range(12) if one != number]


def test_the_first_error_ends_the_loop():
    def fail(number):
        raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match="number"):
        list(in_parallel(range(5), fail, num_threads=2))


def test_rows_are_appended_as_they_get_ready(store):
    judge_into(store, ["a", "b"], lambda name: [row(name), row(name * 2)], num_workers=1, total=4)
    assert [one["name"] for one in store.rows()] == ["a", "aa", "b", "bb"]


def test_many_outages_in_a_row_end_the_work(store):
    with pytest.raises(OutageError, match=f"{MAX_OUTAGES_IN_A_ROW} items in a row were not judged, .* because of down"):
        judge_into(store, range(40), lambda name: [row(str(name), outage="down")], num_workers=1, total=40)
    assert len(store) == MAX_OUTAGES_IN_A_ROW - 1


def test_outages_between_judged_items_do_not_end_the_work(store):
    judge_into(store, range(60), lambda n: [row(str(n), outage="down" if n % 2 else None)], num_workers=1, total=60)
    assert len(store) == 60


def test_a_repeated_command_judges_what_is_missing_or_met_an_outage_and_starts_no_judge_for_nothing(
    tmp_path, monkeypatch
):
    starts, outages, asked = [], {"b"}, []

    def judges(self, num_workers):
        starts.append(num_workers)
        return contextlib.nullcontext(Mock())

    def work(name, judge_all):
        asked.append(name)
        return row(name, outage="down" if name in outages else None)

    monkeypatch.setattr(Confinement, "judges", judges)
    for _ in range(3):
        with JsonlStore(tmp_path / "rows.jsonl", settings={}, key="name") as store:
            judge_confined(store, ["a", "b"], work, key=str, confinement=Confinement(), num_workers=1)
            outages.clear()
    assert (starts, asked) == ([1, 1], ["a", "b", "b"])
    assert list(store.rows()) == [row("a"), row("b")]
