"""Each command of SKILL.md does what the page says, with the files that the page shows."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..tools.evaluate.stand_in_endpoint import StandInEndpoint

FILE = re.compile(r"^`([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def answer(messages, seed):
    if "assert" in messages[-1]["content"] or messages[-1]["role"] == "assistant":
        return "f(3) == 6\nassert f(-1) == -2\n```"
    return f"```python\ndef f(x):\n    return {'2 * x' if seed % 2 else 'abs(2 * x)'}\n```"


pytestmark = pytest.mark.nightly  # as many processes as commands


@pytest.fixture(scope="module")
def printed(repository, tmp_path_factory):
    """What each command printed, by its first two words and its last."""
    text, folder = (repository / "SKILL.md").read_text(), tmp_path_factory.mktemp("skill")
    for name, content in FILE.findall(text):
        (folder / name).write_text(content)
    (folder / "examples").symlink_to(repository / "examples")
    found = {}
    with StandInEndpoint(answer) as endpoint:
        environment = os.environ | {
            "ENDPOINT": endpoint.url,
            "MODEL": "stand-in",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(repository),
        }
        for command in COMMAND.findall(text):
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
            found[command.split()[2 if command.startswith("python -m") else 1]] = done.stdout
    return folder, found


def test_a_program_is_judged(printed):
    _, found = printed
    verdict = {"id": "double", "valid": 2, "expected_correct": 2, "passed": 1, "outcomes": ["passed", "wrong_value"]}
    assert [json.loads(line) for line in found["sandbox"].splitlines()] == [verdict]
    assert found["rewards.py"].split() == ["0.5", "1.0"]


def test_a_bug_is_found_and_written_down(printed):
    folder, found = printed
    assert "assert median([" in found["attack"]
    assert "median" in (folder / "test_median.py").read_text()


def test_a_program_is_chosen(printed):
    folder, _ = printed
    [row] = (folder / "best" / "selected.jsonl").read_text().splitlines()
    assert json.loads(row)["question"] == "double"


def test_rollouts_are_scored(printed):
    folder, _ = printed
    [row] = (folder / "scored.jsonl").read_text().splitlines()
    assert json.loads(row)["reward"] is not None
