"""LiveCodeBench's files: rows as they have them, what is refused, and the tasks they become."""

import base64
import gzip
import json
import os
import pickle
import zlib
from datetime import date

import pyarrow
import pyarrow.parquet
import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.data import stdin_rows
from code_a1_recipe.data.reader import columns_of, iter_rows
from code_a1_recipe.data.stdin_rows import read_cases, read_pickled_text
from code_a1_recipe.errors import InputError, RowError
from code_a1_recipe.evaluation.benchmarks.livecodebench import livecodebench_tasks
from code_a1_recipe.evaluation.results import Results
from code_a1_recipe.evaluation.scoring.livecodebench_judge import PRELOAD
from sandbox import LocalRunner, SandboxUnavailableError

from ..stand_in_endpoint import StandInEndpoint

PROGRAM = "a, b = map(int, input().split())\nprint(a + b)"


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(num_workers=2, preload=PRELOAD) as made:
        yield made


def case(given_, output, kind="stdin"):
    return {"input": given_, "output": output, "testtype": kind}


def packed(value, protocol=pickle.DEFAULT_PROTOCOL):
    """As the files hold private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def row(**changes):
    """A problem that reads standard input."""
    return {
        "question_title": "Sum",
        "question_content": "Print the sum of two integers.",
        "platform": "atcoder",
        "question_id": "abc001_a",
        "contest_id": "abc001",
        "contest_date": "2024-03-02T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([case("1 2\n", "3\n")]),
        "private_test_cases": packed(json.dumps([case("10 20\n", "30\n"), case("-1 1\n", "0\n")])),
        "metadata": "{}",
        **changes,
    }


def function_row(**changes):
    starter = "class Solution:\n    def pairs(self, nums: List[int], name: str) -> List[str]:\n        "
    public = [case('[1, 2]\n"a"', '["a1", "a2"]', "functional")]
    private = [case('[]\n"b"', "[]", "functional")]
    return row(
        question_id="3001",
        contest_date="2024-05-01T00:00:00",
        starter_code=starter,
        difficulty="medium",
        public_test_cases=json.dumps(public),
        private_test_cases=json.dumps(private),
        metadata=json.dumps({"func_name": "pairs"}),
        **changes,
    )


def written(tmp_path, *rows, name="test.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


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
    expected = ["1 2\n", "10 20\n", "-1 1\n"]
    assert [one.input for one in read_cases(row())[0]] == expected
    plain = json.dumps([case("10 20\n", "30\n"), case("-1 1\n", "0\n")])
    assert read_cases(row(private_test_cases=plain)) == read_cases(row())
    assert read_cases(function_row())[1] == "functional"


def test_tests_that_unpack_to_too_much_are_refused(monkeypatch):
    monkeypatch.setattr(stdin_rows, "MAX_TEST_BYTES", 1000)
    assert len(read_cases(row())[0]) == 3
    with pytest.raises(RowError, match="holds more than 1000 bytes"):
        read_cases(row(private_test_cases=packed(" " * 1_000_000)))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"private_test_cases": "%%%"}, "column 'private_test_cases': must be JSON, or base64"),
        ({"private_test_cases": packed("[]")[:-8]}, "column 'private_test_cases': is cut off"),
        (
            {"private_test_cases": base64.b64encode(b"plain text").decode()},
            "column 'private_test_cases': must be JSON, or base64",
        ),
        ({"private_test_cases": packed("no json")}, "column 'private_test_cases': must be JSON"),
        ({"private_test_cases": packed("{}")}, "must be a list of tests"),
        ({"private_test_cases": 3}, "must be JSON, got int"),
        ({"public_test_cases": "[1]"}, "column 'public_test_cases': must be a list of tests with texts 'input'"),
        ({"public_test_cases": json.dumps([case(1, "2")])}, "number 0 is {"),
        ({"public_test_cases": json.dumps([case("1", "2", "x")])}, "'testtype': 'x'"),
        ({"public_test_cases": json.dumps([case("1", "2", "functional")])}, "must be of one type, got both"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "must be of one type, got none"),
        ({"question_content": None}, "column 'question_content': must be a string"),
        ({"question_id": ""}, "column 'question_id': must be a text or an integer, got ''"),
    ],
)
def test_a_bad_row_is_refused_with_its_place_and_a_cure(tmp_path, runner, changes, told):
    path = written(tmp_path, row(), row(question_id="b", **changes) if "question_id" not in changes else row(**changes))
    with pytest.raises(InputError) as error:
        livecodebench_tasks(path, runner)
    assert str(error.value).startswith(f"{path}: row 1, column ")
    assert told in str(error.value)
    assert str(error.value).endswith("take the file as livecodebench/code_generation_lite has it, or remove the row")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"metadata": "{}"}, "column 'metadata': must name the function of functional tests as 'func_name', got None"),
        ({"metadata": json.dumps({"func_name": "f(1) or g"})}, "'func_name', got 'f(1) or g'"),
        ({"metadata": "x"}, "column 'metadata': must be JSON"),
        ({"public_test_cases": json.dumps([case("x", "1", "functional")])}, "must hold a JSON value a line"),
        ({"public_test_cases": json.dumps([case("1", "x", "functional")])}, "must hold a JSON value a line"),
    ],
)
def test_a_bad_functional_row_is_refused(tmp_path, runner, changes, told):
    path = written(tmp_path, {**function_row(), **changes})
    with pytest.raises(InputError) as error:
        livecodebench_tasks(path, runner)
    assert told in str(error.value)


def test_a_file_becomes_tasks_that_grade(tmp_path, runner):
    tasks, num_outside = livecodebench_tasks(written(tmp_path, row(), function_row()), runner)
    assert num_outside == 0
    assert [(task.id, task.data_source) for task in tasks] == [
        ("LiveCodeBench/abc001_a", "LiveCodeBench easy"),
        ("LiveCodeBench/3001", "LiveCodeBench medium"),
    ]
    assert "reads standard input" in tasks[0].prompt
    assert "class Solution:" in tasks[1].prompt
    assert "reads standard input" not in tasks[1].prompt
    right, wrong = PROGRAM, "print(3)"
    assert [one.passed for one in tasks[0].grading.grade([wrong, right])] == [False, True]
    methods = ["[name + str(n) for n in nums]", "[name]"]
    programs = [f"class Solution:\n    def pairs(self, nums, name):\n        return {body}\n" for body in methods]
    assert [one.passed for one in tasks[1].grading.grade(programs)] == [True, False]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "array.jsonl", "a.json", "a.parquet"])
def test_a_file_may_have_any_of_the_usual_forms(tmp_path, runner, name):
    rows, path = [row(), function_row()], tmp_path / name
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif name in ("array.jsonl", "a.json"):
        path.write_text(json.dumps(rows))
    else:
        data = "".join(json.dumps(one) + "\n\n" for one in rows).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(iter_rows(path)) == rows
    assert columns_of(iter_rows(path)) == set(row())
    assert len(livecodebench_tasks(path, runner)[0]) == 2


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.jsonl", b'{"a": 1}\n\n{"a":\n', "line 3 is not JSON"),
        ("a.jsonl", b'{"a": 1}\n3\n', "line 2 must be a JSON object, got int"),
        ("a.jsonl", b"\xff\xff", "cannot be read"),
        ("a.jsonl", b'{"a": 1}\n"\xff"\n', "cannot be read"),
        ("a.jsonl.gz", b"no gzip", "cannot be read"),
        ("a.csv", b"a,b\n", "must end in .parquet, .jsonl or .json"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_line(tmp_path, name, data, told):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as error:
        list(iter_rows(tmp_path / name))
    assert told in str(error.value)
    with pytest.raises(InputError, match=r"nothing.jsonl: cannot be read"):
        list(iter_rows(tmp_path / "nothing.jsonl"))


def test_an_outage_takes_the_place_of_a_verdict(tmp_path):
    with LocalRunner() as closed:
        tasks, _ = livecodebench_tasks(written(tmp_path, row(), function_row()), closed)
    found = [task.grading.grade(["print(1)"])[0] for task in tasks]
    assert [type(one) for one in found] == [SandboxUnavailableError] * 2


@pytest.mark.parametrize(
    ("since", "until", "ids"),
    [
        (None, None, ["abc001_a", "3001"]),
        (date(2024, 3, 2), None, ["abc001_a", "3001"]),
        (date(2024, 3, 3), None, ["3001"]),
        (None, date(2024, 3, 2), ["abc001_a"]),
        (date(2024, 3, 3), date(2024, 4, 30), []),
    ],
)
def test_problems_are_chosen_by_the_day_of_their_contest(tmp_path, runner, since, until, ids):
    path = written(tmp_path, row(), function_row())
    tasks, num_outside = livecodebench_tasks(path, runner, since=since, until=until)
    assert [task.id.partition("/")[2] for task in tasks] == ids
    assert num_outside == 2 - len(ids)


def test_a_row_without_a_day_cannot_be_chosen_by_date(tmp_path, runner):
    path = written(tmp_path, row(contest_date=""))
    assert len(livecodebench_tasks(path, runner)[0]) == 1
    with pytest.raises(InputError, match="column 'contest_date': must begin with YYYY-MM-DD"):
        livecodebench_tasks(path, runner, since=date(2024, 1, 1))


def test_eval_code_recognises_the_file_and_says_what_it_left_out(tmp_path, capsys):
    path = written(tmp_path, row(), function_row())
    words = [str(path), "--output", str(tmp_path / "out"), "--endpoint-model", "stand-in", "--workers", "1"]
    with StandInEndpoint(lambda messages, seed: f"```python\n{PROGRAM}\n```") as server:
        words += ["--endpoint", server.url]
        assert main(["eval", "code", *words, "--until", "2024-04-01"]) == 0
        assert len(server.requests) == 1
    results = Results.load(tmp_path / "out")
    assert results.parts["pass@1"] == {"LiveCodeBench/abc001_a": [1.0, 1.0]}
    assert results.counts == {"LiveCodeBench problems outside --since and --until": 1}
    assert "outside --since and --until: 1" in capsys.readouterr().out
    assert main(["eval", "code", *words, "--since", "2025-01-01"]) == 2
    assert "no problem is left to evaluate" in capsys.readouterr().err


def test_options_of_other_benchmarks_are_refused(tmp_path, capsys):
    question = {"id": "f", "prompt": "f", "reference": "def f():\n    return 1\n", "tests": ["assert f() == 1"]}
    path = written(tmp_path, question, name="own.jsonl")
    words = [str(path), "--output", str(tmp_path / "out"), "--endpoint-model", "x", "--endpoint", "http://localhost:1"]
    assert main(["eval", "code", *words, "--since", "2025-01-01"]) == 2
    assert "no FILE has its columns" in capsys.readouterr().err
    assert main(["eval", "code", *words, "--since", "yesterday"]) == 2
    assert "'yesterday' does not match" in capsys.readouterr().err
