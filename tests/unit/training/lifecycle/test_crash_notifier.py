"""A process that is ended from outside still has its user told how to go on."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys
from code_a1_recipe.training.lifecycle.crash_notifier import crash_notifier, dismiss_notifier
with crash_notifier("how to go on"):
    {how}
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "how to go on"),
        ("os._exit(1)", "how to go on"),
        ("pass", ""),
        ("sys.exit(3)", ""),
        ("dismiss_notifier(); os._exit(1)", ""),
    ],
)
def test_only_an_end_from_outside_is_notified(how, words):
    command = [sys.executable, "-c", PROGRAM.format(how=how)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == words
