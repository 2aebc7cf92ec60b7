"""Where rows may come from, and what is said of a place that has none."""

import gzip
import hashlib
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.files import fingerprint, json_lines
from code_a1_recipe.tools.prepare.reading import open_sources

ROWS = [{"id": "a", "prompt": "p"}, {"id": "b", "prompt": "q", "tests": ["t"]}]


def open_source(name):
    (source,) = open_sources([name], columns={}, is_evaluation=True)
    return source


def rows_of(source):
    return [{name: value for name, value in row.items() if value is not None} for row in source.rows()]


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path):
    """Write rows as JSON lines, or as parquet; returns the path as text."""

    def to_file(name, rows=ROWS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            names = {name: None for row in rows for name in row}
            pq.write_table(pa.Table.from_pylist([names | row for row in rows]), path)
        else:
            data = json_lines(rows).encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return to_file


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.jsonl.gz", "a.parquet"])
def test_a_file_of_any_format_gives_its_rows(write, name):
    path = write(name)
    source = open_source(path)
    assert rows_of(source) == rows_of(source) == ROWS
    assert source.stem == "a"
    assert source.fingerprint() == fingerprint(hashlib.sha256(Path(path).read_bytes()).digest())


def test_parquet_is_read_in_pieces(write):
    rows = [{"prompt": str(number)} for number in range(3000)]
    assert rows_of(open_source(write("a.parquet", rows))) == rows


@pytest.mark.parametrize(("text", "split"), [("org/name", "train"), ("org/name:test", "test")])
def test_what_is_no_path_is_asked_of_the_hub(monkeypatch, text, split):
    hub = {"org/name": datasets.DatasetDict({split: datasets.Dataset.from_list(ROWS[:1])})}
    monkeypatch.setattr(datasets, "load_dataset", hub.__getitem__)
    assert rows_of(open_source(text)) == ROWS[:1]
    assert open_source(text).stem in ("name", "name-test")


def test_of_a_hub_set_with_splits_one_must_be_named(monkeypatch):
    loaded = datasets.Dataset.from_list(ROWS)
    both = datasets.DatasetDict({"train": loaded, "test": loaded})
    monkeypatch.setattr(datasets, "load_dataset", lambda name: both)
    with pytest.raises(InputError, match=r"org/name: has several splits.*org/name:test, org/name:train"):
        open_source("org/name")


def test_a_path_goes_before_the_hub(monkeypatch, write):
    monkeypatch.setattr(datasets, "load_dataset", None)
    write("org/name/rows.jsonl")
    with pytest.raises(InputError, match=r"org/name is a folder; name its files, such as org/name/\*.parquet"):
        open_source("org/name")
    assert rows_of(open_source("org/name/rows.jsonl")) == ROWS


@pytest.mark.parametrize("error", [ConnectionError("no route"), ValueError("Unknown split"), FileNotFoundError("none")])
def test_a_hub_that_cannot_be_reached_is_told_with_the_cure(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(InputError, match=rf"org/name: no such path, .*{error}.*HF_TOKEN"):
        open_source("org/name")


def test_a_place_with_nothing_is_refused(write):
    for text in ("missing.jsonl", "org/missing.parquet", "/no/such/place", "name", "a/b/c"):
        with pytest.raises(InputError, match="no such file"):
            open_source(text)
    with pytest.raises(InputError, match="no rows"):
        open_source(write("none.jsonl", []))


def test_a_damaged_file_is_refused(tmp_path):
    for name in ("a.parquet", "a.jsonl"):
        (tmp_path / name).write_bytes(b"PAR1 but not really")
        with pytest.raises(InputError, match=name):
            open_source(str(tmp_path / name))
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match="must end in"):
        open_source(str(tmp_path / "a.txt"))
