"""LiveCodeBench and BigCodeBench: their rows are asked, and samples written for their own evaluators."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.errors import InputError
from code_a1_recipe.files import json_lines
from code_a1_recipe.tools.evaluate.benchmarks.judged_elsewhere import (
    bigcodebench_tasks,
    last_block,
    livecodebench_tasks,
)
from code_a1_recipe.tools.evaluate.results import Results

from ..stand_in_endpoint import StandInEndpoint

READING = {
    "question_id": "abc001_a",
    "question_content": "Print the sum of two integers.",
    "starter_code": "",
    "contest_date": "2024-03-02T00:00:00",
    "difficulty": "easy",
}
METHOD = READING | {
    "question_id": 3001,
    "starter_code": "class Solution:\n    def pairs(self, nums, name):\n        ",
    "difficulty": "medium",
}
HEAD = "import math\ndef task_func(x):\n"
BIG = {
    "task_id": "BigCodeBench/7",
    "complete_prompt": f'{HEAD}    """Double x."""\n',
    "instruct_prompt": f"Double x. Begin with\n```\n{HEAD}```",
    "entry_point": "task_func",
    "test": "class TestCases: ...",
}


def written(tmp_path, *rows, name="test.jsonl"):
    path = tmp_path / name
    path.write_text(json_lines(rows))
    return path


def words(path, output, server, *more):
    return ["eval", "code", str(path), "--output", str(output), *server.words, *more]


def test_rows_of_livecodebench_become_tasks_by_their_starter_code(tmp_path):
    tasks = livecodebench_tasks(written(tmp_path, READING, METHOD))
    assert [(task.id, task.official_id, task.data_source) for task in tasks] == [
        ("LiveCodeBench/abc001_a", "abc001_a", "LiveCodeBench easy"),
        ("LiveCodeBench/3001", "3001", "LiveCodeBench medium"),
    ]
    assert [task.reads_input for task in tasks] == [True, False]
    assert "reads standard input" in tasks[0].prompt
    assert tasks[1].prompt.endswith("def pairs(self, nums, name):\n```")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"question_id": ""}, "column 'question_id': must be a text or an integer, got ''"),
        ({"question_content": None}, "column 'question_content': must be a string"),
    ],
)
def test_a_bad_row_is_refused_with_its_place_and_a_hint(tmp_path, changes, rule):
    path = written(tmp_path, READING, READING | changes)
    with pytest.raises(InputError) as told:
        livecodebench_tasks(path)
    assert str(told.value).startswith(f"{path}: row 1, {rule}")
    assert str(told.value).endswith("or remove the row")


@pytest.mark.parametrize(
    ("response", "program"),
    [
        ("First:\n```python\na = 1\n```\nBetter:\n```python\nb = 2\n```\nDone.", "b = 2"),
        ("```\na = 1\n  ```", "a = 1"),
        ("```python\nunfinished", ""),
        ("no code", ""),
    ],
)
def test_livecodebench_takes_the_lines_between_the_last_two_fences(response, program):
    assert last_block(response) == program


def test_bigcodebench_is_asked_in_either_split(tmp_path):
    path = tmp_path / "bigcodebench.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([BIG]), path)
    (complete,), (instruct,) = (bigcodebench_tasks(path, split=split) for split in ("complete", "instruct"))
    assert (complete.prompt, instruct.prompt) == (BIG["complete_prompt"], BIG["instruct_prompt"])
    assert (complete.id, complete.entry_points) == ("BigCodeBench/7", "`task_func`")
    assert (complete.data_source, instruct.data_source) == ("BigCodeBench-Complete", "BigCodeBench-Instruct")


def test_samples_of_livecodebench_are_written_and_not_judged(tmp_path, capsys):
    output = tmp_path / "out"

    def answer(messages, seed):
        return "I do not know." if "class Solution" in messages[-1]["content"] else "```python\nprint(3)\n```"

    with StandInEndpoint(answer) as server:
        asked = words(written(tmp_path, READING, METHOD), output, server, "--samples", "2")
        assert main(asked) == 0
        assert main(asked) == 0
        assert len(server.requests) == 4
    assert json.loads((output / "livecodebench_samples.json").read_text()) == [
        {"question_id": "abc001_a", "code_list": ["print(3)", "print(3)"]},
        {"question_id": "3001", "code_list": ["", ""]},
    ]
    assert [row["passed"] for row in iter_rows(output / "verdicts.jsonl")] == [None] * 4
    results = Results.load(output)
    assert set(results.parts) == {"extraction_failure_rate", "truncated_rate"}
    assert results.parts["extraction_failure_rate"] == {
        "LiveCodeBench/abc001_a": [0.0, 2.0],
        "LiveCodeBench/3001": [2.0, 2.0],
    }
    command = "custom_evaluator --release_version VERSION"
    assert f"{command} --custom_output_file {output}/livecodebench_samples.json`" in results.counts["LiveCodeBench"]
    assert "judged by the benchmark's own evaluator" in " ".join(capsys.readouterr().out.split())


def test_samples_of_bigcodebench_are_whole_responses_for_its_own_sanitizer(tmp_path):
    response, output = f"Sure!\n```python\n{HEAD}    return 2 * x\n```", tmp_path / "out"
    with StandInEndpoint(lambda messages, seed: response) as server:
        assert main(words(written(tmp_path, BIG), output, server, "--split", "instruct")) == 0
        assert BIG["instruct_prompt"] in server.requests[0]["messages"][-1]["content"]
    stem = f"{output}/bigcodebench_instruct_samples"
    assert list(iter_rows(Path(f"{stem}.jsonl"))) == [{"task_id": "BigCodeBench/7", "solution": response}]
    told = Results.load(output).counts["BigCodeBench-Instruct"]
    assert told.endswith(
        f"`bigcodebench.sanitize --samples {stem}.jsonl && bigcodebench.evaluate --execution local "
        f"--split instruct --subset SUBSET --samples {stem}-sanitized.jsonl`"
    )


def test_one_evaluation_judges_what_it_can_and_leaves_the_rest(tmp_path, capsys):
    own = {"id": "f", "prompt": "f", "reference": "def f():\n    return 1\n", "tests": ["assert f() == 1"]}
    files = [str(written(tmp_path, own, name="own.jsonl")), str(written(tmp_path, BIG, name="big.jsonl"))]
    with StandInEndpoint(lambda messages, seed: f"```python\n{own['reference']}```") as server:
        asked = words(files[0], tmp_path / "out", server, "--workers", "1")
        assert main([*asked[:3], files[1], *asked[3:]]) == 0
    results = Results.load(tmp_path / "out")
    assert results.parts["pass@1"] == {"f": [1.0, 1.0]}
    assert set(results.source_of) == {"f", "BigCodeBench/7"}
