"""``python -m examples.harvest_tests``: a run's questions with the tests of its Test LLM."""

import sys
from collections.abc import Sequence

from code_a1_recipe.cli import status
from code_a1_recipe.cli.declared import with_options
from examples.arguments import run_study, study_app

from .harvest import HarvestOptions, harvest_tests

app = study_app()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.harvest_tests")


@app.command()
@with_options
def harvest(options: HarvestOptions) -> None:
    """Write a run's training questions with the tests that its Test LLM wrote as golden tests.

    Of the tests of a question only as few stay as kill the same programs: mutants of its reference (small mistakes,
    made by cosmic-ray) and the buggy programs that the run recorded. The best come first. Programs are confined as in
    the run unless --tier or --allow-missing say otherwise.

    `python -m examples.harvest_tests outputs/my-run --output tests.jsonl`, then
    `code-a1 cpu arm=static data.train_files=tests.jsonl`. OUTPUT.card.md says where they come from. A
    repeated command resumes from OUTPUT.kills.jsonl.
    """
    status.resume(options.work_output, harvest_tests, options)


if __name__ == "__main__":
    sys.exit(main())
