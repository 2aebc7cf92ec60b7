"""``code-a1 data prepare`` from the command line down, with a judge of this process."""

import contextlib
import re

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.data.reader import iter_rows, load_questions
from code_a1_recipe.files import json_lines
from code_a1_recipe.jobs.confinement import Confinement
from sandbox import Judge, Limits, SandboxUnavailableError


def row(name, reference=None, tests=None, **changes):
    fields = {
        "id": name,
        "prompt": f"Write the function {name}, which is about {name} of one number.",
        "reference": f"def {name}(x):\n    return x + {len(name)}" if reference is None else reference,
        "tests": [f"assert {name}(1) == {1 + len(name)}"] if tests is None else tests,
    }
    return fields | changes


class OneJudge:
    """Judges here, with a runner that is there already; counts what it is asked."""

    def __init__(self, runner):
        self.judge = Judge(runner, limits=Limits(reference_cpu_seconds_per_case=0.3))
        self.num_requests = 0
        self.down_for = ""

    def judge_all(self, requests):
        for request in requests:
            self.num_requests += 1
            if self.down_for and self.down_for in (request.candidate or request.reference):
                yield SandboxUnavailableError("the sandbox is on fire")
            else:
                yield self.judge.judge(request)


@pytest.fixture
def judge(monkeypatch, runner):
    one = OneJudge(runner)
    monkeypatch.setattr(Confinement, "judges", lambda self, num_workers: contextlib.nullcontext(one))
    return one


@pytest.fixture
def write(tmp_path):
    def to_file(*rows, name="rows.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json_lines(rows))
        return path

    return to_file


@pytest.fixture
def run(tmp_path, capsys, judge, monkeypatch):
    """Run the command; its status and what it wrote to stdout and stderr."""

    def command(*arguments, output="out.parquet"):
        words = ["data", "prepare", *map(str, arguments), "--output", str(tmp_path / output), "--workers", "1"]
        monkeypatch.setattr("sys.argv", ["code-a1", *words])
        status = main(words)
        return status, *capsys.readouterr()

    return command


@pytest.fixture
def dropped(tmp_path):
    def read():
        return {line["id"]: line for line in iter_rows(tmp_path / "out.parquet.dropped.jsonl")}

    return read


@pytest.fixture
def kept(tmp_path):
    """``kept()``: ids of the questions of the training set; none if it was not written."""
    path = tmp_path / "out.parquet"
    return lambda: [question.id for question in load_questions(path)] if path.exists() else []


def card_in(folder):
    """The data card without the spaces that align the columns of its tables."""
    return re.sub(r" +", " ", (folder / "out.parquet.card.md").read_text())
