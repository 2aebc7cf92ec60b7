"""HumanEval+ and MBPP+ from responses as models write them: EvalPlus's sanitizer, our verdicts, its sample format."""

import importlib.util
import os
import pty
import subprocess
import sys
import termios

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.files import json_lines
from code_a1_recipe.tools.evaluate.results import Results
from code_a1_recipe.tools.evaluate.scoring import evalplus_sanitizer
from code_a1_recipe.tools.evaluate.scoring.evalplus_sanitizer import PRELOAD, defines, sanitize, sanitizer_source
from sandbox import LocalRunner

from .stand_in_endpoint import StandInEndpoint

TEST = """
def check(candidate):
    inputs = [[1, 2], [0, 0], [-3, 5]]
    results = [3, 0, 2]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, 0)
"""
RIGHT = "def add(a, b):\n    return a + b"
RESPONSES = {
    # name: (response, what EvalPlus keeps)
    "prose": (f"Sure! Here it is:\n```python\n{RIGHT}\n```\nIt adds `a` and `b`.", RIGHT),
    "examples that raise": (f"```python\n{RIGHT}\n\nprint(add(1, 2))\nassert add(1, 1) == 3\nadd()\n```", RIGHT),
    "main that never ends": (
        f"```python\n{RIGHT}\n\nif __name__ == '__main__':\n    while True:\n        add(int(input()), 1)\n```",
        RIGHT,
    ),
    "usage in a second block": (f"```python\n{RIGHT}\n```\nUse it so:\n```python\nadd(1, 2)\n```", RIGHT),
    "helpers and more": (
        "```python\nimport math\n\ndef plus(a, b):\n    return math.fsum([a, b]) // 1\n\n"
        "def unused(x):\n    return x\n\ndef add(a, b):\n    return plus(a, b)\n```",
        "import math\ndef plus(a, b):\n    return math.fsum([a, b]) // 1\ndef add(a, b):\n    return plus(a, b)",
    ),
    "unfinished": (f"```python\n{RIGHT}\n\ndef test_add():\n    assert add(1,", RIGHT),
    "wrong": ("```python\ndef add(a, b):\n    return a - b\n```", "def add(a, b):\n    return a - b"),
    "another name": ("```python\ndef plus(a, b):\n    return a + b\n```", "def plus(a, b):\n    return a + b"),
    "no program": ("I cannot do that.", "I cannot do that."),
}
NOT_EXTRACTED = {"another name", "no program"}
needs_evalplus = pytest.mark.skipif(
    importlib.util.find_spec("evalplus") is None or importlib.util.find_spec("tree_sitter") is None,
    reason="EvalPlus's sanitizer is not installed",
)


@pytest.fixture(scope="module")
def runner():
    with LocalRunner(preload=PRELOAD) as running:
        yield running


@pytest.fixture
def file(tmp_path):
    rows = [
        {
            "problem": f'"""Write add(a, b), which adds. Case {number}: {name}."""\n',
            "GT_code": RIGHT,
            "test": TEST,
            "extra_info": {"question_id": f"MBPP/{number}", "function_name": "add", "imports": ""},
        }
        for number, name in enumerate(RESPONSES)
    ]
    path = tmp_path / "evalplus.jsonl"
    path.write_text(json_lines(rows))
    return path


def answer(messages, seed):
    """The stored text that the prompt names."""
    return next(one[0] for name, one in RESPONSES.items() if f": {name}." in messages[-1]["content"])


def words(file, output, server, *more):
    return ["eval", "code", str(file), "--output", str(output), *server.words, *more]


@needs_evalplus
@pytest.mark.parametrize("name", RESPONSES)
def test_the_sanitizer_keeps_what_evalplus_keeps(name, runner):
    response, kept = RESPONSES[name]
    found = sanitize(response, entry_point="add", runner=runner)
    assert (found.program, found.failure) == (kept, "no_entry_point" if name in NOT_EXTRACTED else "")


@needs_evalplus
def test_what_the_sanitizer_cannot_read_is_an_extraction_failure(runner):
    assert sanitize("", entry_point="add", runner=runner).failure == "no_entry_point"
    assert sanitize("x" * 300_000, entry_point="add", runner=runner).failure == "too_long"
    assert sanitize("\udc80", entry_point="add", runner=runner).failure.startswith(
        "sanitizer raised UnicodeEncodeError"
    )


def test_a_name_is_defined_by_whatever_binds_it_at_top_level():
    binding = ["def f(): pass", "from math import gcd as f", "f = len"]
    others = ["def g():\n    f = 1", "print(f)", "def f(:"]
    assert [defines(program, "f") for program in [*binding, *others]] == [True] * 3 + [False] * 3


@needs_evalplus
def test_responses_are_sanitized_counted_and_exported(file, tmp_path):
    output = tmp_path / "out"
    with StandInEndpoint(answer) as server:
        assert main(words(file, output, server, "--workers", "1")) == 0
        assert {request["max_tokens"] for request in server.requests} == {768}  # as EvalPlus
    results = Results.load(output)
    for number, name in enumerate(RESPONSES):
        measured = {metric: values[f"MBPP/{number}"][0] for metric, values in results.parts.items()}
        assert measured == {
            "pass@1": name not in NOT_EXTRACTED | {"wrong"},
            "extraction_failure_rate": name in NOT_EXTRACTED,
            "truncated_rate": 0.0,
        }, name
    assert results.settings["sanitizer"] == "evalplus 0.3.1"
    # As evalplus.data.load_solutions reads them.
    assert list(iter_rows(output / "evalplus_samples.jsonl")) == [
        {"task_id": f"Mbpp/{number}", "solution": kept} for number, (_, kept) in enumerate(RESPONSES.values())
    ]


@needs_evalplus
def test_a_response_that_fills_its_tokens_is_counted_as_truncated(file, tmp_path):
    with StandInEndpoint(answer) as server:  # it says that each response has three tokens
        assert main(words(file, tmp_path / "out", server, "--max-tokens", "3", "--limit", "2", "--workers", "1")) == 0
    assert Results.load(tmp_path / "out").parts["truncated_rate"] == {"MBPP/0": [1.0, 1.0], "MBPP/1": [1.0, 1.0]}


@pytest.mark.parametrize("absent", ["evalplus", "tree_sitter", "tree_sitter_python"])
def test_a_missing_package_is_said_before_anything_is_asked(file, tmp_path, capsys, monkeypatch, absent):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find_spec(name))
    sanitizer_source.cache_clear()
    with StandInEndpoint(answer) as server:
        assert main(words(file, tmp_path / "out", server)) == 2
        assert server.requests == []
    name = absent.replace("_", "-")
    message = f"needs the package {name}, which is not installed: {evalplus_sanitizer.INSTALL}"
    if absent == "evalplus" or find_spec("tree_sitter"):
        assert message in capsys.readouterr().err


def test_a_terminal_that_cannot_draw_gets_progress_too():
    script = (
        "import code_a1_recipe.jobs.progress as p\n"
        "with p.Progress('sample', total=3, unit='response') as one:\n    one.advance(outages=2)"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    environment = {**os.environ, "TERM": "dumb"}
    subprocess.run([sys.executable, "-c", script], stderr=theirs, env=environment, check=True, timeout=60)
    os.close(theirs)
    seen = os.read(ours, 4096)
    assert b"sample:" in seen
    assert b" 1/3 " in seen
    assert b"outages=2" in seen
    os.close(ours)
