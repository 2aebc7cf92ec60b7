"""Draws the picture of the README: the progress of both models of a run, in training and on held-out questions.

python -m studies.learning_curves RUN_FOLDER studies/learning_curves.svg
"""

import sys
from pathlib import Path

import matplotlib as mpl

from code_a1_recipe.runs.reader import RunRecords
from code_a1_recipe.tools.report.figures import STYLE, Panel, draw_panels

PANELS = (
    Panel(
        title="Code LLM: programs that pass all hidden tests",
        lines={
            "code/pass@1": "while it trains",
            "val/code/pass@1": "held out",
            "val/code/greedy_pass@1": "held out, most likely program",
        },
    ),
    Panel(
        title="Test LLM: asserts",
        lines={
            "test/valid": "valid, while it trains",
            "val/test/buggy_programs_valid": "valid, held out",
            "val/test/buggy_programs_detection_rate": "correct and breaks a buggy program, held out",
        },
    ),
)


def main(run_folder: str, picture: str) -> None:
    # The file names fonts instead of storing outlines, so it stays small. With fixed ids, the same run gives the same
    # file.
    with mpl.rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": "learning curves"}):
        figure = draw_panels(RunRecords.open(Path(run_folder)), PANELS)
        if figure is None:
            raise SystemExit(f"{run_folder} has no values of these metrics; name another run")
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
