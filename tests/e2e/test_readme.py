"""Every block of the README can be pasted. The blocks run in the README's order, with the shortest settings."""

import os
import re
import subprocess
import sys

import pytest

from .conftest import RUN_TIMEOUT_SECONDS, SHORT

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("readme")]
SETTINGS = (*(setting for setting in SHORT if "save_freq" not in setting), "trainer.save_freq=2")
"""Two steps, whose weights are kept."""
OPENERS = ("bash run_codea1.sh", "source .venv/bin/activate", "bash tests/run.sh")
"""Beginnings of lines that set up what the tests already run in."""


def pasted(block: str) -> str:
    """A block as the test runs it: each training is short and on CPUs, and nothing waits for a key."""
    lines = []
    for line in block.splitlines():
        line = line.split("  #")[0].rstrip()
        words = line.split()
        if line.startswith(OPENERS) or "--gpus" in words:
            continue
        if words[:1] == ["code-a1"] and any("=" in word for word in words[1:]):
            if "run_dir=outputs/qwen" in words:
                continue  # needs a GPU and the hub
            line = " ".join([line, *(setting for setting in SETTINGS if setting.partition("=")[0] not in line)])
        if words[:2] == ["code-a1", "watch"]:
            line = "code-a1 watch --once outputs/mine"
        lines.append(line)
    return "\n".join(lines)


def test_the_blocks_of_the_readme_can_be_pasted(repository, tmp_path):
    text = (repository / "README.md").read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(repository / "examples")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(repository)}
    outputs = []
    for language, block in re.findall(r"```(bash|python)\n(.*?)```", text, re.DOTALL):
        script = (
            ["bash", "-euo", "pipefail", "-c", pasted(block)] if language == "bash" else [sys.executable, "-c", block]
        )
        done = subprocess.run(
            script,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        outputs.append(done.stdout)
    judged = next(output for output in outputs if "unencodable" in output)
    assert re.findall(r"right: (\w+)", judged) == ["True", "False"]
