"""Several command lines of ``code-a1`` in one process, which imports vLLM once.

A JSON list of command lines (lists of words) comes from standard input; for each, one JSON object with ``status`` and
``printed`` goes to standard output.
"""

import contextlib
import io
import json
import sys

from code_a1_recipe.cli.app import main


def run_all() -> None:
    for words in json.load(sys.stdin):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = main(words)
        print(json.dumps({"status": status, "printed": printed.getvalue()}), flush=True)


if __name__ == "__main__":  # vLLM's engine process imports this file again
    run_all()
