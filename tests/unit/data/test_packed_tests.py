"""LiveCodeBench's packed tests: pickled texts are read and never unpickled."""

import base64
import json
import os
import pickle
import zlib

import pytest

from code_a1_recipe.data import stdin_rows
from code_a1_recipe.data.stdin_rows import read_cases, read_pickled_text
from code_a1_recipe.errors import RowError


def case(given, output, kind="stdin"):
    return {"input": given, "output": output, "testtype": kind}


def packed(value, protocol=pickle.DEFAULT_PROTOCOL):
    """The form of private tests in the benchmark's files."""
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


PRIVATE = json.dumps([case("10 20\n", "30\n"), case("-1 1\n", "0\n")])


def row(**changes):
    public = json.dumps([case("1 2\n", "3\n")])
    return {"public_test_cases": public, "private_test_cases": packed(PRIVATE), **changes}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_text_is_read_whatever_the_protocol(protocol):
    for text in ("[]", "é\n\U0001f600" * 100, "x" * 70_000):
        assert read_pickled_text(pickle.dumps(text, protocol)) == text


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("bomb",)


@pytest.mark.parametrize(
    "value", [Bomb(), [1], b"[]", 3, ("[]", "[]"), {"a": "b"}], ids=["code", "list", "bytes", "int", "two", "dict"]
)
def test_any_other_pickle_is_refused_and_never_unpickled(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(RowError) as told:
            read_cases(row(private_test_cases=packed(value, protocol)))
        assert "pickled text" in told.value.rule
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"V[]\nV[]\n.", b"V[]\n", b"", b".", b"V[]\n0.", b"\xff"])
def test_a_pickle_of_two_texts_or_of_none_is_refused(data):
    with pytest.raises(RowError, match="pickled text"):
        read_pickled_text(data)


def test_private_tests_are_read_packed_and_plain():
    assert [one.input for one in read_cases(row())[0]] == ["1 2\n", "10 20\n", "-1 1\n"]
    assert read_cases(row(private_test_cases=PRIVATE)) == read_cases(row())


def test_tests_that_unpack_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(stdin_rows, "MAX_TEST_BYTES", 1000)
    assert len(read_cases(row())[0]) == 3
    with pytest.raises(RowError, match="holds more than 1000 bytes"):
        read_cases(row(private_test_cases=packed(" " * 1_000_000)))


@pytest.mark.parametrize(
    ("changes", "column", "rule"),
    [
        ({"private_test_cases": "%%%"}, "private_test_cases", "must be JSON, or base64"),
        ({"private_test_cases": packed("[]")[:-8]}, "private_test_cases", "is cut off"),
        ({"private_test_cases": packed("no json")}, "private_test_cases", "must be JSON"),
        ({"private_test_cases": packed("{}")}, "private_test_cases", "must be a list of tests"),
        ({"private_test_cases": 3}, "private_test_cases", "must be JSON, got int"),
        ({"public_test_cases": "[1]"}, "public_test_cases", "must be a list of tests with texts 'input'"),
        (
            {"public_test_cases": json.dumps([case("1", "2", "x")])},
            "public_test_cases",
            "value 'x' - at `$[0].testtype`",
        ),
        ({"public_test_cases": json.dumps([case("1", "2", "functional")])}, "private_test_cases", "got both"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "private_test_cases", "got none"),
    ],
)
def test_a_column_that_holds_no_tests_is_refused(changes, column, rule):
    with pytest.raises(RowError) as told:
        read_cases(row(**changes))
    assert told.value.column == column
    assert rule in told.value.rule
