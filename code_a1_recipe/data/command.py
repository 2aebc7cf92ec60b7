"""``code-a1 data``: its sub-commands, each in a file of its own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

DONE, REFUSED = 0, 2

COMMANDS: dict[str, tuple[str, str]] = {
    "prepare": (".prepare", "any problem set to training questions: judged, deduplicated, decontaminated, described"),
    "sft": (".sft", "demonstrations for a cold start of the Test LLM, for verl's SFT trainer"),
    "inspect": (".inspect_command", "a question with its candidates, suites and verdicts, of a run or a file"),
}
"""Module and what it does. Imported when asked for."""


def main(arguments: Sequence[str]) -> int:
    """Exit status of the sub-command; 2 when there is none of that name."""
    words = list(arguments)
    if words and words[0] in COMMANDS:
        return int(importlib.import_module(COMMANDS[words[0]][0], __package__).main(words[1:]))
    lines = "\n".join(f"  {name:10} {what}" for name, (_, what) in COMMANDS.items())
    if not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(f"usage: code-a1 data COMMAND ... [--help]\n\nProblem sets. Commands:\n{lines}\n")
        return DONE if words else REFUSED
    sys.stderr.write(f"error: unknown command {words[0]!r} of data; known: {', '.join(COMMANDS)}\n")
    return REFUSED
