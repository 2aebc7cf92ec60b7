"""The resumable store of rows."""

import json

import pytest

from code_a1_recipe.errors import OutputError
from code_a1_recipe.jobs.jsonl_store import JsonlStore

SETTINGS = {"alpha": 0.5}


def row(item: int, outage: str = "") -> dict:
    return {"item": item, "outage": outage}


def test_rows_end_in_the_order_of_their_items(tmp_path):
    with JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS, key="item") as output:
        for item in (2, 0, 1):
            output.append(row(item))
        output.sort()
        output.append(row(3))
        assert [entry["item"] for entry in output.rows()] == [0, 1, 2, 3]
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["item"] for line in lines] == [0, 1, 2, 3]


def test_rows_of_outages_are_left_out_when_the_file_is_taken_up(tmp_path):
    with JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS, key="item") as output:
        output.append(row(0))
        output.append(row(1, outage="down"))
    with JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS, key="item") as output:
        assert {row["item"] for row in output.rows()} == {0}
        output.append(row(1))
        output.sort()
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [row(0), row(1)]


@pytest.mark.parametrize("cut", range(1, 27))
def test_a_last_line_that_was_cut_off_is_removed_wherever_it_was_cut(tmp_path, cut):
    path = tmp_path / "out.jsonl"
    with JsonlStore(path, settings=SETTINGS, key="item") as output:
        output.append(row(0))
        whole = path.read_bytes()
        output.append(row(1))
    path.write_bytes(path.read_bytes()[: len(whole) + cut])
    with JsonlStore(path, settings=SETTINGS, key="item") as output:
        assert {row["item"] for row in output.rows()} == ({0} if cut < len(whole) else {0, 1})


def test_two_processes_do_not_write_one_file(tmp_path):
    with (
        JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS, key="item"),
        pytest.raises(OutputError, match="being written by another process"),
    ):
        JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS, key="item")


@pytest.mark.parametrize("content", ["hello\n", '{"item": "x"}\n', "[1]\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "out.jsonl"
    path.write_text(content)
    with pytest.raises(OutputError, match="not as an output that can"):
        JsonlStore(path, settings=SETTINGS, key="item")
    (tmp_path / "out.jsonl.settings.json").write_text(json.dumps(SETTINGS))
    with pytest.raises(OutputError, match="line 1 is no row of this command"):
        JsonlStore(path, settings=SETTINGS, key="item")
    assert path.read_text() == content


def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "folder").write_text("a file, in truth")
    with pytest.raises(OutputError, match="cannot be written"):
        JsonlStore(tmp_path / "folder" / "out.jsonl", settings=SETTINGS, key="item")
