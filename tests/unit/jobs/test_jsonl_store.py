"""The resumable store of rows."""

import json

import pytest

from code_a1_recipe.errors import OutputError
from code_a1_recipe.jobs.jsonl_store import JsonlStore

SETTINGS = {"alpha": 0.5}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.jsonl"


def opened(path):
    return JsonlStore(path, settings=SETTINGS, key="item")


def written(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def row(item, outage=""):
    return {"item": item, "outage": outage}


def test_rows_end_in_the_order_of_their_items(path):
    with opened(path) as output:
        for item in (2, 0, 1):
            output.append(row(item))
        output.sort()
        output.append(row(3))
        assert written(path) == list(output.rows()) == [row(item) for item in range(4)]


def test_rows_of_outages_are_left_out_when_the_file_is_taken_up(path):
    with opened(path) as output:
        output.append(row(0))
        output.append(row(1, outage="down"))
    with opened(path) as output:
        assert list(output.rows()) == [row(0)]
        output.append(row(1))
        output.sort()
    assert written(path) == [row(0), row(1)]


@pytest.mark.parametrize("cut", range(1, 27))
def test_a_last_line_that_was_cut_off_is_removed_wherever_it_was_cut(path, cut):
    with opened(path) as output:
        output.append(row(0))
        whole = path.read_bytes()
        output.append(row(1))
    path.write_bytes(path.read_bytes()[: len(whole) + cut])
    with opened(path) as output:
        assert list(output.rows()) == [row(0), row(1)][: 1 + (cut == len(whole))]


def test_two_processes_do_not_write_one_file(path):
    with (
        opened(path),
        pytest.raises(OutputError, match="being written by another process"),
    ):
        opened(path)


@pytest.mark.parametrize("content", ["hello\n", '{"item": "x"}\n', "[1]\n"])
def test_a_file_of_something_else_is_left_alone(path, content):
    path.write_text(content)
    with pytest.raises(OutputError, match="not as an output that can"):
        opened(path)
    path.with_name("out.jsonl.settings.json").write_text(json.dumps(SETTINGS))
    with pytest.raises(OutputError, match="line 1 is no row of this command"):
        opened(path)
    assert path.read_text() == content


def test_an_output_that_cannot_be_written_is_refused(path):
    path.write_text("a file, in truth")
    with pytest.raises(OutputError, match="cannot be written"):
        opened(path / "out.jsonl")
